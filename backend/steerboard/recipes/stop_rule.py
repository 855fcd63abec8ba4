"""The rule of a recipe's rounds that ends them early: an independent judge rates what a round made lower.

    rounds: {count: 3, stop: {judge: independent}}

adds an evaluation `check-1`, `check-2`, ... to each round, of its policy against the one that the round began with, on
held-out prompts; other fields of `stop` are those of an evaluation, such as `prompts`. A round begins when the check
of the round before has ended and found no fall. `runs.state.stopped_rounds` has what happens where it found one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steerboard.recipes.document import Document, Path
from steerboard.recipes.draft import Draft
from steerboard.recipes.errors import Faults
from steerboard.recipes.inputs import StageRef
from steerboard.recipes.sources import Source
from steerboard.runs.inputs import AFTER
from steerboard_contracts.rounds import PlannedRounds

ROUNDS, COUNT, STOP, CHECK = "rounds", "count", "stop", "check"


def is_stop_rule(document: Document) -> bool:
    rounds = document.data.get(ROUNDS)
    return isinstance(rounds, dict) and rounds.get(STOP) is not None


def check_fields(document: Document, policies: list[str]) -> dict[str, Any]:
    """The evaluation of a round: what it made last, what it began with before that, and what all began with first."""
    stop: Mapping[str, Any] = document.data[ROUNDS][STOP]
    others = {key: value for key, value in stop.items() if key != "judge"}
    return {**others, "run": "evaluate", "entrants": policies, "rewards": [stop["judge"]], "decides": True}


def write_check_places(document: Document, path: Path) -> None:
    """A fault of the judge is shown where the rule names it."""
    place = document.place((ROUNDS, STOP, "judge"))
    if place is not None:
        document.places[(*path, "rewards", 0)] = place


def await_checks(planned: PlannedRounds, inputs: dict[str, dict[str, Source]]) -> None:
    """A round waits for the check of the round before; what takes the last round's output, for the last check."""
    if planned.judge is None:
        return
    last = planned.rounds[-1]
    for round_, former in zip(planned.rounds[1:], planned.rounds, strict=False):
        for name in (*round_.stages, round_.check):
            _await(inputs, name, former.check)
    for name, given in inputs.items():
        outside = planned.round_of(name) is None
        if outside and any(_is_last(slot, source, last.stages) for slot, source in given.items()):
            _await(inputs, name, last.check)


def _await(inputs: dict[str, dict[str, Source]], name: str | None, check: str | None) -> None:
    if name in inputs and check is not None:
        inputs[name][f"{AFTER}0"] = StageRef(check)


def _is_last(slot: str, source: Source, stages: list[str]) -> bool:
    return "." not in slot and isinstance(source, StageRef) and source.stage in stages


def check_judge(
    document: Document,
    planned: PlannedRounds,
    drafts: Mapping[str, Draft],
    inputs: Mapping[str, Mapping[str, Source]],
    faults: Faults,
) -> None:
    """A judge that scores what the rounds learn from would see none of the ways in which they learn to please it."""
    first = planned.rounds[0].check
    judge = inputs.get(first or "", {}).get("rewards.0")
    if judge is None:
        return
    for name, given in inputs.items():
        draft = drafts[name]
        if draft.kind.run not in ("evaluate", "benchmark") and judge in given.values():
            document.fault(
                faults,
                (ROUNDS, STOP, "judge"),
                f"`{planned.judge}` is read by `{name}`, so that the rounds may learn from it; name a reward model "
                "that no stage learns from, such as `independent`",
            )
            return
