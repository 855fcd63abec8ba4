"""Juries of an evaluation: which judges count as one source. Callers commit."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.errors import NameTaken
from steerboard.evaluation.judge_tables import Jury
from steerboard.evaluation.judges.checks import InvalidJudge
from steerboard.evaluation.judges.service import get_judge, judges_of
from steerboard.evaluation.juries.schemas import JuryIn, JuryOut
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import find
from steerboard_contracts.errors import ErrorLocation


def juries_of(session: Session, evaluation: Evaluation) -> Sequence[Jury]:
    """Oldest first."""
    return session.scalars(select(Jury).where(Jury.evaluation_id == evaluation.id).order_by(Jury.id)).all()


def get_jury(session: Session, evaluation: Evaluation, ref: str) -> Jury:
    """The jury by id or name. Raises `NotFound` (`unknown_jury`)."""
    jury = find(session, select(Jury).where(Jury.evaluation_id == evaluation.id), Jury.id, Jury.name, ref)
    if jury is None:
        known = ", ".join(listed.name for listed in juries_of(session, evaluation))
        raise NotFound(
            f"evaluation {evaluation.name!r} has no jury {ref!r}; it has {known or 'none'}", code="unknown_jury"
        )
    return jury


def create_jury(session: Session, evaluation: Evaluation, given: JuryIn, actor: str) -> Jury:
    """Raises `NotFound` (`unknown_judge`), `InvalidJudge` for a judge that is named twice, and `NameTaken`."""
    judges = [get_judge(session, evaluation, ref) for ref in given.judges]
    if len({judge.id for judge in judges}) < len(judges):
        raise InvalidJudge(
            "a jury can have each judge only once",
            errors=[ErrorLocation(location="body.judges", message="names a judge twice")],
            hint="Name at least two different judges.",
        )
    # Two sources of one name could not be told apart in the report.
    taken = {named.name for named in judges_of(session, evaluation)} | {
        named.name for named in juries_of(session, evaluation)
    }
    if given.name in taken:
        raise NameTaken(f"there is already a judge or a jury {given.name!r}", hint="Give it another `name`.")
    jury = Jury(
        evaluation_id=evaluation.id,
        name=given.name,
        judges=[str(judge.id) for judge in judges],
        rule=given.rule,
        created_by=actor,
    )
    session.add(jury)
    session.flush()
    return jury


def jury_out(session: Session, evaluation: Evaluation, juries: Sequence[Jury]) -> list[JuryOut]:
    names = {str(judge.id): judge.name for judge in judges_of(session, evaluation)}
    return [
        JuryOut.model_validate(
            {
                "id": jury.id,
                "name": jury.name,
                "judges": [names[judge] for judge in jury.judges if judge in names],
                "rule": jury.rule,
                "created_by": jury.created_by,
                "created_at": jury.created_at,
            }
        )
        for jury in juries
    ]
