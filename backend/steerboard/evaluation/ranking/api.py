"""The annotator's queue over HTTP. No answer of these endpoints, refusals included, names an entrant.

A call that is sent again changes nothing by itself, so no `Idempotency-Key` is kept: `next` gives what is at hand,
submissions and skips carry a key of their own, and an undone task is not undone twice.
"""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import Query

from steerboard.accounts.http.routes import Router
from steerboard.evaluation.events import ranked
from steerboard.evaluation.ranking import drafts, queue, spans, submissions
from steerboard.evaluation.ranking.campaign_end import campaign_moved
from steerboard.evaluation.ranking.dependencies import Annotator, Ranking, RankingRoute
from steerboard.evaluation.ranking.errors import NotTaken
from steerboard.evaluation.ranking.presenters import my_tasks, open_campaigns
from steerboard.evaluation.ranking.progress import progress
from steerboard.evaluation.ranking.schemas import (
    Draft,
    DraftSaved,
    MyTasks,
    NextRequest,
    NextTasks,
    OpenCampaigns,
    Skip,
    Submit,
    Submitted,
    Task,
)
from steerboard.evaluation.ranking.submissions import Handled
from steerboard.platform.http.errors import problem_response, problems

router = Router(prefix="/rankings", tags=["ranking"], route_class=RankingRoute)


@router.get("", responses=problems(404))
async def list_open_campaigns(person: Ranking) -> OpenCampaigns:
    """Campaigns to rank, oldest first; closed ones only where the caller took part."""
    return await person.does(lambda me: OpenCampaigns(campaigns=open_campaigns(me.session, me.project, me.user_id)))


@router.get("/mine", responses=problems(404))
async def list_my_rankings(
    person: Ranking, campaign: uuid.UUID | None = None, limit: Annotated[int, Query(ge=1, le=200)] = 20
) -> MyTasks:
    """The caller's latest submissions and skips, to review or undo."""
    return await person.does(lambda me: MyTasks(items=my_tasks(me.session, me.project, me.user_id, campaign, limit)))


@router.post("/{campaign}/next", responses=problems(404))
async def next_tasks(person: Ranking, campaign: uuid.UUID, body: NextRequest) -> NextTasks:
    """Tasks to work on, locked to the caller: first those already at hand, then new ones."""
    return await person.does(lambda me: queue.next_tasks(me.session, me.project, campaign, me.user_id, body.ahead))


@router.put("/tasks/{task}/draft", responses=problems(404, 409))
async def save_draft(person: Ranking, task: uuid.UUID, body: Draft) -> DraftSaved:
    """Save the ranking so far, and keep the lock."""
    return await person.does(lambda me: drafts.save(me.session, me.project, me.user_id, task, body))


@router.post(
    "/tasks/{task}/submit",
    response_model=Submitted,
    response_model_exclude_unset=True,
    responses=problems(404, 409),
)
async def submit_ranking(person: Ranking, task: uuid.UUID, body: Submit) -> object:
    """Submit a ranking. The same `submission` again changes nothing. 409 `lock_lost`: others ranked it meanwhile."""

    def work(me: Annotator) -> object:
        try:
            handled = submissions.submit(me.session, me.project, me.user_id, task, body)
        except NotTaken as refusal:
            # Answered and not raised, so that the transaction commits, and what was ranked is kept.
            return problem_response(refusal)
        return _submitted(me, handled, "ranking.submit", task, body.ahead)

    return await person.does(work)


@router.post("/tasks/{task}/skip", response_model_exclude_unset=True, responses=problems(404, 409))
async def skip_task(person: Ranking, task: uuid.UUID, body: Skip) -> Submitted:
    """Leave an item to others. The same `submission` again changes nothing."""

    def work(me: Annotator) -> Submitted:
        handled = submissions.skip(me.session, me.project, me.user_id, task, body)
        return _submitted(me, handled, "ranking.skip", task, body.ahead)

    return await person.does(work)


@router.post("/tasks/{task}/undo", responses=problems(404, 409))
async def undo_ranking(person: Ranking, task: uuid.UUID) -> Task:
    """Undo a submission or a skip: the task is the caller's again, with what was submitted as its draft."""

    def work(me: Annotator) -> Task:
        again, evaluation_id, new = submissions.undo(me.session, me.project, me.user_id, task)
        if new:
            ranked(me.session, evaluation_id, me.access, "ranking.undo", f"task {task}")
        return again

    return await person.does(work)


@router.delete("/spans/{span}", status_code=204, responses=problems(404))
async def remove_span_flag(person: Ranking, span: uuid.UUID) -> None:
    """Remove a flag from a passage of a submitted answer: the caller's own, or, of reviewers, anyone's. It is kept, and
    counts no more. Again it changes nothing."""

    def work(me: Annotator) -> None:
        reviewer = "review" in me.access.scopes
        evaluation_id = spans.remove(me.session, me.project, me.user_id, span, reviewer=reviewer)
        if evaluation_id is not None:
            ranked(me.session, evaluation_id, me.access, "ranking.unflag", f"span {span}")

    await person.does(work)


def _submitted(me: Annotator, handled: Handled, action: str, task: uuid.UUID, ahead: int) -> Submitted:
    if ahead:
        given = queue.next_tasks(me.session, me.project, handled.campaign_id, me.user_id, ahead)
        out = Submitted(left=given.left, done=given.done, items=given.items, state=given.state)
    else:
        left = progress(me.session, handled.campaign_id, me.user_id)
        out = Submitted(left=left.left, done=left.done)
    if handled.new:
        ranked(me.session, handled.evaluation_id, me.access, action, f"task {task}")
        # After the last item its annotator has none left.
        if handled.ranked and not out.left:
            campaign_moved(me.session, handled.campaign_id)
    return out
