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

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from steerboard.recipes.document import Document
from steerboard.recipes.errors import Faults
from steerboard.recipes.limits import MAX_STAGES, Size, refuse_large, refuse_many, size_of
from steerboard.recipes.overrides import Override
from steerboard.recipes.planning.references import references, replace_at, rewired, value_at, widen_list, write_copy
from steerboard.recipes.planning.stop_rule import (
    CHECK,
    COUNT,
    JUDGE,
    ROUNDS,
    STOP,
    check_fields,
    is_judge,
    is_stop_rule,
    name_of_judge,
    write_check_places,
)
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.recipes.rounds import PlannedRound, PlannedRounds
from steerboard_contracts.run_kinds import kind_of

ROUND, PREVIOUS = "round", "previous"
MOST_ROUNDS = 20
_KEYS = (PREVIOUS, "stages")
# The field for one round's part of the prompts that all rounds share.
_PORTION = "portion"


def unroll(document: Document, changes: list[Override], faults: Faults) -> tuple[list[Override], PlannedRounds | None]:
    """Writes the rounds into the document's stages. Gives the overrides that are left, one of a repeated stage being
    one of each round's, and the rounds; None where there are none, or none that can be written out."""
    if ROUND in document.data:
        changes = _set_rounds(document, changes, faults)
    repeated = _repeated(document, faults)
    if not repeated:
        return changes, None
    number = _count(document.data[ROUNDS])
    stop = is_stop_rule(document)
    written = [*repeated, CHECK] if stop else repeated
    stages: dict[str, Any] = document.data["stages"]
    for name in written:
        for round_ in range(1, number + 1):
            if name in stages or _named(name, round_) in stages:
                taken = name if name in stages else _named(name, round_)
                at = (ROUNDS, STOP) if name == CHECK else (ROUND, "stages", name)
                document.fault(faults, at, f"there is also a stage `{taken}` outside of the rounds")
                return changes, None
    _refuse_many(document, repeated, number)
    _widen(document, stages, repeated, number)
    for round_ in range(1, number + 1):
        for name in repeated:
            _write(document, name, round_, number, repeated)
        if stop:
            _write_check(document, round_, repeated)
    planned = PlannedRounds(
        start=document.data[ROUND][PREVIOUS],
        judge=name_of_judge(document) if stop else None,
        rounds=[
            PlannedRound(
                number=round_,
                stages=[_named(name, round_) for name in repeated],
                check=_named(CHECK, round_) if stop else None,
            )
            for round_ in range(1, number + 1)
        ],
    )
    return [one for change in changes for one in _of_each_round(document, change, written, number)], planned


def _refuse_many(document: Document, repeated: list[str], number: int) -> None:
    """Counts what the rounds come to before they are written out."""
    stages, rounds, round_ = (document.data[key] for key in ("stages", ROUNDS, ROUND))
    in_round = size_of(round_["stages"]) + (size_of(rounds) if isinstance(rounds, dict) else Size())
    widened = [
        size_of(value_at(fields, at[:2]))
        for fields in stages.values()
        if isinstance(fields, dict)
        for at in references(fields)
        if len(at) > 1 and str(value_at(fields, at)).partition(".")[0] in repeated
    ]
    written = len(repeated) + is_stop_rule(document)
    refuse_many(document.location((ROUNDS,)), "stages in all its rounds", len(stages) + number * written, MAX_STAGES)
    size = size_of(stages) + sum([in_round, *widened], Size()) * number
    refuse_large(document.location((ROUNDS,)), size, " in all its rounds")


def without_stages(planned: PlannedRounds, stages: Collection[str]) -> PlannedRounds:
    """With those of its stages that are not left out."""
    rounds = [one.model_copy(update={"stages": [n for n in one.stages if n in stages]}) for one in planned.rounds]
    return planned.model_copy(update={"rounds": rounds})


def _set_rounds(document: Document, changes: list[Override], faults: Faults) -> list[Override]:
    """Applies `rounds=2`, `rounds.count=2`, `rounds.stop=null`, `rounds.stop.prompts=50`. Gives the others."""
    left = []
    for change in changes:
        if change.head != ROUNDS:
            left.append(change)
            continue
        rounds = document.data.get(ROUNDS)
        path = change.path
        if len(path) == 1 and isinstance(rounds, dict) and not isinstance(change.value, dict):
            path = (ROUNDS, COUNT)
        elif len(path) > 1 and not isinstance(rounds, dict):
            document.put((ROUNDS,), {COUNT: rounds}, document.place((ROUNDS,)) or change.place)
        target: Any = document.data
        for part in path[:-1]:
            target = target.get(part) if isinstance(target, dict) else None
        if isinstance(target, dict):
            document.put(path, change.value, change.place)
        else:
            faults.add(f"--set {change.text}", f"the recipe has no `{'.'.join(path[:-1])}`", field=".".join(path))
    return left


def _count(rounds: Any) -> Any:
    return rounds.get(COUNT) if isinstance(rounds, dict) else rounds


def _named(stage: str, round_: int) -> str:
    return f"{stage}-{round_}"


def _repeated(document: Document, faults: Faults) -> list[str]:
    """Names of the stages in a round; empty where there are no rounds, or none that can be written out."""
    data = document.data
    if ROUND not in data and ROUNDS not in data:
        return []
    number, round_ = _count(data.get(ROUNDS)), data.get(ROUND)
    sound = True
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST_ROUNDS:
        at = (ROUNDS,) if ROUNDS in data else (ROUND,)
        document.fault(faults, at, f"`rounds` must be a whole number from 1 to {MOST_ROUNDS}, got {number!r}")
        sound = False
    if isinstance(data.get(ROUNDS), dict):
        for key in data[ROUNDS]:
            if key not in (COUNT, STOP):
                message = f"unknown key `{key}`" + did_you_mean(key, (COUNT, STOP))
                document.fault(faults, (ROUNDS, key), message)
                sound = False
        stop = data[ROUNDS].get(STOP)
        if stop is not None and not (isinstance(stop, dict) and is_judge(stop.get(JUDGE))):
            message = (
                "needs `judge`: a model that no stage learns from, as in `stop: {judge: independent}`, or "
                "`{endpoint: NAME}`"
            )
            document.fault(faults, (ROUNDS, STOP), message)
            sound = False
    if not isinstance(round_, dict):
        at = (ROUND,) if ROUND in data else (ROUNDS,)
        document.fault(faults, at, "needs `round`: what is repeated, with `previous` and `stages`")
        return []
    for key in round_:
        if key not in _KEYS:
            document.fault(faults, (ROUND, key), f"unknown key `{key}`" + did_you_mean(key, _KEYS))
            sound = False
    if not isinstance(round_.get(PREVIOUS), str):
        message = "needs `previous`: the stage or input that the first round begins with"
        document.fault(faults, (ROUND, PREVIOUS) if PREVIOUS in round_ else (ROUND,), message)
        sound = False
    stages = round_.get("stages")
    if not isinstance(stages, dict) or not stages:
        document.fault(faults, (ROUND,), "needs `stages`: a mapping of names to stages")
        return []
    return list(stages) if sound else []


def _write(document: Document, name: str, round_: int, number: int, repeated: list[str]) -> None:
    """One stage of one round, each value at the place where it is in the file."""
    template, path = (ROUND, "stages", name), ("stages", _named(name, round_))
    fields = rewired(document.data[ROUND]["stages"][name], _wiring(document, round_, repeated))
    kind = kind_of(fields.get("run"), fields.get("method")) if isinstance(fields, dict) else None
    if number > 1 and kind is not None and _PORTION in kind.config.model_fields and "data" in fields:
        fields.setdefault(_PORTION, {"number": round_, "of": number})
    write_copy(document, template, path, fields)


def _write_check(document: Document, round_: int, repeated: list[str]) -> None:
    """The evaluation by which the stop rule decides."""
    start: str = document.data[ROUND][PREVIOUS]
    policies = [start, *([_named(repeated[-1], round_ - 1)] if round_ > 1 else []), _named(repeated[-1], round_)]
    path = ("stages", _named(CHECK, round_))
    write_copy(document, (ROUNDS, STOP), path, check_fields(document, policies))
    write_check_places(document, path)


def _wiring(document: Document, round_: int, repeated: list[str]) -> Callable[[str], str]:
    """What a reference in a stage of this round means."""
    first: str = document.data[ROUND][PREVIOUS]
    policy = next(reversed(document.data[ROUND]["stages"]))
    previous = _named(policy, round_ - 1) if round_ > 1 else first

    def wired(reference: str) -> str:
        stage, dot, output = reference.partition(".")
        if stage == PREVIOUS:
            return previous + dot + output
        return _named(stage, round_) + dot + output if stage in repeated else reference

    return wired


def _widen(document: Document, stages: dict[str, Any], repeated: list[str], number: int) -> None:
    """References to repeated stages from outside: in a list all rounds, elsewhere the last one."""

    def last(reference: str) -> str:
        name, dot, output = reference.partition(".")
        return _named(name, number) + dot + output

    def each(reference: str) -> list[str]:
        name, dot, output = reference.partition(".")
        return [_named(name, round_) + dot + output for round_ in range(1, number + 1)]

    for stage, fields in stages.items():
        if not isinstance(fields, dict):
            continue
        meant = [at for at in references(fields) if str(value_at(fields, at)).partition(".")[0] in repeated]
        for at in meant:
            if len(at) == 1:
                replace_at(fields, at, last)
        for slot in dict.fromkeys(str(at[0]) for at in meant if len(at) > 1):
            items = {int(at[1]): at[2:] for at in meant if at[0] == slot}
            widen_list(document, ("stages", stage, slot), items, each)


def _of_each_round(document: Document, change: Override, repeated: list[str], number: int) -> list[Override]:
    """An override of a repeated stage is one in each round; what it refers to is of that round."""
    found = []
    for round_ in range(1, number + 1):
        of_this = next((_named(name, round_) for name in repeated if change.head in (name, _named(name, round_))), None)
        if of_this is None or (len(change.path) == 1 and change.value is not None):
            continue
        value = change.value
        fields = document.data["stages"][of_this]
        kind = kind_of(fields.get("run"), fields.get("method")) if isinstance(fields, dict) else None
        if isinstance(value, str) and kind is not None and len(change.path) == 2 and change.path[1] in kind.slots:
            value = _wiring(document, round_, repeated)(value)
        found.append(replace(change, path=(of_this, *change.path[1:]), value=value))
    return found or [change]
