"""Stages that are repeated in rounds, written out: every round's own stages, wired to those of the round before.

    rounds: 3
    round:
      previous: sft                # what the name `previous` means in the first round
      stages:
        answers: {run: generate, model: previous, data: $prompts, decoding: {temperature: 1.0, n: 8}}
        ...

becomes `answers-1`, `answers-2`, `answers-3`, .... In a later round `previous` is the output of the last stage of the
round before. Outside of the rounds, the name of a stage means that of the last round, in a list those of every round.
Each round generates from its own part of the prompts. `rounds: {count: 3, stop: ...}` ends them early: stop_rule.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from steerboard.recipes.errors import Faults
from steerboard.recipes.limits import MAX_STAGES, Size, refuse_large, refuse_many, size_of
from steerboard.recipes.overrides import Override
from steerboard.recipes.places import Node, Path
from steerboard.recipes.planning.stop_rule import CHECK, COUNT, JUDGE, ROUNDS, STOP, check_of, is_judge, name_of_judge
from steerboard.recipes.recipe import Recipe, Stage, renamed, stage_of, stages_in
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.recipes.rounds import PlannedRound, PlannedRounds

ROUND, PREVIOUS = "round", "previous"
MOST_ROUNDS = 20
_KEYS = (PREVIOUS, "stages")
# The field for one round's part of the prompts that all rounds share.
_PORTION = "portion"


@dataclass(frozen=True)
class Rounds:
    """What is repeated and how often, as it is written. `stop`: the rule that ends the rounds early."""

    count: int
    previous: str
    stages: Mapping[str, Stage]
    stop: Node | None

    @property
    def numbers(self) -> range:
        return range(1, self.count + 1)

    @property
    def names(self) -> list[str]:
        """Names of the stages of a round, without its number."""
        return [*self.stages, CHECK] if self.stop else [*self.stages]

    @property
    def policy(self) -> str:
        """The stage that makes what the next round begins with."""
        return [*self.stages][-1]

    def meant_in(self, round_: int) -> dict[str, str]:
        """What names in a stage of this round mean."""
        former = _named(self.policy, round_ - 1)
        names = {name: _named(name, round_) for name in self.stages}
        return names | {PREVIOUS: former if round_ > 1 else self.previous}

    def of(self, round_: int) -> list[Stage]:
        """The stages of one round."""
        written = [self._written(stage, round_) for stage in self.stages.values()]
        if self.stop is not None:
            policies = [self.previous, *(_named(self.policy, number) for number in (round_ - 1, round_) if number > 0)]
            written.append(check_of(self.stop, _named(CHECK, round_), policies))
        return written

    def _written(self, stage: Stage, round_: int) -> Stage:
        written = replace(stage.rewired(self.meant_in(round_)), name=_named(stage.name, round_))
        takes_portion = stage.kind is not None and _PORTION in stage.kind.config.model_fields and "data" in stage.fields
        if self.count > 1 and takes_portion and _PORTION not in stage.fields:
            written = written.put((_PORTION,), {"number": round_, "of": self.count})
        return written

    def read_by(self, stage: Stage) -> Stage:
        """A stage outside of the rounds: what it reads of them is in a list that of all rounds, elsewhere of the last
        one."""
        last: dict[Path, str] = {}
        in_lists: dict[Path, list[str]] = {}
        for at, reference in stage.references.items():
            name = stage_of(reference)
            if name in self.stages:
                in_lists[at] = [renamed(reference, {name: _named(name, number)}) for number in self.numbers]
            if name in self.stages and len(at) == 1:
                last[at] = in_lists.pop(at)[-1]
        return stage.naming(last).widened(in_lists)

    def planned(self) -> PlannedRounds:
        return PlannedRounds(
            start=self.previous,
            judge=name_of_judge(self.stop) if self.stop else None,
            rounds=[
                PlannedRound(
                    number=number,
                    stages=[_named(name, number) for name in self.stages],
                    check=_named(CHECK, number) if self.stop else None,
                )
                for number in self.numbers
            ],
        )


def expand_rounds(
    recipe: Recipe, changes: list[Override], faults: Faults
) -> tuple[Recipe, list[Override], PlannedRounds | None]:
    """The recipe with the stages of every round, and the overrides that are left, one of a repeated stage being one of
    each round's. The rounds are None where there are none, or none that can be written out."""
    if ROUND in recipe.sections:
        recipe, changes = _set_rounds(recipe, changes, faults)
    rounds = _read(recipe, faults)
    if rounds is None or not _names_are_free(recipe, rounds, faults):
        return recipe, changes, None
    _refuse_many(recipe, rounds)
    outside = [rounds.read_by(stage) for stage in recipe.stages.values()]
    recipe = recipe.with_stages([*outside, *(stage for number in rounds.numbers for stage in rounds.of(number))])
    changes = [expanded for change in changes for expanded in _of_each_round(recipe, change, rounds)]
    return recipe, changes, rounds.planned()


def _names_are_free(recipe: Recipe, rounds: Rounds, faults: Faults) -> bool:
    for name in rounds.names:
        for taken in (name, *(_named(name, number) for number in rounds.numbers)):
            if taken in recipe.stages:
                at = (ROUNDS, STOP) if name == CHECK else (ROUND, "stages", name)
                recipe.fault(faults, at, f"there is also a stage `{taken}` outside of the rounds")
                return False
    return True


def _refuse_many(recipe: Recipe, rounds: Rounds) -> None:
    """Counts what the rounds come to before they are written out."""
    where, counted = recipe.location((ROUNDS,)), recipe.sections[ROUNDS]
    in_round = size_of(recipe.sections[ROUND]["stages"]) + (size_of(counted) if isinstance(counted, dict) else Size())
    widened = [
        size_of(stage.node.at(*at[:2]).value)
        for stage in recipe.stages.values()
        for at, reference in stage.references.items()
        if len(at) > 1 and stage_of(reference) in rounds.stages
    ]
    number = len(recipe.stages) + rounds.count * len(rounds.names)
    refuse_many(where, "stages in all its rounds", number, MAX_STAGES)
    refuse_large(where, recipe.size + sum([in_round, *widened], Size()) * rounds.count, " in all its rounds")


def without_stages(planned: PlannedRounds, stages: Collection[str]) -> PlannedRounds:
    """The rounds with those of their stages that are not left out."""
    rounds = [
        round_.model_copy(update={"stages": [n for n in round_.stages if n in stages]}) for round_ in planned.rounds
    ]
    return planned.model_copy(update={"rounds": rounds})


def _set_rounds(recipe: Recipe, changes: list[Override], faults: Faults) -> tuple[Recipe, list[Override]]:
    """Applies `rounds=2`, `rounds.count=2`, `rounds.stop=null`, `rounds.stop.prompts=50`. Gives the others."""
    left = []
    for change in changes:
        if change.head != ROUNDS:
            left.append(change)
            continue
        rounds = recipe.sections.get(ROUNDS)
        path = change.path
        if len(path) == 1 and isinstance(rounds, dict) and not isinstance(change.value, dict):
            path = (ROUNDS, COUNT)
        elif len(path) > 1 and not isinstance(rounds, dict):
            recipe = recipe.put((ROUNDS,), {COUNT: rounds}, recipe.place((ROUNDS,)))
        target: Any = recipe.sections
        for part in path[:-1]:
            target = target.get(part) if isinstance(target, dict) else None
        if isinstance(target, dict):
            recipe = recipe.put(path, change.value, change.place)
        else:
            faults.add(f"--set {change.text}", f"the recipe has no `{'.'.join(path[:-1])}`", field=".".join(path))
    return recipe, left


def _named(stage: str, round_: int) -> str:
    return f"{stage}-{round_}"


def _read(recipe: Recipe, faults: Faults) -> Rounds | None:
    """Returns None where there are no rounds, or none that can be written out."""
    data = recipe.sections
    if ROUND not in data and ROUNDS not in data:
        return None
    counted, round_ = data.get(ROUNDS), data.get(ROUND)
    given: Any = counted if isinstance(counted, dict) else {COUNT: counted}
    number, stop = given.get(COUNT), given.get(STOP)
    sound = True
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST_ROUNDS:
        at = (ROUNDS,) if ROUNDS in data else (ROUND,)
        recipe.fault(faults, at, f"`rounds` must be a whole number from 1 to {MOST_ROUNDS}, got {number!r}")
        sound = False
    for key in given:
        if key not in (COUNT, STOP):
            recipe.fault(faults, (ROUNDS, key), f"unknown key `{key}`" + did_you_mean(key, (COUNT, STOP)))
            sound = False
    if stop is not None and not (isinstance(stop, dict) and is_judge(stop.get(JUDGE))):
        message = (
            "needs `judge`: a model that no stage learns from, as in `stop: {judge: independent}`, or "
            "`{endpoint: NAME}`"
        )
        recipe.fault(faults, (ROUNDS, STOP), message)
        sound = False
    if not isinstance(round_, dict):
        at = (ROUND,) if ROUND in data else (ROUNDS,)
        recipe.fault(faults, at, "needs `round`: what is repeated, with `previous` and `stages`")
        return None
    for key in round_:
        if key not in _KEYS:
            recipe.fault(faults, (ROUND, key), f"unknown key `{key}`" + did_you_mean(key, _KEYS))
            sound = False
    if not isinstance(round_.get(PREVIOUS), str):
        message = "needs `previous`: the stage or input that the first round begins with"
        recipe.fault(faults, (ROUND, PREVIOUS) if PREVIOUS in round_ else (ROUND,), message)
        sound = False
    stages = round_.get("stages")
    if not isinstance(stages, dict) or not stages:
        recipe.fault(faults, (ROUND,), "needs `stages`: a mapping of names to stages")
        return None
    if not sound:
        return None
    rule = None if stop is None else recipe.file.at(ROUNDS, STOP)
    return Rounds(number, round_[PREVIOUS], stages_in(recipe.file, (ROUND, "stages")), rule)


def _of_each_round(recipe: Recipe, change: Override, rounds: Rounds) -> list[Override]:
    """An override of a repeated stage is one in each round; what it refers to is of that round."""
    changes = []
    for number in rounds.numbers:
        named = {_named(name, number): name for name in rounds.names}
        of_this = next((name for name, repeated in named.items() if change.head in (name, repeated)), None)
        if of_this is None or (len(change.path) == 1 and change.value is not None):
            continue
        value, kind = change.value, recipe.stages[of_this].kind
        if isinstance(value, str) and kind is not None and len(change.path) == 2 and change.path[1] in kind.slots:
            value = renamed(value, rounds.meant_in(number))
        changes.append(replace(change, path=(of_this, *change.path[1:]), value=value))
    return changes or [change]
