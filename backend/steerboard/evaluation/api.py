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
    name: Annotated[str | None, Query(description="A part of the name.")] = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Page[EvaluationOut]:
    """The newest first."""
    return paginate(
        session,
        named(select(Evaluation).where(Evaluation.project_id == access.project.id), Evaluation.name, name),
        Evaluation.id,
        lambda one: queries.evaluations_out(session, [one])[0],
        cursor=cursor,
        limit=limit,
        convert_all=lambda page: queries.evaluations_out(session, page),
    )


@router.post("", status_code=201, responses=problems(404, 409))
def create_evaluation(body: EvaluationCreate, session: Db, access: Run) -> EvaluationOut:
    """Choose prompts and entrants. Generation starts immediately; reward models follow when all answers are there."""
    made = service.create(session, access.project, body, access.actor)
    audit(session, access, "evaluation.create", f"evaluation {made.name} {made.id}", _short(body))
    return _out(session, made)


@router.get("/{evaluation}", responses=problems(404))
def get_evaluation(evaluation: str, session: Db, access: Read) -> EvaluationDetail:
    """By id or name, with all its parts and what is left to do."""
    return queries.detail(session, lookup.get_evaluation(session, access.project, evaluation))


@router.patch("/{evaluation}", responses=problems(404, 409))
def change_evaluation(evaluation: str, body: EvaluationChange, session: Db, access: Write) -> EvaluationOut:
    """Another name or description."""
    found = lookup.get_evaluation(session, access.project, evaluation)
    before = found.name
    service.change(session, access.project, found, body)
    detail = {"name": before, **body.model_dump(exclude_none=True)}
    audit(session, access, "evaluation.change", f"evaluation {found.name} {found.id}", detail)
    return _out(session, found)


@router.delete("/{evaluation}", status_code=204, responses=problems(404, 409))
def delete_evaluation(evaluation: str, session: Db, access: Write) -> None:
    """With its answers and all that was found. Not when people have ranked them."""
    found = lookup.get_evaluation(session, access.project, evaluation)
    target = f"evaluation {found.name} {found.id}"
    service.delete(session, found, access.actor)
    audit(session, access, "evaluation.delete", target)


@router.post("/{evaluation}/entrants", status_code=201, responses=problems(404, 409))
def add_entrant(evaluation: str, body: EntrantIn, session: Db, access: Run) -> EntrantOut:
    """One more model or endpoint, which answers the same prompts."""
    found = lookup.get_evaluation(session, access.project, evaluation)
    entrant = service.add_entrant(session, access.project, found, body, access.actor)
    detail = {"entrant": entrant.name, **body.model_dump(mode="json", exclude_defaults=True)}
    audit(session, access, "evaluation.add_entrant", f"evaluation {found.name} {found.id}", detail)
    return queries.entrants_out(session, found, [entrant])[0]


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
    """By position, with every entrant's answers and their rewards. With long texts a page may be short and still have a
    `next`."""
    found = lookup.get_evaluation(session, access.project, evaluation)
    return prompt_page(session, found, after=after, limit=limit, seen=seen, category=category, whole=whole)


@router.post("/{evaluation}/rewards", status_code=201, responses=problems(404))
def add_rewards(evaluation: str, body: RewardsIn, session: Db, access: Run) -> RewardAssessmentOut:
    """Let a reward model score all answers. Asked for again, it scores those that are new."""
    found = lookup.get_evaluation(session, access.project, evaluation)
    made = rewards.assess(session, access.project, found, body.model, access.actor, body.engine)
    audit(session, access, "evaluation.add_rewards", f"evaluation {found.name} {found.id}", {"model": made.name})
    return queries.assessments_out(session, found, [made])[0]


def _out(session: Db, evaluation: Evaluation) -> EvaluationOut:
    session.flush()
    session.refresh(evaluation)
    return queries.evaluations_out(session, [evaluation])[0]


def _short(body: EvaluationCreate) -> dict[str, object]:
    return body.model_dump(mode="json", exclude_defaults=True)
