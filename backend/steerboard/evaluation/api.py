"""Evaluations over HTTP: prompts, entrants, their answers, and the reward models that score them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query
from sqlalchemy import select

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.evaluation import lookup, queries, rewards, service
from steerboard.evaluation.entrants.schemas import EntrantIn, EntrantOut
from steerboard.evaluation.prompt_pages import prompt_page
from steerboard.evaluation.schemas import (
    EvaluationChange,
    EvaluationCreate,
    EvaluationDetail,
    EvaluationOut,
    PromptPage,
    RewardAssessmentOut,
    RewardsIn,
)
from steerboard.evaluation.tables import Evaluation
from steerboard.marks.listing import MarksFilter
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, named, paginate

router = Router(prefix="/evaluations", tags=["evaluations"])

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]
Run = Annotated[Access, Depends(AccessTo("run"))]


@router.get("")
def list_evaluations(
    session: Db,
    access: Read,
    marks: Annotated[MarksFilter, Depends()],
    name: Annotated[str | None, Query(description="A part of the name.")] = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Page[EvaluationOut]:
    """The newest first."""
    query = named(select(Evaluation).where(Evaluation.project_id == access.project.id), Evaluation, name)
    return paginate(
        session,
        marks.of(query, access, Evaluation, "evaluation"),
        Evaluation.id,
        lambda listed: queries.evaluations_out(session, [listed])[0],
        cursor=cursor,
        limit=limit,
        convert_all=lambda page: queries.evaluations_out(session, page),
    )


@router.post("", status_code=201, responses=problems(404, 409))
def create_evaluation(body: EvaluationCreate, session: Db, access: Run) -> EvaluationOut:
    """Create an evaluation from prompts and entrants. Generation starts immediately; reward models follow once all
    answers are there."""
    made = service.create(session, access.project, body, access.actor)
    audit(session, access, "evaluation.create", f"evaluation {made.name} {made.id}", _short(body))
    return _out(session, made)


@router.get("/{evaluation}", responses=problems(404))
def get_evaluation(evaluation: str, session: Db, access: Read) -> EvaluationDetail:
    """Get an evaluation by id or name, with all its parts and its unfinished work."""
    return queries.detail(session, lookup.get_evaluation(session, access.project, evaluation))


@router.patch("/{evaluation}", responses=problems(404, 409))
def change_evaluation(evaluation: str, body: EvaluationChange, session: Db, access: Write) -> EvaluationOut:
    """Change the name or the description of an evaluation."""
    stored = lookup.get_evaluation(session, access.project, evaluation)
    before = stored.name
    service.change(session, access.project, stored, body)
    detail = {"name": before, **body.model_dump(exclude_none=True)}
    audit(session, access, "evaluation.change", f"evaluation {stored.name} {stored.id}", detail)
    return _out(session, stored)


@router.delete("/{evaluation}", status_code=204, responses=problems(404, 409))
def delete_evaluation(evaluation: str, session: Db, access: Write) -> None:
    """Delete an evaluation with its answers and results, unless people have ranked them."""
    stored = lookup.get_evaluation(session, access.project, evaluation)
    target = f"evaluation {stored.name} {stored.id}"
    service.delete(session, stored, access.actor)
    audit(session, access, "evaluation.delete", target)


@router.post("/{evaluation}/entrants", status_code=201, responses=problems(404, 409))
def add_entrant(evaluation: str, body: EntrantIn, session: Db, access: Run) -> EntrantOut:
    """Add a model or an endpoint that answers the same prompts."""
    stored = lookup.get_evaluation(session, access.project, evaluation)
    entrant = service.add_entrant(session, access.project, stored, body, access.actor)
    detail = {"entrant": entrant.name, **body.model_dump(mode="json", exclude_defaults=True)}
    audit(session, access, "evaluation.add_entrant", f"evaluation {stored.name} {stored.id}", detail)
    return queries.entrants_out(session, stored, [entrant])[0]


@router.get("/{evaluation}/prompts", responses=problems(404))
def list_evaluation_prompts(
    evaluation: str,
    session: Db,
    access: Read,
    after: Annotated[int, Query(ge=-1, description="Position of the last prompt of the page before.")] = -1,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    seen: Annotated[bool | None, Query(description="Only prompts that occur in training data, or do not.")] = None,
    category: str | None = None,
    whole: Annotated[bool, Query(description="Do not cut long texts; ask for one prompt at a time.")] = False,
) -> PromptPage:
    """The prompts by position, with every entrant's answers and their rewards. With long texts a page may be short and
    still have a `next`."""
    stored = lookup.get_evaluation(session, access.project, evaluation)
    return prompt_page(session, stored, after=after, limit=limit, seen=seen, category=category, whole=whole)


@router.post("/{evaluation}/rewards", status_code=201, responses=problems(404))
def add_rewards(evaluation: str, body: RewardsIn, session: Db, access: Run) -> RewardAssessmentOut:
    """Let a reward model score all answers. A repeated call scores only the new ones."""
    stored = lookup.get_evaluation(session, access.project, evaluation)
    made = rewards.assess(session, access.project, stored, body.model, access.actor, body.engine)
    audit(
        session,
        access,
        "evaluation.add_rewards",
        f"evaluation {stored.name} {stored.id}",
        {"model": made.name},
    )
    return queries.assessments_out(session, stored, [made])[0]


def _out(session: Db, evaluation: Evaluation) -> EvaluationOut:
    session.flush()
    session.refresh(evaluation)
    return queries.evaluations_out(session, [evaluation])[0]


def _short(body: EvaluationCreate) -> dict[str, object]:
    return body.model_dump(mode="json", exclude_defaults=True)
