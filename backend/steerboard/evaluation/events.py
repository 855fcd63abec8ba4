"""What every change of an evaluation leaves behind: a higher version and an event."""

from __future__ import annotations

import uuid

from sqlalchemy import CompoundSelect, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from steerboard.accounts.access import Access
from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.tables import CALIBRATION, Entrant, Evaluation, RewardAssessment
from steerboard.platform.database import new_id
from steerboard.platform.events.log import channel, wake
from steerboard.platform.statements import Statement
from steerboard.runs.hooks import News
from steerboard.runs.state.announcements import announce, note_news
from steerboard.runs.state.states import ENDED, state_of
from steerboard.runs.tables import Run
from steerboard_contracts.wording import counted


def changed(session: Session, evaluation: Evaluation, what: str) -> None:
    """Raise the version, so the report is computed again, and notify the project's readers.

    `what`: one word for the part that changed (`created`, `answers`, `rewards`, `judge`, `campaign`, `ranking`, ...).
    Call it late in a transaction: other writers of the evaluation wait from here to the commit. The event itself is
    written at the commit.
    """
    session.execute(
        update(Evaluation)
        .where(Evaluation.id == evaluation.id)
        .values(version=Evaluation.version + 1)
        .execution_options(synchronize_session=False)
    )
    session.expire(evaluation, ["version"])
    announce(
        session,
        evaluation.project_id,
        "evaluation.changed",
        {"id": str(evaluation.id), "name": evaluation.name, "what": what},
    )


_RANKED = Statement("""
    WITH raised AS (
        UPDATE evaluations SET version = version + 1 WHERE id = CAST(:evaluation AS uuid) RETURNING project_id, name
    ),
    audited AS (
        INSERT INTO audit_log (id, project_id, actor, action, target, detail)
        SELECT :audit_id, project_id, :actor, :action, :target, '{}' FROM raised
    ),
    stepped AS (
        UPDATE event_streams e SET last_id = last_id + 1 FROM raised WHERE e.project_id = raised.project_id
        RETURNING e.project_id, e.last_id, raised.name
    )
    INSERT INTO events (project_id, id, type, payload)
    SELECT project_id, last_id, 'evaluation.changed',
        jsonb_build_object('id', CAST(:evaluation AS text), 'name', name, 'what', 'ranking')
    FROM stepped""")


def ranked(session: Session, evaluation_id: uuid.UUID, access: Access, action: str, target: str) -> None:
    """`changed`, with its audit row and its event, by a ranking, of which there may be a hundred a second.

    All in one statement, for all who rank wait for each other from its start to the commit that must follow it.
    """
    session.flush()
    given = {"evaluation": str(evaluation_id), "audit_id": new_id(), "actor": access.actor}
    _RANKED(session, given | {"action": action, "target": target})
    wake(session, channel(access.project.id))


def run_moved(session: Session, evaluation_id: uuid.UUID) -> None:
    """A run of the evaluation has ended, or resumed: what is finished, and its report, differ now. Those of evaluations
    whose judges are calibrated by it do, too."""
    evaluation = session.get(Evaluation, evaluation_id)
    if evaluation is None:
        return
    changed(session, evaluation, "run")
    _tell_end(session, evaluation)
    if evaluation.prompts_from.get("kind") == CALIBRATION:
        here, there = aliased(Judge), aliased(Judge)
        same = or_(here.endpoint_id == there.endpoint_id, here.model_id == there.model_id)
        calibrated = select(there.evaluation_id).join(here, same).where(here.evaluation_id == evaluation.id)
        others = Evaluation.id.in_(calibrated) & (Evaluation.id != evaluation.id)
        for other in session.scalars(select(Evaluation).where(others).order_by(Evaluation.id)):
            changed(session, other, "judge")


def assessing_runs(evaluation_id: uuid.UUID) -> CompoundSelect[uuid.UUID | None]:
    """The ids of the runs of entrants, reward models and judges."""
    first, *others = (
        select(table.run_id).where(table.evaluation_id == evaluation_id, table.run_id.is_not(None))
        for table in (Entrant, RewardAssessment, Judge)
    )
    return first.union(*others)


def _tell_end(session: Session, evaluation: Evaluation) -> None:
    """Notices tell when the last of an evaluation's runs has ended. Its row is locked, so that of two transactions
    that end the last two, one reports it."""
    runs = assessing_runs(evaluation.id).subquery()
    rows = session.execute(
        select(Run.state, func.count()).join(runs, runs.c.run_id == Run.id).group_by(Run.state).order_by(Run.state)
    )
    counts = {row[0]: row[1] for row in rows}
    state = state_of(counts)
    if state in ENDED:
        about = {
            "id": str(evaluation.id),
            "name": evaluation.name,
            "state": state,
            "reason": ", ".join(f"{counted(count, 'run')} {each}" for each, count in counts.items()),
        }
        path = f"/evaluations/{evaluation.id}"
        note_news(session, News(evaluation.project_id, f"evaluation.{state}", about, path=path))
