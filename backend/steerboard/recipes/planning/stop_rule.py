"""The rule of a recipe's rounds that ends them early: an independent judge rates what a round made lower.

    rounds: {count: 3, stop: {judge: independent}}

adds an evaluation `check-1`, `check-2`, ... to each round, of its policy against the one that the round began with, on
held-out prompts; other fields of `stop` are those of an evaluation, such as `prompts`. A round begins when the check
of the round before has ended and found no fall. `runs.state.stopped_rounds` has what happens where it found one.

The judge is a reward model, a preference model, or an LLM: `judge: {endpoint: gpt, style: pairwise}`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from steerboard.recipes.draft import Draft
from steerboard.recipes.errors import Faults
from steerboard.recipes.inputs import StageRef, Value
from steerboard.recipes.places import Node
from steerboard.recipes.recipe import Recipe, Stage
from steerboard.recipes.sources import Source
from steerboard.runs.inputs import AFTER
from steerboard.runs.launch.lookup import KnownModel
from steerboard_contracts.methods import method_of
from steerboard_contracts.recipes.rounds import PlannedRounds

ROUNDS, COUNT, STOP, CHECK, JUDGE = "rounds", "count", "stop", "check", "judge"
PREFERENCE = "preference"


def check_of(stop: Node, name: str, policies: list[str]) -> Stage:
    """The evaluation of a round: what it made last, what it began with before that, and what all began with first."""
    judge = stop.at(JUDGE)
    # Which kind of model a name means is known when the inputs are: `judge_by_comparing`.
    judged = {JUDGE: judge} if isinstance(judge.value, dict) else {"rewards": Node.sequence([judge], stop.place)}
    written = {"run": "evaluate", "entrants": policies, "decides": True}
    fields = {key: stop.at(key) for key in stop.value if key != JUDGE}
    fields |= {key: Node(value, stop.place) for key, value in written.items()} | judged
    return Stage(name, Node.mapping(fields.items(), stop.place), (ROUNDS, STOP))


def is_judge(given: Any) -> bool:
    """A name, or an endpoint with how it is asked."""
    return isinstance(given, str) or (isinstance(given, dict) and isinstance(given.get("endpoint"), str))


def name_of_judge(stop: Node) -> str:
    judge = stop.value[JUDGE]
    return str(judge["endpoint"] if isinstance(judge, dict) else judge)


def judge_by_comparing(recipe: Recipe, values: Mapping[str, Value]) -> Recipe:
    """A preference model gives no rewards: it becomes the `judge` of the checks that name it."""
    for stage in recipe.stages.values():
        if stage.fields.get("decides") is not True or JUDGE in stage.fields:
            continue
        rewards = stage.fields.get("rewards")
        if isinstance(rewards, list) and len(rewards) == 1 and _compares(rewards[0], recipe.stages, values):
            node = stage.node.without("rewards").put((JUDGE,), stage.node.at("rewards", 0))
            recipe = recipe.with_stage(replace(stage, node=node))
    return recipe


def _compares(reference: Any, stages: Mapping[str, Stage], values: Mapping[str, Value]) -> bool:
    if not isinstance(reference, str):
        return False
    value = values.get(reference[1:]) if reference.startswith("$") else StageRef(reference)
    if isinstance(value, KnownModel):
        return value.role == PREFERENCE
    stage = stages.get(value.stage) if isinstance(value, StageRef) else None
    method = method_of(stage.fields.get("method")) if stage is not None else None
    return method is not None and method.role == PREFERENCE


def await_checks(planned: PlannedRounds, inputs: Mapping[str, dict[str, Source]]) -> dict[str, dict[str, Source]]:
    """A round waits for the check of the round before; what takes the last round's output, for the last check."""
    if planned.judge is None:
        return {**inputs}
    awaited: dict[str, str | None] = {}
    for round_, former in itertools.pairwise(reversed(planned.rounds)):
        awaited |= dict.fromkeys((*round_.stages, str(round_.check)), former.check)
    last = planned.rounds[-1]
    for name, given in inputs.items():
        outside = planned.round_of(name) is None
        if outside and any(_is_last(slot, source, last.stages) for slot, source in given.items()):
            awaited[name] = last.check
    return {
        name: {**given, f"{AFTER}0": StageRef(check)} if (check := awaited.get(name)) else given
        for name, given in inputs.items()
    }


def _is_last(slot: str, source: Source, stages: list[str]) -> bool:
    return "." not in slot and isinstance(source, StageRef) and source.stage in stages


def check_judge(
    recipe: Recipe,
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
            recipe.fault(
                faults,
                (ROUNDS, STOP, JUDGE),
                f"`{planned.judge}` is read by `{name}`, so that the rounds may learn from it; name a model "
                "that no stage learns from, such as `independent`, or an endpoint",
            )
            return
