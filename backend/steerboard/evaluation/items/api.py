"""The items behind a report's figures over HTTP: filtered, one by one, and each judge's call."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Request
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.evaluation.items import queries
from steerboard.evaluation.items.answer_trace import answer_trace
from steerboard.evaluation.items.calls import call_of
from steerboard.evaluation.items.filters import ItemFilters
from steerboard.evaluation.items.presenters import item
from steerboard.evaluation.items.schemas import ItemDetail, ItemPage, JudgeCall
from steerboard.evaluation.items.trace_schemas import AnswerTrace
from steerboard.evaluation.judges.service import get_judge
from steerboard.evaluation.lookup import get_evaluation
from steerboard.evaluation.report.api import ReportOf, make_current
from steerboard.evaluation.report.assembly import at_one_moment, evaluation_of
from steerboard.platform.concurrency import in_turn
from steerboard.platform.http.errors import problems

router = Router(prefix="/evaluations/{evaluation}", tags=["evaluations"])

Read = Annotated[Access, Depends(AccessTo("read"))]
Filters = Annotated[ItemFilters, Depends()]


@router.get("/items", responses=problems(404))
async def list_items(
    request: Request,
    target: ReportOf,
    filters: Filters,
    after: Annotated[int, Query(ge=-1, description="`next` of the page before.")] = -1,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> ItemPage:
    """The prompts behind a figure of the report, by position: wins, ties and losses of one entrant against another by a
    source, or those on which sources disagree. They are what the report counts, so their number is its figure."""
    evaluation_id = target[1]
    await make_current(request, evaluation_id)

    def read(session: Session) -> ItemPage:
        return queries.page(session, evaluation_id, filters, after=after, limit=limit)

    return await in_turn(request, at_one_moment, request.app.state.sessions, read)


@router.get("/items/{position}", responses=problems(404))
async def get_item(
    request: Request,
    target: ReportOf,
    filters: Filters,
    position: Annotated[int, Path(ge=0, lt=2**31, description="Position of the prompt.")],
) -> ItemDetail:
    """One prompt with its answers and their rewards, verdicts, people's ranks, and its neighbours among those that fit
    the filters. With two entrants, verdicts are on these alone."""
    evaluation_id = target[1]
    await make_current(request, evaluation_id, newest=False)

    def read(session: Session) -> ItemDetail:
        return item(session, evaluation_of(session, evaluation_id), position, filters)

    return await in_turn(request, at_one_moment, request.app.state.sessions, read)


@router.get("/items/{position}/answers/{entrant}", responses=problems(404))
def get_answer_trace(
    evaluation: str,
    position: Annotated[int, Path(ge=0, lt=2**31, description="Position of the prompt.")],
    entrant: str,
    session: Db,
    access: Read,
    sample: Annotated[int, Query(ge=0, lt=2**31, description="Number of the answer, where a prompt has several.")] = 0,
) -> AnswerTrace:
    """How an answer came about: the prompt as the model was given it, tokens, decoding and seed, how it ended; and the
    rewards and verdicts on it, with what judges' calls took."""
    return answer_trace(session, get_evaluation(session, access.project, evaluation), position, entrant, sample)


@router.get("/judges/{judge}/verdicts/{number}/call", responses=problems(404))
def get_judge_call(
    evaluation: str,
    judge: str,
    number: Annotated[int, Path(ge=0, lt=2**63, description="Id of the verdict.")],
    session: Db,
    access: Read,
) -> JudgeCall:
    """The call that a verdict was read from: messages, answer, tokens, cost, seconds, and whether it was cached."""
    stored = get_evaluation(session, access.project, evaluation)
    return call_of(session, stored, get_judge(session, stored, judge), number)
