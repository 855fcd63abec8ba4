"""Prompt sets of benchmarks by name. None is shipped: they are fetched from where their authors publish them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Any, BinaryIO, cast

import httpx

from steerboard.datasets.hub import hub_sources
from steerboard.evaluation.prompts.schemas import KnownPromptSet
from steerboard.platform.security.safe_http import open_client
from steerboard.platform.settings import Settings
from steerboard_contracts.errors import BadInput
from steerboard_figures.formats.detection import QuestionFormat
from steerboard_files.errors import FileTooLarge
from steerboard_files.records import Source

_MOST_BYTES = 32 << 20
_FASTCHAT = "https://raw.githubusercontent.com/lm-sys/FastChat/v0.2.36/fastchat/llm_judge/data"


@dataclass(frozen=True)
class Known:
    """`turns`: of each of the prompts. `source`: a hub name, or an https URL."""

    title: str
    prompts: int
    turns: int
    licence: str
    source: str
    format: QuestionFormat


KNOWN: dict[str, Known] = {
    "mt-bench-80": Known(
        "MT-Bench: 80 questions of two turns in eight categories",
        80,
        2,
        "Apache-2.0",
        "HuggingFaceH4/mt_bench_prompts:raw/question.jsonl",
        "fastchat",
    ),
    "vicuna-80": Known(
        "Vicuna: 80 questions of one turn in nine categories",
        80,
        1,
        "Apache-2.0",
        f"{_FASTCHAT}/vicuna_bench/question.jsonl",
        "fastchat",
    ),
    "arena-hard-v0.1": Known(
        "Arena-Hard v0.1: 500 hard questions of users",
        500,
        1,
        "Apache-2.0",
        "lmarena-ai/arena-hard-auto:data/arena-hard-v0.1/question.jsonl",
        "arena_hard",
    ),
    "arena-hard-v2.0": Known(
        "Arena-Hard v2.0: 500 hard questions and 250 of creative writing",
        750,
        1,
        "Apache-2.0",
        "lmarena-ai/arena-hard-auto:data/arena-hard-v2.0/question.jsonl",
        "arena_hard",
    ),
    "alpaca-eval-805": Known(
        "AlpacaEval: 805 instructions", 805, 1, "CC-BY-NC-4.0", "tatsu-lab/alpaca_eval:alpaca_eval.json", "alpaca_eval"
    ),
}


def known_sets() -> list[KnownPromptSet]:
    return [
        KnownPromptSet(
            name=name,
            title=known.title,
            prompts=known.prompts,
            turns=known.turns,
            licence=known.licence,
            source=known.source,
        )
        for name, known in KNOWN.items()
    ]


def known_set(name: str) -> Known:
    """Raises `BadInput` (`unknown_prompts`)."""
    known = KNOWN.get(name)
    if known is None:
        raise BadInput(
            f"no prompt set is known as {name!r}",
            code="unknown_prompts",
            hint=f"Known are {', '.join(KNOWN)}; upload a file for others.",
        )
    return known


def fetched(name: str, settings: Settings) -> Source:
    """The file of a known set, fetched once however often it is read. Raises `BadInput` (`unknown_prompts`,
    `hub_not_found`, `hub_unavailable`, `prompts_unavailable`)."""
    known = known_set(name)
    try:
        if known.source.startswith("https://"):
            label, file = f"{name}.jsonl", _download(known.source, settings)
        else:
            (source, *_) = hub_sources(known.source, _MOST_BYTES)
            label, file = source.label, source.open()
    except BadInput as error:
        error.hint = (
            f"Check the server's network. Or download the file of {known.source} yourself, and pass it: "
            f"`steerboard evaluations import-prompts FILE --known {name}`, or `file` along with `known` in the form."
        )
        raise
    return Source(label, lambda: file)


def check_known(name: str, label: str, prompts: Sequence[Mapping[str, Any]]) -> None:
    """Raises `BadInput` (`other_prompts`) unless these are as many prompts, of as many turns, as the known set has."""
    known = known_set(name)
    turns = {1 + len(prompt["follow_ups"]) for prompt in prompts}
    if len(prompts) == known.prompts and turns == {known.turns}:
        return
    lengths = " or ".join(map(str, sorted(turns)))
    raise BadInput(
        f"{name} has {known.prompts} prompts of {known.turns} turns, but {label} has {len(prompts)} of {lengths}",
        code="other_prompts",
        hint=f"Use the complete file of {known.source}; to import this one as your own prompts, omit `known`.",
    )


def _download(url: str, settings: Settings) -> BinaryIO:
    file = cast(BinaryIO, TemporaryFile())  # noqa: SIM115 - it is given back, and gone when closed
    try:
        with (
            open_client(settings, timeout_seconds=20, total_seconds=120) as client,
            client.stream("GET", url) as answer,
        ):
            answer.raise_for_status()
            for chunk in answer.iter_bytes():
                file.write(chunk)
                if file.tell() > _MOST_BYTES:
                    raise FileTooLarge(f"{url} has more than {_MOST_BYTES:,} bytes")
    except httpx.HTTPError as error:
        raise BadInput(
            f"{url} could not be fetched: {error}",
            code="prompts_unavailable",
        ) from error
    file.seek(0)
    return file
