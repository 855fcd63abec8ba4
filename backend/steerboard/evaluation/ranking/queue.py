"""What an annotator gets next.

The queue's order is random and the same for all, and items that someone has ranked come first: so items get their
rankings one after another, and a campaign that is stopped early has whole ones. Items that someone is locking at this
moment are skipped, never waited for.
"""

from __future__ import annotations

import hashlib
import random
import uuid

import orjson
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.ranking.locks import ROOM, UNTIL, renew
from steerboard.evaluation.ranking.presenters import CampaignRow, campaign_row, qualification_in, tasks_at_hand
from steerboard.evaluation.ranking.progress import Progress, progress
from steerboard.evaluation.ranking.schemas import NextTasks, QueueState
from steerboard.evaluation.ranking.tables import random_id
from steerboard.platform.statements import Statement

# Someone else may take what was just found; after so many times the browser asks again.
_TRIES = 3

_NEW = "NOT EXISTS (SELECT FROM ranking_tasks m WHERE m.item_id = i.id AND m.user_id = :user)"
_MINE = "SELECT item_id FROM ranking_tasks WHERE user_id = :user AND campaign_id = :campaign"
# What cannot be taken is gathered once and not asked of each item: the planner knows too little of a queue that changes
# with every request to walk it in its order, and would ask thousands.
_FULL = """
    SELECT o.item_id FROM ranking_tasks o JOIN ranking_items h ON h.id = o.item_id
    WHERE o.campaign_id = :campaign AND o.state = 'locked' AND o.locked_until > clock_timestamp()
    GROUP BY o.item_id, h.rankings HAVING h.rankings + count(*) >= :overlap"""
_FIND = """
    WITH busy AS MATERIALIZED ({busy})
    SELECT i.id FROM ranking_items i
    WHERE i.campaign_id = :campaign AND {kind} AND i.id NOT IN (SELECT item_id FROM busy)
    ORDER BY i.rankings DESC, i.place DESC LIMIT :limit FOR NO KEY UPDATE OF i SKIP LOCKED"""
_GOLD = Statement(_FIND.format(kind="i.gold IS NOT NULL", busy=_MINE))
_PLAIN = Statement(_FIND.format(kind="i.gold IS NULL AND i.rankings < :overlap", busy=f"{_MINE} UNION ALL {_FULL}"))
_TAKE = Statement(f"""
    INSERT INTO ranking_tasks (id, campaign_id, item_id, user_id, shown, state, locked_until)
    SELECT n.id, c.id, i.id, :user, CAST(n.shown AS jsonb), 'locked', {UNTIL}
    FROM unnest(CAST(:ids AS uuid[]), CAST(:items AS uuid[]), CAST(:shown AS text[]))
        WITH ORDINALITY AS n(id, item_id, shown, number)
    JOIN ranking_items i ON i.id = n.item_id JOIN ranking_campaigns c ON c.id = i.campaign_id
    WHERE {_NEW} AND {ROOM}
    ORDER BY n.number ON CONFLICT DO NOTHING RETURNING id""")


def next_tasks(session: Session, project: Project, campaign_id: uuid.UUID, user_id: uuid.UUID, ahead: int) -> NextTasks:
    """The next tasks, `ahead` at most, locked to the caller: those at hand, oldest first, then new ones. One whose lock
    ran out is taken again where its item has room. Raises `NotFound` (`unknown_campaign`)."""
    # The same person's other tab waits here, and then gets the same tasks.
    campaign = campaign_row(session, project, campaign_id, alone=_key(campaign_id, user_id))
    own = progress(session, campaign.id, user_id)
    if campaign.state == "closed":
        return NextTasks(items=[], left=own.left, done=own.done, state="closed")
    held = own.live
    if own.old:
        renew(session, user_id, own.old)
        held = progress(session, campaign.id, user_id).live
    test = qualification_in(session, campaign, user_id)
    if test.state == "failed":
        return NextTasks(items=[], left=0, done=own.done, state="unqualified")
    if campaign.state == "open" and held < ahead:
        if test.state == "passed":
            held += _claim(session, campaign, user_id, own, ahead - held)
        else:
            wanted = min(ahead, test.needed - test.done) - held
            gold = _find(session, campaign, user_id, wanted, gold=True)
            held += _take(session, campaign, user_id, gold) if gold else 0
            if not held and own.had_gold >= test.needed:  # some were skipped, and there are no others
                return NextTasks(items=[], left=0, done=own.done, state="unqualified")
    items = tasks_at_hand(session, campaign, user_id, ahead) if held else []
    return NextTasks(items=items, left=own.left, done=own.done, state=_state(campaign, len(items), own.left))


def _state(campaign: CampaignRow, waiting: int, left: int) -> QueueState:
    if campaign.state == "paused":
        return "paused"
    if waiting:
        return "ready"
    return "waiting" if left else "done"


def _key(campaign_id: uuid.UUID, user_id: uuid.UUID) -> int:
    digest = hashlib.sha256(campaign_id.bytes + user_id.bytes).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _claim(session: Session, campaign: CampaignRow, user_id: uuid.UUID, own: Progress, wanted: int) -> int:
    """How many of the wanted new tasks there are now."""
    taken = 0
    for _ in range(_TRIES):
        missing = wanted - taken
        gold = _find(session, campaign, user_id, min(missing, _gold_due(campaign, own, taken)), gold=True)
        ids = gold + _find(session, campaign, user_id, missing - len(gold), gold=False)
        if not ids and own.any_gold:  # nothing else is left, so gold items need not wait for their turn
            ids = _find(session, campaign, user_id, missing, gold=True)
        if not ids:
            break
        taken += _take(session, campaign, user_id, ids)
        if taken >= wanted:
            break
    return taken


def _gold_due(campaign: CampaignRow, own: Progress, taken: int) -> int:
    """How many gold items the annotator should have had by now, but has not; all where they come first."""
    if not own.any_gold:
        return 0
    had = own.had + taken
    return (had + 1) // campaign.gold_every - own.had_gold if campaign.gold_every else had + 1_000


def _find(session: Session, campaign: CampaignRow, user_id: uuid.UUID, limit: int, *, gold: bool) -> list[uuid.UUID]:
    """Items that the annotator may take, their rows locked."""
    if limit <= 0:
        return []
    given = {"campaign": campaign.id, "user": user_id, "limit": limit}
    rows = _GOLD(session, given) if gold else _PLAIN(session, given | {"overlap": campaign.overlap})
    return list(rows.scalars())


def _take(session: Session, campaign: CampaignRow, user_id: uuid.UUID, items: list[uuid.UUID]) -> int:
    """Takes those of the items, whose rows are locked, that still have room."""
    given = {
        "user": user_id,
        "ids": [random_id() for _ in items],
        "items": items,
        "shown": [orjson.dumps(shuffled(campaign.entrants, campaign.salt, item, user_id)).decode() for item in items],
    }
    return len(_TAKE(session, given).all())


def shuffled(entrants: list[str], salt: str, item: uuid.UUID, user_id: uuid.UUID) -> list[str]:
    """The entrants in this annotator's order of this item, which only the campaign's salt reveals."""
    shown = sorted(entrants)
    seed = hashlib.sha256(b"".join((salt.encode(), item.bytes, user_id.bytes))).digest()
    random.Random(seed).shuffle(shown)
    return shown
