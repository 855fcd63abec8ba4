"""Rankings handed in, items skipped, and both taken back. What was handed in once stays in the history."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.ranking import spans
from steerboard.evaluation.ranking.annotations import annotation_of
from steerboard.evaluation.ranking.disagreement import note
from steerboard.evaluation.ranking.errors import CampaignClosed, LockLost, NotQualified, NotTaken, TaskEnded
from steerboard.evaluation.ranking.locks import UNTIL, LockedTask, lock_task
from steerboard.evaluation.ranking.presenters import by_key, by_keys, campaign_row, qualification_in, task_out
from steerboard.evaluation.ranking.schemas import Draft, Skip, SpanFlag, Submit, Task
from steerboard.evaluation.ranking.tables import RankingHistory, RankingTask
from steerboard.platform.statements import Statement

_SAID = ("ranks", "criteria_ranks", "scores", "both_bad", "correction", "replies")
_KEPT = ("state", *_SAID, "comment", "flag", "suggestion_visible", "skip_reason", "seconds", "submission")
# The task and its item's count in one statement; the item's row is locked already.
_END = Statement("""
    WITH ended AS (
        UPDATE ranking_tasks SET state = :state, ranks = CAST(:ranks AS jsonb), flag = :flag, comment = :comment,
            criteria_ranks = CAST(:criteria_ranks AS jsonb), scores = CAST(:scores AS jsonb), both_bad = :both_bad,
            correction = :correction, replies = CAST(:replies AS jsonb),
            suggestion_visible = :suggestion_visible, skip_reason = :skip_reason, seconds = :seconds,
            submission = :submission, draft = NULL, locked_until = NULL, submitted_at = clock_timestamp()
        WHERE id = :task RETURNING item_id
    )
    UPDATE ranking_items SET rankings = rankings + :counts WHERE id = (SELECT item_id FROM ended)""")
_REOPEN = Statement(f"""
    WITH again AS (
        UPDATE ranking_tasks t SET state = 'locked', ranks = NULL, criteria_ranks = NULL, comment = NULL, flag = NULL,
            scores = NULL, both_bad = false, correction = NULL, replies = NULL, suggestion_visible = NULL,
            skip_reason = NULL, seconds = NULL, submission = NULL, submitted_at = NULL, draft = CAST(:draft AS jsonb),
            locked_until = {UNTIL}
        FROM ranking_campaigns c WHERE t.id = :task AND c.id = t.campaign_id RETURNING t.item_id
    )
    UPDATE ranking_items SET rankings = rankings - :counted WHERE id = (SELECT item_id FROM again)""")
_RENEW = Statement(f"""
    UPDATE ranking_tasks t SET locked_until = {UNTIL}
    FROM ranking_campaigns c WHERE t.id = :task AND c.id = t.campaign_id""")


@dataclass(frozen=True)
class Handled:
    """`new`: something changed; False where the same submission came again. `ranked`: an item has a ranking more."""

    campaign_id: uuid.UUID
    evaluation_id: uuid.UUID
    new: bool
    ranked: bool = False


def submit(session: Session, project: Project, user_id: uuid.UUID, task_id: uuid.UUID, given: Submit) -> Handled:
    """A lock that ran out does not matter as long as the item has room.

    Raises `NotFound`, `TaskEnded`, like `annotation_of` and `spans.check`, and `NotTaken` (`LockLost`,
    `CampaignClosed`) after putting what was submitted into the history, for which the caller has to commit.
    """
    held = lock_task(session, project, user_id, task_id, given.submission)
    if _known(held, given.submission):
        return Handled(held.campaign_id, held.evaluation_id, new=False)
    _refuse_ended(held)
    spans.check(session, task_id, given.spans)
    values: dict[str, Any] = {
        "state": "submitted",
        **annotation_of(given, held),
        "comment": given.comment or None,
        "flag": given.flag,
        "suggestion_visible": given.suggestion_visible,
        "skip_reason": None,
        "seconds": given.seconds,
        "submission": given.submission,
    }
    refusal = _refusal(held)
    if refusal is not None:
        _keep_late(session, held, refusal.code, values | {"spans": _flagged(given.spans)})
        raise refusal
    _end(session, held, values, counts=1)
    spans.store(session, task_id, given.spans)
    note(session, held)
    return Handled(held.campaign_id, held.evaluation_id, new=True, ranked=True)


def skip(session: Session, project: Project, user_id: uuid.UUID, task_id: uuid.UUID, given: Skip) -> Handled:
    """It matters to no one whether the lock ran out. Raises `NotFound`, `TaskEnded`, `CampaignClosed`."""
    held = lock_task(session, project, user_id, task_id, given.submission)
    if _known(held, given.submission):
        return Handled(held.campaign_id, held.evaluation_id, new=False)
    _refuse_ended(held)
    _refuse_closed(held)
    values: dict[str, Any] = dict.fromkeys(_KEPT)
    values |= {"both_bad": False, "skip_reason": given.reason, "seconds": given.seconds, "submission": given.submission}
    _end(session, held, values | {"state": "skipped"}, counts=0)
    return Handled(held.campaign_id, held.evaluation_id, new=True)


def undo(session: Session, project: Project, user_id: uuid.UUID, task_id: uuid.UUID) -> tuple[Task, uuid.UUID, bool]:
    """The task again, with what was submitted as its draft; its evaluation's id; and whether something changed.

    Raises `NotFound`, `CampaignClosed`, `NotQualified`, and `LockLost` where others took an item that was skipped.
    """
    held = lock_task(session, project, user_id, task_id)
    _refuse_closed(held)
    campaign = campaign_row(session, project, held.campaign_id)
    if qualification_in(session, campaign, user_id).state == "failed":
        raise NotQualified(
            "a qualification that was not passed cannot be taken again", hint="Ask the campaign's owner."
        )
    # An annotator who submitted keeps their place; one who skipped gave it away.
    if not (held.state == "submitted" or held.live or held.room):
        raise LockLost("others are ranking this item now", hint="Continue with the next one.")
    if held.state == "locked":
        _RENEW(session, {"task": task_id})
    else:
        _reopen(session, held)
        note(session, held)
    return task_out(session, campaign, task_id), held.evaluation_id, held.state != "locked"


def _reopen(session: Session, held: LockedTask) -> None:
    task = session.get_one(RankingTask, held.task_id, populate_existing=True)
    was = {name: getattr(task, name) for name in _KEPT}
    at = task.submitted_at.isoformat() if task.submitted_at else None
    flagged = spans.take_back(session, task)
    session.add(RankingHistory(task_id=task.id, was={"event": "undone", "at": at, **was, "spans": _flagged(flagged)}))
    draft = Draft(
        ranks=by_key(task.ranks),
        criteria_ranks=by_keys(None if task.scores else task.criteria_ranks),
        scores=by_keys(task.scores),
        both_bad=task.both_bad,
        correction=task.correction,
        replies=task.replies or {},
        comment=task.comment,
        flag=task.flag,
        spans=flagged,
        suggestion_visible=task.suggestion_visible,
    )
    counted = int(held.state == "submitted")
    _REOPEN(session, {"task": task.id, "draft": draft.model_dump_json(), "counted": counted})


def _flagged(given: Sequence[SpanFlag]) -> list[dict[str, Any]]:
    return [span.model_dump() for span in given]


def _known(held: LockedTask, submission: str) -> bool:
    """Handed in before: it is what counts, or it was undone since, and a late copy does not bring it back."""
    return held.undone or (held.state != "locked" and held.submission == submission)


def _refuse_ended(held: LockedTask) -> None:
    if held.state != "locked":
        raise TaskEnded("this item was already submitted or skipped", hint="Undo that first.")


def _refuse_closed(held: LockedTask) -> None:
    if held.closed:
        raise CampaignClosed("the campaign takes no more rankings")


def _refusal(held: LockedTask) -> NotTaken | None:
    if held.closed:
        return CampaignClosed("the campaign takes no more rankings; what you ranked is kept, and does not count")
    if held.live or held.room:
        return None
    return LockLost(
        "the time for this item ran out, and others have ranked it; your ranking is kept, and does not count",
        hint="Continue with the next one.",
    )


def _keep_late(session: Session, held: LockedTask, event: str, values: dict[str, Any]) -> None:
    """Keep it in the history, once for each submission."""
    again = exists().where(
        RankingHistory.task_id == held.task_id,
        RankingHistory.was["event"].astext == event,
        RankingHistory.was["submission"].astext == values["submission"],
    )
    if not session.scalar(select(again)):
        session.add(RankingHistory(task_id=held.task_id, was={"event": event, **values}))


def _end(session: Session, held: LockedTask, values: dict[str, Any], *, counts: int) -> None:
    encoded = {name: _json(values[name]) for name in ("ranks", "criteria_ranks", "scores", "replies")}
    _END(session, values | encoded | {"task": held.task_id, "counts": counts})


def _json(value: object) -> str | None:
    return None if value is None else orjson.dumps(value).decode()
