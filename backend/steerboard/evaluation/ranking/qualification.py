"""Who has shown on gold items that their submissions can count."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.ranking.tables import RankingItem, RankingTask

State = Literal["open", "passed", "failed"]


@dataclass(frozen=True)
class Qualification:
    """`done` of the `needed` gold items; `right` of `pairs` of answers are in the known order, a tie counting 1/2."""

    done: int = 0
    needed: int = 0
    share: float = 0.0
    right: float = 0.0
    pairs: int = 0

    @property
    def state(self) -> State:
        if self.done < self.needed:
            return "open"
        return "passed" if not self.pairs or self.right >= self.share * self.pairs - 1e-9 else "failed"


def qualifications(
    session: Session, campaign_id: uuid.UUID, needed: int, share: float, user_id: uuid.UUID | None = None
) -> dict[uuid.UUID, Qualification]:
    """Qualifications by annotator, over the first `needed` gold items that each submitted; of one where `user_id` is
    given. Those who submitted none are missing."""
    query = (
        select(RankingTask.user_id, RankingTask.shown, RankingTask.ranks, RankingTask.criteria_ranks, RankingItem.gold)
        .join(RankingItem, RankingItem.id == RankingTask.item_id)
        .where(
            RankingTask.campaign_id == campaign_id,
            RankingItem.gold.is_not(None),
            RankingTask.state == "submitted",
        )
        .order_by(RankingTask.submitted_at)
    )
    if user_id is not None:
        query = query.where(RankingTask.user_id == user_id)
    first: dict[uuid.UUID, list[list[float]]] = defaultdict(list)
    for task in session.execute(query):
        if len(first[task.user_id]) < needed:
            first[task.user_id].append(list(right_pairs(task, task.gold or {})))
    return {
        user: Qualification(len(items), needed, share, sum(map(sum, items)), sum(map(len, items)))
        for user, items in first.items()
    }


def qualification(
    session: Session, campaign_id: uuid.UUID, needed: int, share: float, user_id: uuid.UUID
) -> Qualification:
    """One annotator's; passed where no gold items are needed."""
    if not needed:
        return Qualification()
    return qualifications(session, campaign_id, needed, share, user_id).get(user_id, Qualification(needed=needed))


def right_pairs(task: Any, gold: Mapping[str, int]) -> Iterator[float]:
    """1, 1/2 or 0 for each pair of answers whose order is known, in each ranking of the task."""
    for given in (task.ranks, *(task.criteria_ranks or {}).values()):
        ranks = dict(zip(task.shown, given or [], strict=False))
        for a, b in combinations(ranks, 2):
            known = gold[a] - gold[b]
            if known:
                apart = ranks[a] - ranks[b]
                yield 0.5 if apart == 0 else float((apart < 0) == (known < 0))
