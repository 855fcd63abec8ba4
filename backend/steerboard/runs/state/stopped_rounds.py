"""What happens to a pipeline's runs when a judge has fallen and the rounds end before the last one.

The evaluation of each round keeps the decision in its report, in the transaction in which it succeeds. Everything here
follows from these reports, for each run in the transaction that settles it, so nothing is decided twice:

- a run of a later round is skipped;
- outside of the rounds, a list is of the rounds that were run;
- elsewhere, the last round means the last one that was kept: the one before the fall. Before the first round that is
  what the rounds began with;
- a run that needs something of a round that was not run, and that no round that was kept has, is skipped as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.runs.inputs import AFTER
from steerboard.runs.state.list_inputs import NothingLeft, copied, give
from steerboard.runs.state.transitions import move
from steerboard.runs.tables import Pipeline, Run, RunInput, RunLog, RunOutput
from steerboard_contracts.recipes.rounds import PlannedRound, PlannedRounds
from steerboard_contracts.report.decision import RoundDecision
from steerboard_contracts.report.kept import decision_of


@dataclass(frozen=True)
class Stop:
    """`check`: the evaluation of `round` that found the fall."""

    planned: PlannedRounds
    round: PlannedRound
    check: Run
    decision: RoundDecision

    @property
    def reason(self) -> str:
        return f"not run: after round {self.round.number}, {self.decision.words}"


class _NotThere(Exception):
    """No round that was kept has what an input needs."""


def planned_rounds(pipeline: Pipeline) -> PlannedRounds | None:
    """Returns None where its recipe has no rounds."""
    given = pipeline.settings.get("rounds")
    return None if given is None else PlannedRounds.model_validate(given)


def decisions(session: Session, pipeline: Pipeline, planned: PlannedRounds) -> dict[int, tuple[Run, RoundDecision]]:
    """The evaluation of each round that has ended, and what it decided."""
    numbers = {round_.check: round_.number for round_ in planned.rounds if round_.check}
    rows = session.execute(
        select(Run, RunOutput.document)
        .join(RunOutput, (RunOutput.run_id == Run.id) & (RunOutput.type == "report"))
        .where(Run.pipeline_id == pipeline.id, Run.parent_id.is_(None), Run.name.in_(numbers), Run.state == "succeeded")
    )
    return {
        numbers[run.name]: (run, decision)
        for run, document in rows
        if document is not None and (decision := decision_of(document)) is not None
    }


def leave_out(session: Session, run: Run, upstream: Sequence[Run]) -> bool:
    """Called for a locked pending run whose upstream runs are all done. Returns whether it was skipped; where it goes
    on, its inputs and its config are those of the rounds that were run."""
    if run.pipeline_id is None or run.parent_id is not None:
        return False
    if not any(source.state == "skipped" or source.config.get("decides") for source in upstream):
        return False
    stop = _stop_of(session, session.get_one(Pipeline, run.pipeline_id))
    if stop is None:
        return False
    reason = _why_left_out(session, run, upstream, stop)
    if reason is None:
        return False
    move(session, run, "skipped", reason, "round_left_out")
    return True


def _why_left_out(session: Session, run: Run, upstream: Sequence[Run], stop: Stop) -> str | None:
    """Returns None for a run that continues; one outside of the rounds has inputs that are there then."""
    own_round = stop.planned.round_of(run.name)
    if own_round is not None:
        return stop.reason if own_round.number > stop.round.number else None
    try:
        _rewire(session, run, {source.id: source for source in upstream}, stop)
    except _NotThere as error:
        return f"{stop.reason}; {error}"
    return None


def _stop_of(session: Session, pipeline: Pipeline) -> Stop | None:
    planned = planned_rounds(pipeline)
    if planned is None or planned.judge is None:
        return None
    for number, (check, decision) in sorted(decisions(session, pipeline, planned).items()):
        if decision.fell:
            return Stop(planned, planned.rounds[number - 1], check, decision)
    return None


def _rewire(session: Session, run: Run, upstream: Mapping[Any, Run], stop: Stop) -> None:
    """Gives a run outside of the rounds the inputs that there are. Raises `_NotThere`, and has changed nothing then."""
    rows = session.scalars(select(RunInput).where(RunInput.run_id == run.id).order_by(RunInput.name)).all()
    notes: list[str] = []
    kept: list[RunInput] = []
    left_out: set[str] = set()
    for row in rows:
        maker = upstream.get(row.upstream_run_id)
        if maker is None or row.name.startswith(AFTER):
            kept.append(copied(row))
        elif "." in row.name:
            if maker.state == "skipped":
                left_out.add(row.name)
                notes.append(f"{row.name} is left out: {maker.name} was not run")
            else:
                kept.append(copied(row))
        else:
            replacement = _instead(session, row, maker, stop)
            kept.append(replacement or copied(row))
            if replacement is not None:
                notes.append(f"{row.name} is that of round {stop.round.number - 1}, before the fall, not {maker.name}")
    if not notes:
        return
    try:
        give(session, run, rows, kept, left_out)
    except NothingLeft as error:
        raise _NotThere(str(error)) from None
    for note in notes:
        message = f"The rounds were stopped; {note}."
        session.add(RunLog(run_id=run.id, attempt=run.attempt, level="info", message=message))
    session.flush()


def _instead(session: Session, row: RunInput, maker: Run, stop: Stop) -> RunInput | None:
    """What takes the place of a single input; None where it stays. Raises `_NotThere`."""
    last = stop.planned.rounds[-1]
    if maker.name not in last.stages:
        if maker.state == "skipped":
            raise _NotThere(f"it needs {maker.name}")
        return None
    # The round that fell began with what was kept: the entrant before the last one of its evaluation.
    if maker.name == last.policy and row.upstream_output is None:
        entrants = len(stop.check.config["entrants"])
        source = session.get_one(RunInput, (stop.check.id, f"entrants.{entrants - 2}"))
        return copied(source, run_id=row.run_id, name=row.name)
    if stop.round.number == 1:
        raise _NotThere(f"it needs {maker.name}, and no round was kept")
    name = stop.planned.rounds[stop.round.number - 2].stages[last.stages.index(maker.name)]
    kept = session.scalar(
        select(Run.id).where(Run.pipeline_id == stop.check.pipeline_id, Run.parent_id.is_(None), Run.name == name)
    )
    return copied(row, upstream_run_id=kept)
