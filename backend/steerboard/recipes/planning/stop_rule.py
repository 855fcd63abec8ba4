"""The rule of a recipe's rounds that ends them early: an independent judge rates what a round made lower.

    rounds: {count: 3, stop: {judge: independent}}

adds an evaluation `check-1`, `check-2`, ... to each round, of its policy against the one that the round began with, on
held-out prompts; other fields of `stop` are those of an evaluation, such as `prompts`. A round begins when the check
of the round before has ended and found no fall. `runs.state.stopped_rounds` has what happens where it found one.

The judge is a reward model, a preference model, or an LLM: `judge: {endpoint: gpt, style: pairwise}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steerboard.recipes.document import Document
from steerboard.recipes.draft import Draft
from steerboard.recipes.errors import Faults
from steerboard.recipes.inputs import StageRef, Value
from steerboard.recipes.places import Path, Place
from steerboard.recipes.sources import Source
from steerboard.runs.inputs import AFTER
from steerboard.runs.launch.lookup import KnownModel
from steerboard_contracts.methods import method_of
from steerboard_contracts.recipes.rounds import PlannedRounds

ROUNDS, COUNT, STOP, CHECK, JUDGE = "rounds", "count", "stop", "check", "judge"
PREFERENCE = "preference"


def is_stop_rule(document: Document) -> bool:
    rounds = document.data.get(ROUNDS)
    return isinstance(rounds, dict) and rounds.get(STOP) is not None


def check_fields(document: Document, policies: list[str]) -> dict[str, Any]:
    """The evaluation of a round: what it made last, what it began with before that, and what all began with first."""
    stop: Mapping[str, Any] = document.data[ROUNDS][STOP]
    others = {key: value for key, value in stop.items() if key != JUDGE}
    # Which kind of model a name means is known when the inputs are: `judge_by_comparing`.
    judge = {JUDGE: stop[JUDGE]} if isinstance(stop[JUDGE], dict) else {"rewards": [stop[JUDGE]]}
    return {**others, "run": "evaluate", "entrants": policies, **judge, "decides": True}


def is_judge(given: Any) -> bool:
    """A name, or an endpoint with how it is asked."""
    return isinstance(given, str) or (isinstance(given, dict) and isinstance(given.get("endpoint"), str))


def name_of_judge(document: Document) -> str:
    judge = document.data[ROUNDS][STOP][JUDGE]
    return str(judge["endpoint"] if isinstance(judge, dict) else judge)


def judge_by_comparing(document: Document, values: Mapping[str, Value]) -> None:
    """A preference model gives no rewards: it becomes the `judge` of the checks that name it."""
    stages: dict[str, Any] = document.data["stages"]
    for name, fields in stages.items():
        if not isinstance(fields, dict) or fields.get("decides") is not True or JUDGE in fields:
            continue
        rewards = fields.get("rewards")
        if isinstance(rewards, list) and len(rewards) == 1 and _compares(rewards[0], stages, values):
            place = document.place(("stages", name, "rewards", 0)) or Place(line=1)
            del fields["rewards"]
            document.put(("stages", name, JUDGE), rewards[0], place)


def _compares(reference: Any, stages: Mapping[str, Any], values: Mapping[str, Value]) -> bool:
    if not isinstance(reference, str):
        return False
    value = values.get(reference[1:]) if reference.startswith("$") else StageRef(reference)
    if isinstance(value, KnownModel):
        return value.role == PREFERENCE
    fields = stages.get(value.stage) if isinstance(value, StageRef) else None
    method = method_of(fields.get("method")) if isinstance(fields, dict) else None
    return method is not None and method.role == PREFERENCE


def write_check_places(document: Document, path: Path) -> None:
    """A fault of the judge is shown where the rule names it."""
    place = document.place((ROUNDS, STOP, JUDGE))
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
    of_check = inputs.get(first or "", {})
    judge = of_check.get(JUDGE) or of_check.get("rewards.0")
    if judge is None:
        return
    for name, given in inputs.items():
        draft = drafts[name]
        if draft.kind.makes is not None and judge in given.values():
            document.fault(
                faults,
                (ROUNDS, STOP, JUDGE),
                f"`{planned.judge}` is read by `{name}`, so that the rounds may learn from it; name a model "
                "that no stage learns from, such as `independent`, or an endpoint",
            )
            return
