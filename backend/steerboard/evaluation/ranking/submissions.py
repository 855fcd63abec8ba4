"""Rankings handed in, items skipped, and both taken back. What was handed in once stays in the history."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.ranking.errors import BadRanks, CampaignClosed, LockLost, NotTaken, TaskEnded
from steerboard.evaluation.ranking.locks import UNTIL, LockedTask, lock_task
from steerboard.evaluation.ranking.presenters import by_key, campaign_row, task_out
from steerboard.evaluation.ranking.schemas import Draft, Skip, Submit, Task
from steerboard.evaluation.ranking.tables import RankingHistory, RankingTask
from steerboard.platform.statements import Statement

_KEPT = ("state", "ranks", "criteria_ranks", "comment", "flag", "skip_reason", "seconds", "submission")
# The task and its item's count in one statement; the item's row is locked already.
_END = Statement("""
    WITH ended AS (
        UPDATE ranking_tasks SET state = :state, ranks = CAST(:ranks AS jsonb), flag = :flag, comment = :comment,
            criteria_ranks = CAST(:criteria_ranks AS jsonb), skip_reason = :skip_reason, seconds = :seconds,
            submission = :submission, draft = NULL, locked_until = NULL, submitted_at = clock_timestamp()
        WHERE id = :task RETURNING item_id
    )
    UPDATE ranking_items SET rankings = rankings + :counts WHERE id = (SELECT item_id FROM ended)""")
_REOPEN = Statement(f"""
    WITH again AS (
        UPDATE ranking_tasks t SET state = 'locked', ranks = NULL, criteria_ranks = NULL, comment = NULL, flag = NULL,
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
    """`new`: something changed; False where the same submission came again."""

    campaign_id: uuid.UUID
    evaluation_id: uuid.UUID
    new: bool


def submit(session: Session, project: Project, user_id: uuid.UUID, task_id: uuid.UUID, given: Submit) -> Handled:
    """A lock that ran out does not matter as long as the item has room.

    Raises `NotFound`, `BadRanks`, `TaskEnded`, and `NotTaken` (`LockLost`, `CampaignClosed`) after putting what was
    ranked into the history, for which the caller has to commit.
    """
    held = lock_task(session, project, user_id, task_id, given.submission)
    if _known(held, given.submission):
        return Handled(held.campaign_id, held.evaluation_id, new=False)
    _refuse_ended(held)
    values: dict[str, Any] = {
        "state": "submitted",
        "ranks": _overall(given, held),
        "criteria_ranks": _by_criterion(given, held) or None,
        "comment": given.comment or None,
        "flag": given.flag,
        "skip_reason": None,
        "seconds": given.seconds,
        "submission": given.submission,
    }
    refusal = _refusal(held)
    if refusal is not None:
        _keep_late(session, held, refusal.code, values)
        raise refusal
    _end(session, held, values, counts=1)
    return Handled(held.campaign_id, held.evaluation_id, new=True)


def skip(session: Session, project: Project, user_id: uuid.UUID, task_id: uuid.UUID, given: Skip) -> Handled:
    """It matters to no one whether the lock ran out. Raises `NotFound`, `TaskEnded`, `CampaignClosed`."""
    held = lock_task(session, project, user_id, task_id, given.submission)
    if _known(held, given.submission):
        return Handled(held.campaign_id, held.evaluation_id, new=False)
    _refuse_ended(held)
    _refuse_closed(held)
    values: dict[str, Any] = dict.fromkeys(_KEPT)
    values |= {"skip_reason": given.reason, "seconds": given.seconds, "submission": given.submission}
    _end(session, held, values | {"state": "skipped"}, counts=0)
    return Handled(held.campaign_id, held.evaluation_id, new=True)


def undo(session: Session, project: Project, user_id: uuid.UUID, task_id: uuid.UUID) -> tuple[Task, uuid.UUID, bool]:
    """The task again, with what was submitted as its draft; its evaluation's id; and whether something changed.

    Raises `NotFound`, `CampaignClosed`, and `LockLost` where others took an item that was skipped.
    """
    held = lock_task(session, project, user_id, task_id)
    _refuse_closed(held)
    # An annotator who submitted keeps their place; one who skipped gave it away.
    if not (held.state == "submitted" or held.live or held.room):
        raise LockLost("others are ranking this item now", hint="Continue with the next one.")
    if held.state == "locked":
        _RENEW(session, {"task": task_id})
    else:
        _reopen(session, held)
    campaign = campaign_row(session, project, held.campaign_id)
    return task_out(session, campaign, task_id), held.evaluation_id, held.state != "locked"


def _reopen(session: Session, held: LockedTask) -> None:
    task = session.get_one(RankingTask, held.task_id, populate_existing=True)
    was = {name: getattr(task, name) for name in _KEPT}
    at = task.submitted_at.isoformat() if task.submitted_at else None
    session.add(RankingHistory(task_id=task.id, was={"event": "undone", "at": at, **was}))
    draft = Draft(
        ranks=by_key(task.ranks),
        criteria_ranks={name: by_key(ranks) or {} for name, ranks in (task.criteria_ranks or {}).items()},
        comment=task.comment,
        flag=task.flag,
    )
    counted = int(held.state == "submitted")
    _REOPEN(session, {"task": task.id, "draft": draft.model_dump_json(), "counted": counted})


def _known(held: LockedTask, submission: str) -> bool:
    """Handed in before: it is what counts, or it was undone since, and a late copy does not bring it back."""
    return held.undone or (held.state != "locked" and held.submission == submission)


def _refuse_ended(held: LockedTask) -> None:
    if held.state != "locked":
        raise TaskEnded("this item was submitted or skipped already", hint="Undo that first.")


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


def _overall(given: Submit, held: LockedTask) -> list[int] | None:
    if given.ranks is None and not held.criteria:
        raise BadRanks("`ranks` is missing", hint=f"Give {held.answers} ranks, in the order shown.")
    return competition_ranks(given.ranks, held.answers) if given.ranks is not None else None


def _by_criterion(given: Submit, held: LockedTask) -> dict[str, list[int]]:
    missing = [name for name in held.criteria if name not in given.criteria_ranks]
    unknown = [name for name in given.criteria_ranks if name not in held.criteria]
    if missing or unknown:
        wrong = f"no ranking by {missing[0]!r}" if missing else f"no criterion {unknown[0]!r} in this campaign"
        raise BadRanks(f"there is {wrong}", hint=f"Its criteria: {', '.join(held.criteria) or 'none'}.")
    return {name: competition_ranks(given.criteria_ranks[name], held.answers) for name in held.criteria}


def competition_ranks(ranks: list[int], answers: int) -> list[int]:
    """1 + how many are better, so 1, 2, 2, 4; the same order whatever numbers were given. Raises `BadRanks`."""
    if len(ranks) != answers:
        raise BadRanks(f"{len(ranks)} ranks for {answers} answers", hint="Give one per answer, in the order shown.")
    return [1 + sum(other < rank for other in ranks) for rank in ranks]


def _keep_late(session: Session, held: LockedTask, event: str, values: dict[str, Any]) -> None:
    """In the history, once for each submission."""
    again = exists().where(
        RankingHistory.task_id == held.task_id,
        RankingHistory.was["event"].astext == event,
        RankingHistory.was["submission"].astext == values["submission"],
    )
    if not session.scalar(select(again)):
        session.add(RankingHistory(task_id=held.task_id, was={"event": event, **values}))


def _end(session: Session, held: LockedTask, values: dict[str, Any], *, counts: int) -> None:
    encoded = {name: _json(values[name]) for name in ("ranks", "criteria_ranks")}
    _END(session, values | encoded | {"task": held.task_id, "counts": counts})


def _json(value: object) -> str | None:
    return None if value is None else orjson.dumps(value).decode()
