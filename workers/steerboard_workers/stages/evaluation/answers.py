"""The entrants' greedy answers to the held-out prompts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from steerboard_contracts.configs import EvaluateConfig
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.models import ModelInfo
from steerboard_workers.engines.protocol import Request
from steerboard_workers.stages.generate import score_text
from steerboard_workers.stages.loading import read_info
from steerboard_workers.stages.opening import open_policy
from steerboard_workers.stages.partial import PartialRows
from steerboard_workers.stages.runtime import Stage

Prompt = list[dict[str, str]]


@dataclass
class Entry:
    """One entrant at one requested score, with its answers in the order of the prompts."""

    entrant: str
    info: ModelInfo
    score: float | None
    device_seconds: float
    texts: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    finished: list[bool] = field(default_factory=list)

    @property
    def method(self) -> str:
        return self.info.method or self.info.role


def held_out_prompts(stage: Stage, limit: int, seed: int) -> list[Prompt]:
    """Distinct prompts of the held-out split, at most `limit`, drawn by seed, in the order of their rows."""
    found: dict[str, Prompt] = {}
    for row in stage.rows("data"):
        if row.get("split") == "held_out" and row.get("prompt"):
            found.setdefault(json.dumps(row["prompt"], sort_keys=True), row["prompt"])
    if not found:
        raise EmptySelection(
            f"dataset {stage.dataset('data').name} has no held-out prompts to evaluate on",
            hint="Raise the project's held-out fraction or give more prompts.",
        )
    drawn = set(sorted(found, key=lambda text: hashlib.sha256(f"{seed}:{text}".encode()).digest())[:limit])
    return [prompt for text, prompt in found.items() if text in drawn]


def entries_of(stage: Stage, config: EvaluateConfig) -> list[Entry]:
    """The rows of the report, still without answers. Refuses scores of policies that know none before any work."""
    names = stage.input_names("entrants")
    if len(names) != len(config.entrants):
        raise BadInput(f"{len(config.entrants)} entrants are configured, but {len(names)} given", code="missing_input")
    entries = []
    for name, entrant in zip(names, config.entrants, strict=True):
        model = stage.model(name)
        info = read_info(stage.path(model.path))
        seconds = model.cost_seconds + model.shared_seconds
        scores: list[float | None] = list(dict.fromkeys(entrant.scores)) or [
            info.default_score if info.score_format else None
        ]
        for score in scores:
            score_text(info, score, model.name)
            entries.append(Entry(model.name, info, score, seconds))
    return entries


def answer_all(stage: Stage, config: EvaluateConfig, entries: list[Entry], prompts: list[Prompt]) -> None:
    """Fill in every entry's answers. One model is loaded at a time; answers already made are kept through a kill."""
    total = len(entries) * len(prompts)
    names = stage.input_names("entrants")
    by_model: dict[str, list[tuple[int, Entry]]] = {}
    at = 0
    for name, entrant in zip(names, config.entrants, strict=True):
        count = max(1, len(set(entrant.scores)))
        by_model[name] = list(enumerate(entries))[at : at + count]
        at += count
    with PartialRows(stage, ("entry", "row")) as partial:
        for name, group in by_model.items():
            left = [
                (index, row, entry)
                for index, entry in group
                for row in range(len(prompts))
                if (index, row) not in partial
            ]
            if left:
                _answer(stage, config, name, left, prompts, partial, total)
        for index, entry in enumerate(entries):
            rows = [partial.rows[(index, row)] for row in range(len(prompts))]
            entry.texts = [row["text"] for row in rows]
            entry.tokens = [row["tokens"] for row in rows]
            entry.finished = [row["finished"] for row in rows]


def _answer(
    stage: Stage,
    config: EvaluateConfig,
    name: str,
    left: list[tuple[int, int, Entry]],
    prompts: list[Prompt],
    partial: PartialRows,
    total: int,
) -> None:
    """All scores of one model in the same batches."""
    with open_policy(stage, name, config) as policy:
        requests = [
            Request(place, prompts[row], score_text(policy.info, entry.score, entry.entrant))
            for place, (_, row, entry) in enumerate(left)
        ]
        for completion in policy.engine.generate(requests, config.decoding.model_copy(update={"n": 1}), config.seed):
            index, row, _ = left[completion.row]
            kept: dict[str, Any] = {"entry": index, "row": row, "text": completion.text}
            partial.add([kept | {"tokens": completion.tokens, "finished": completion.finished}])
            stage.progress(len(partial.rows), total, "answers", "generating")
