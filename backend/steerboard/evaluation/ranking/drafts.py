"""What the browser saves while an annotator works."""

from __future__ import annotations

import uuid

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.ranking.errors import BadRanks, CampaignClosed, LockLost, TaskEnded
from steerboard.evaluation.ranking.keys import KEYS
from steerboard.evaluation.ranking.locks import UNTIL, LockedTask, lock_task
from steerboard.evaluation.ranking.schemas import Draft, DraftSaved
from steerboard.platform.statements import Statement

_SAVE = Statement(f"""
    UPDATE ranking_tasks t SET draft = CAST(:draft AS jsonb), locked_until = {UNTIL}
    FROM ranking_campaigns c WHERE t.id = :task AND c.id = t.campaign_id RETURNING t.locked_until""")


def save(session: Session, project: Project, user_id: uuid.UUID, task_id: uuid.UUID, draft: Draft) -> DraftSaved:
    """The draft replaces the previous one; the lock is renewed.

    Raises `NotFound`, `TaskEnded`, `CampaignClosed`, `LockLost`, and `BadRanks` for keys, criteria or questions of
    nothing.
    """
    held = lock_task(session, project, user_id, task_id)
    if held.state != "locked":
        raise TaskEnded("this item was submitted or skipped", hint="Undo that first.")
    if held.closed:
        raise CampaignClosed("the campaign takes no more rankings")
    if not (held.live or held.room):
        raise LockLost(
            "the time for this item ran out, and others are ranking it now", hint="Continue with the next one."
        )
    _check(draft, held)
    given = {"task": task_id, "draft": draft.model_dump_json()}
    return DraftSaved(locked_until=_SAVE(session, given).scalar_one())


def _check(draft: Draft, held: LockedTask) -> None:
    keys = set(KEYS[: held.answers])
    unknown = sorted({*draft.criteria_ranks, *draft.scores} - set(held.points))
    given = (draft.ranks or {}, *draft.criteria_ranks.values(), *draft.scores.values())
    unknown += sorted({key for values in given for key in values} - keys)
    unknown += sorted({span.key for span in draft.spans} - keys)
    unknown += sorted(set(draft.replies) - {question.label for question in held.questions})
    if unknown:
        raise BadRanks(f"there is no answer, criterion or question {', '.join(unknown)}")
