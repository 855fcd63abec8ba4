"""How the tasks of the harness want their answers written, for engines that are not its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lm_eval.models.utils import normalize_gen_kwargs

from steerboard_contracts.errors import BadInput

# Tokens of an answer where the task does not tell, as the harness has them.
NEW_TOKENS = 256
_KNOWN = {"until", "max_gen_toks", "do_sample", "temperature", "top_p", "top_k"}


@dataclass(frozen=True)
class Writing:
    """`until`: texts that end an answer, and are not part of it. `limit` in tokens; temperature 0 is greedy."""

    until: tuple[str, ...]
    limit: int
    temperature: float
    top_p: float
    top_k: int


def writing_of(options: Mapping[str, Any], task: str) -> Writing:
    """The writing that a request's generation options ask for. Raises `BadInput` for one that only transformers
    knows."""
    given = dict(normalize_gen_kwargs(dict(options), NEW_TOKENS))
    unknown = sorted(name for name in set(given) - _KNOWN if (name, given[name]) != ("num_beams", 1))
    if unknown:
        raise BadInput(
            f"task {task} asks for the generation option {unknown[0]}, which only transformers takes",
            code="bad_benchmark_task",
            hint="Use engine: transformers for it.",
        )
    sampled = given.get("do_sample") is not False
    return Writing(
        until=tuple(text for text in given["until"] if text),
        limit=given["max_gen_toks"],
        temperature=float(given.get("temperature") or 0.0) if sampled else 0.0,
        top_p=float(given.get("top_p") or 1.0),
        top_k=int(given.get("top_k") or 0),
    )


def check_options(tasks: Iterable[Any]) -> None:
    """Called before the first question. Raises `BadInput`."""
    for task in tasks:
        if task.OUTPUT_TYPE == "generate_until":
            writing_of(task.config.generation_kwargs or {}, task.config.task)


def cut(text: str, until: Iterable[str]) -> str:
    """What comes before the first of these texts."""
    ends = [place for place in (text.find(end) for end in until if end) if place >= 0]
    return text[: min(ends)] if ends else text
