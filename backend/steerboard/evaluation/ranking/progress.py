"""An annotator's progress. Counted each time, from indexes: a counter would make everyone wait at one row."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from sqlalchemy.orm import Session

from steerboard.evaluation.ranking.locks import LIVE
from steerboard.platform.statements import Statement

_PROGRESS = Statement(f"""
    SELECT
        (SELECT count(*) FROM ranking_items WHERE campaign_id = c.id AND rankings < c.overlap)
        + (SELECT count(*) FROM (
            SELECT rankings FROM ranking_items WHERE campaign_id = c.id AND gold IS NOT NULL OFFSET 0
        ) full_gold WHERE rankings >= c.overlap)
        - mine.behind AS left,
        EXISTS (SELECT FROM ranking_items WHERE campaign_id = c.id AND gold IS NOT NULL) AS any_gold,
        mine.*
    FROM ranking_campaigns c CROSS JOIN LATERAL (
        SELECT count(*) AS had, count(i.gold) AS had_gold,
            count(*) FILTER (WHERE t.state = 'submitted') AS done,
            count(*) FILTER (WHERE t.state = 'skipped') AS skipped,
            count(*) FILTER (WHERE t.state <> 'locked' AND (i.rankings < c.overlap OR i.gold IS NOT NULL)) AS behind,
            count(*) FILTER (WHERE {LIVE}) AS live,
            array_agg(t.item_id) FILTER (WHERE t.state = 'locked'
                AND t.locked_until < clock_timestamp() + make_interval(secs => c.lock_seconds / 2.0)
                AND (t.locked_until > clock_timestamp() OR i.rankings < c.overlap OR i.gold IS NOT NULL)) AS old
        FROM ranking_tasks t JOIN ranking_items i ON i.id = t.item_id
        WHERE t.user_id = :user AND t.campaign_id = c.id
    ) mine
    WHERE c.id = :campaign""")


@dataclass(frozen=True)
class Progress:
    """`left`: items that still need this annotator, those at hand included. `done`, `skipped`: by the annotator.

    `live`: tasks at hand. `old`: items of tasks whose lock is half over, or is over while the item lacks rankings.
    `had`, `had_gold`: items given so far.
    """

    left: int
    done: int
    skipped: int
    live: int
    old: list[uuid.UUID]
    had: int
    had_gold: int
    any_gold: bool


def progress(session: Session, campaign_id: uuid.UUID, user_id: uuid.UUID) -> Progress:
    counts = _PROGRESS(session, {"campaign": campaign_id, "user": user_id}).one()
    return Progress(
        left=counts.left,
        done=counts.done,
        skipped=counts.skipped,
        live=counts.live,
        old=counts.old or [],
        had=counts.had,
        had_gold=counts.had_gold,
        any_gold=counts.any_gold,
    )
