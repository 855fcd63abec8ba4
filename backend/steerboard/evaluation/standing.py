"""Which entrants of an evaluation are the best so far, by everyone who compared or scored them."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping

from sqlalchemy.orm import Session

from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.tables import Entrant, Evaluation
from steerboard.platform.statements import Statement

# The mean of each source; those of different sources are never compared.
_MEANS = Statement("""
    SELECT a.id AS source, v.entrant_id AS entrant, avg(v.value) AS mean
    FROM evaluation_reward_assessments a JOIN evaluation_reward_values v ON v.assessment_id = a.id
    WHERE a.evaluation_id = :evaluation GROUP BY 1, 2
    UNION ALL
    SELECT j.id, side.entrant, avg(side.value)
    FROM evaluation_judges j JOIN evaluation_verdicts v ON v.judge_id = j.id
    CROSS JOIN LATERAL (VALUES (v.a, v.value), (v.b, 1 - v.value)) AS side(entrant, value)
    WHERE j.evaluation_id = :evaluation AND v.status = 'ok' AND NOT v.superseded AND side.entrant IS NOT NULL
    GROUP BY 1, 2
    UNION ALL
    SELECT c.id, CAST(shown.entrant AS uuid), avg(-CAST(given.rank AS double precision))
    FROM ranking_campaigns c JOIN ranking_tasks t ON t.campaign_id = c.id
    CROSS JOIN LATERAL jsonb_each(
        coalesce(t.criteria_ranks, '{}') || CASE WHEN t.ranks IS NULL THEN '{}' ELSE jsonb_build_object('', t.ranks) END
    ) AS by(criterion, ranks)
    CROSS JOIN LATERAL jsonb_array_elements_text(t.shown) WITH ORDINALITY AS shown(entrant, place)
    JOIN LATERAL jsonb_array_elements_text(by.ranks) WITH ORDINALITY AS given(rank, place) ON given.place = shown.place
    WHERE c.evaluation_id = :evaluation AND t.state = 'submitted'
    GROUP BY 1, 2""")


def best_first(session: Session, evaluation: Evaluation) -> list[tuple[Entrant, float | None]]:
    """Every entrant with its standing: the share of rivals whose mean is lower, ties counting 1/2, averaged over the
    sources; None where no source knows it. Equal ones and those without a standing are in their own order."""
    means: dict[uuid.UUID, dict[uuid.UUID, float]] = defaultdict(dict)
    for row in _MEANS(session, {"evaluation": evaluation.id}):
        means[row.source][row.entrant] = row.mean
    shares: dict[uuid.UUID, list[float]] = defaultdict(list)
    for source in means.values():
        for entrant in source:
            if len(source) > 1:
                shares[entrant].append(_beaten(source, entrant))
    entrants = entrants_of(session, evaluation)
    standings = [(entrant, _mean(shares.get(entrant.id, []))) for entrant in entrants]
    return sorted(standings, key=lambda pair: -1.0 if pair[1] is None else pair[1], reverse=True)


def _beaten(means: Mapping[uuid.UUID, float], entrant: uuid.UUID) -> float:
    own = means[entrant]
    points = [0.5 if mean == own else float(mean < own) for other, mean in means.items() if other != entrant]
    return sum(points) / len(points)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
