"""The report of a pipeline's rounds from what was read."""

from __future__ import annotations

import uuid
from typing import Literal

import numpy as np

from steerboard.evaluation.report.data import Floats
from steerboard.evaluation.rounds.loader import Measured, RoundsFacts
from steerboard.runs.state.states import state_of
from steerboard_contracts.fields import RunKind
from steerboard_contracts.recipes.rounds import PlannedRound
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.rounds import (
    RoundAnswers,
    RoundCost,
    RoundRow,
    RoundSelection,
    RoundsReport,
    RoundState,
)
from steerboard_statistics.bootstrap import mean_interval
from steerboard_statistics.proportions import win_rate_interval
from steerboard_statistics.ranks import without_noise

# The units of the scores that answers are selected by.
_UNITS: dict[str, Literal["raw", "z", "win_rate"]] = {"raw": "raw", "zscore": "z", "probability": "win_rate"}

TAUGHT = (
    "{judge} scored the answers that the rounds learned from, so that its rewards and win rates flatter later rounds. "
    "An independent reward model among the evaluation's `rewards` would not."
)


def rounds_report(facts: RoundsFacts) -> RoundsReport:
    """Rows of all planned rounds, in their order."""
    fallen = min((number for number, decision in facts.decisions.items() if decision.fell), default=None)
    rows = [_row(facts, round_, fallen) for round_ in facts.planned.rounds]
    report = RoundsReport(
        pipeline=facts.pipeline,
        start=facts.planned.start,
        judge=facts.planned.judge.removeprefix("$") if facts.planned.judge else None,
        rounds=rows,
        stopped_after=fallen,
        result=_result(rows, fallen),
        verdict="",
    )
    report.verdict = _verdict(report)
    taught = {row.answers.judge for row in rows if row.answers is not None and not row.answers.independent}
    report.notes = [TAUGHT.format(judge=judge) for judge in sorted(taught)]
    return report


def _row(facts: RoundsFacts, planned: PlannedRound, fallen: int | None) -> RoundRow:
    names = [*planned.stages, *([planned.check] if planned.check else [])]
    stages = [facts.stages[name] for name in names if name in facts.stages]
    skipped = next((stage for stage in stages if stage.state == "skipped"), None)
    made = planned.number in facts.policies
    return RoundRow(
        number=planned.number,
        state=_state([stage.state for stage in stages]),
        reason=skipped.reason if skipped else None,
        stage=planned.policy,
        stages=names,
        policy=facts.policies.get(planned.number),
        selection=_selection(facts, planned.number),
        answers=_answers(facts, planned.number),
        decision=facts.decisions.get(planned.number),
        kept=None if not made else fallen is None or planned.number < fallen,
        cost=RoundCost(
            device_seconds=sum(stage.device_seconds for stage in stages),
            sampled_tokens=_tokens(facts, planned, "generate"),
            trained_tokens=_tokens(facts, planned, "train"),
        ),
    )


def _state(states: list[str]) -> RoundState:
    if states and all(state == "skipped" for state in states):
        return "skipped"
    return state_of({state: states.count(state) for state in states})


def _tokens(facts: RoundsFacts, planned: PlannedRound, kind: RunKind) -> int | None:
    given = [facts.stages[name] for name in planned.stages if name in facts.stages]
    counts = [stage.tokens for stage in given if stage.kind == kind and stage.tokens is not None]
    return sum(counts) if counts else None


def _selection(facts: RoundsFacts, number: int) -> RoundSelection | None:
    selection = facts.selections.get(number)
    if selection is None:
        return None
    alone = selection.rewards[0] if len(selection.rewards) == 1 and selection.tournament is None else None
    chose = (
        [selection.tournament.judge]
        if selection.tournament is not None
        else [reward.source for reward in selection.rewards]
    )
    figures = alone or selection
    return RoundSelection(
        groups=selection.groups,
        kept_groups=selection.kept_groups,
        rows=selection.rows,
        dropped=selection.dropped,
        reward=" + ".join(chose),
        units="raw" if alone else _UNITS[selection.scale],
        mean=figures.mean,
        best=figures.best,
        characters=selection.curve[0].characters if selection.curve else None,
    )


def _answers(facts: RoundsFacts, number: int) -> RoundAnswers | None:
    """The answers by the first evaluation that has this round's policy."""
    source = facts.sources.get(number)
    measured = next((measured for measured in facts.measured if source in measured.rewards), None)
    if measured is None or source is None:
        return None
    rewards = measured.rewards[source]
    tokens = measured.tokens.get(source)
    units: Literal["z", "raw"] = "z" if measured.units == "z" else "raw"
    return RoundAnswers(
        stage=measured.stage,
        judge=measured.judge,
        independent=measured.independent,
        units=units,
        reward=mean_interval(rewards, seed=measured.seed),
        tokens=mean_interval(tokens, seed=measured.seed) if tokens is not None else None,
        against_previous=_win_rate(measured, rewards, facts.sources.get(number - 1)),
        against_start=_win_rate(measured, rewards, facts.sources.get(0)),
    )


def _win_rate(measured: Measured, rewards: Floats, other: uuid.UUID | None) -> Estimate | None:
    if other is None or other not in measured.rewards:
        return None
    apart = without_noise(rewards - measured.rewards[other])
    apart = apart[np.isfinite(apart)]
    return win_rate_interval(int((apart > 0).sum()), int((apart == 0).sum()), int((apart < 0).sum()))


def _result(rows: list[RoundRow], fallen: int | None) -> int | None:
    if fallen is not None:
        return fallen - 1
    return rows[-1].number if all(row.state == "succeeded" for row in rows) else None


def _verdict(report: RoundsReport) -> str:
    planned = len(report.rounds)
    if report.stopped_after is not None:
        decision = report.rounds[report.stopped_after - 1].decision
        assert decision is not None
        result = f"round {report.result}" if report.result else f"{report.start}, with which the rounds began"
        left_out = planned - report.stopped_after
        which = f"round {planned} was" if left_out == 1 else f"rounds {report.stopped_after + 1} to {planned} were"
        rest = f" {which[0].upper()}{which[1:]} not run." if left_out else ""
        return f"After round {report.stopped_after}, {decision.words}.{rest} The result is that of {result}."
    if report.result is not None:
        checked = f"; {report.judge} did not fall" if report.judge else ""
        return f"{planned} of {planned} rounds were run{checked}." if planned > 1 else f"The round was run{checked}."
    done = sum(row.state == "succeeded" for row in report.rounds)
    broken = next((row for row in report.rounds if row.state in ("failed", "cancelled")), None)
    if broken is not None:
        return f"{done} of {planned} rounds were run; round {broken.number} {_ended(broken.state)}."
    return f"{done} of {planned} rounds have been run so far."


def _ended(state: str) -> str:
    return "was cancelled" if state == "cancelled" else state
