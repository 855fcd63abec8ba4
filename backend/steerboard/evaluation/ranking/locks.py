"""Who holds an item, and whether it has room for one more annotator.

Changes lock the item's row first, and only then read the tasks, in a separate statement: so the
look sees all that others committed before they let the row go. Locks run out by the database's clock.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.ranking.questions import Question, questions_of
from steerboard.platform.http.errors import NotFound
from steerboard.platform.statements import Statement

# Whether a task `t` is locked: then no one else may take its place.
LIVE = "(t.state = 'locked' AND t.locked_until > clock_timestamp())"
# Whether fewer than `overlap` others have ranked or hold an item `i` of a campaign `c`. Gold items are for everyone.
ROOM = """(i.gold IS NOT NULL OR i.rankings + (
    SELECT count(*) FROM ranking_tasks o
    WHERE o.campaign_id = i.campaign_id AND o.item_id = i.id AND o.user_id <> :user AND o.state = 'locked'
      AND o.locked_until > clock_timestamp()
) < c.overlap)"""
UNTIL = "clock_timestamp() + make_interval(secs => c.lock_seconds)"

_LOCK = Statement("""
    SELECT i.id FROM ranking_tasks t JOIN ranking_items i ON i.id = t.item_id JOIN ranking_campaigns c
        ON c.id = t.campaign_id
    WHERE t.id = :task AND t.user_id = :user AND c.project_id = :project FOR NO KEY UPDATE OF i""")
_LOOK = Statement(f"""
    SELECT t.state, t.submission, coalesce({LIVE}, false) AS live, {ROOM} AS room, i.id AS item_id, t.campaign_id,
        EXISTS (SELECT FROM ranking_history h WHERE h.task_id = t.id AND h.was ->> 'event' = 'undone'
                AND h.was ->> 'submission' = :submission) AS undone,
        c.state AS campaign_state, c.evaluation_id, c.task_type, jsonb_array_length(c.entrants) AS answers, c.criteria,
        c.questions
    FROM ranking_tasks t JOIN ranking_items i ON i.id = t.item_id JOIN ranking_campaigns c ON c.id = t.campaign_id
    WHERE t.id = :task""")
_FREE = Statement("""
    WITH free AS (SELECT id FROM ranking_items WHERE id = ANY(:items) FOR NO KEY UPDATE SKIP LOCKED)
    SELECT array_agg(id) FROM free""")
_RENEW = Statement(f"""
    UPDATE ranking_tasks t SET locked_until = {UNTIL}
    FROM ranking_items i JOIN ranking_campaigns c ON c.id = i.campaign_id
    WHERE i.id = t.item_id AND t.item_id = ANY(:items) AND t.user_id = :user AND t.state = 'locked'
      AND (t.locked_until > clock_timestamp() OR {ROOM})""")


@dataclass(frozen=True)
class LockedTask:
    """A task whose item's row is locked until the end of the transaction.

    `live`: its lock has not run out. `room`: the item may be ranked by its annotator, whether the lock is live or not.
    `undone`: the submission in question was made and undone before. `points`: those of each criterion, by name; None
    where it is ranked.
    """

    task_id: uuid.UUID
    item_id: uuid.UUID
    campaign_id: uuid.UUID
    evaluation_id: uuid.UUID
    state: str
    submission: str | None
    live: bool
    room: bool
    undone: bool
    closed: bool
    task_type: str
    answers: int
    points: dict[str, int | None]
    questions: list[Question]


def lock_task(
    session: Session, project: Project, user_id: uuid.UUID, task_id: uuid.UUID, submission: str | None = None
) -> LockedTask:
    """Raises `NotFound` (`unknown_task`), also for someone else's task."""
    whose: dict[str, Any] = {"task": task_id, "user": user_id}
    if _LOCK(session, whose | {"project": project.id}).one_or_none() is None:
        raise NotFound("you have no such task", code="unknown_task", hint="Ask for the next items.")
    row = _LOOK(session, whose | {"submission": submission}).one()
    return LockedTask(
        task_id=task_id,
        item_id=row.item_id,
        campaign_id=row.campaign_id,
        evaluation_id=row.evaluation_id,
        state=row.state,
        submission=row.submission,
        live=row.live,
        room=row.room,
        undone=row.undone,
        closed=row.campaign_state == "closed",
        answers=row.answers,
        task_type=row.task_type,
        points={criterion["name"]: criterion.get("points") for criterion in row.criteria},
        questions=questions_of(row.questions),
    )


def renew(session: Session, user_id: uuid.UUID, items: list[uuid.UUID]) -> None:
    """Lock the caller's tasks of these items again, where they are live or have room. Others' work is not waited for:
    an item whose row someone is changing keeps the lock that it has."""
    free = _FREE(session, {"items": items}).scalar()
    if free:
        _RENEW(session, {"items": free, "user": user_id})
