"""A run's metrics as curves of a bounded number of points, computed in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from steerboard.platform.storage.sized_cache import SizedCache
from steerboard.runs.schemas.runs import MetricPoint, MetricSeries
from steerboard.runs.tables import Run
from steerboard_contracts.methods import method_of
from steerboard_contracts.metric_order import FIRST_METRICS, group_of, in_groups


@dataclass(frozen=True)
class _Curves:
    series: list[MetricSeries]

    @property
    def nbytes(self) -> int:
        return 1000 + 600 * sum(len(series.points) for series in self.series)


_ENDED = SizedCache(64 * 2**20)

# The names and the ends of their steps come from the index, entry by entry, so that all points are read only once.
# One bucket a step while there are few enough, else `points` equal parts of the way from the first to the last.
_POINTS = text(
    """
    WITH RECURSIVE named AS (
        (SELECT name FROM metrics WHERE run_id = :run ORDER BY name LIMIT 1)
        UNION ALL
        SELECT (SELECT m.name FROM metrics m WHERE m.run_id = :run AND m.name > named.name ORDER BY m.name LIMIT 1)
        FROM named WHERE named.name IS NOT NULL
    ), span AS (
        SELECT name,
            (SELECT step FROM metrics m WHERE m.run_id = :run AND m.name = named.name
             ORDER BY step LIMIT 1)::bigint AS first,
            (SELECT step FROM metrics m WHERE m.run_id = :run AND m.name = named.name
             ORDER BY step DESC LIMIT 1)::bigint AS last,
            (SELECT count(*) FROM (SELECT 1 FROM metrics m WHERE m.run_id = :run AND m.name = named.name
             LIMIT :points + 1) AS few) AS at_least
        FROM named
        WHERE name IS NOT NULL AND (CAST(:names AS text[]) IS NULL OR name = ANY(CAST(:names AS text[])))
    )
    SELECT span.name, bucket.*
    FROM span CROSS JOIN LATERAL (
        SELECT count(*), max(step) AS step, avg(value), min(value), max(value)
        FROM metrics WHERE run_id = :run AND name = span.name
        GROUP BY CASE WHEN span.at_least <= :points THEN step
                      ELSE (step - span.first) * :points / (span.last - span.first + 1) END
    ) AS bucket
    ORDER BY span.name, bucket.step
    """
)


def metrics(session: Session, run: Run, names: Sequence[str], points: int) -> list[MetricSeries]:
    """Each metric of a run with at most `points` points, evenly over its steps, those first that its method names; the
    work is done in the database, and only once when the run has ended."""
    if run.ended_at is None:
        return _metrics(session, run, names, points)
    key = (run.id, run.attempt, run.ended_at, *sorted(names), points)
    return _ENDED.get(key, lambda: _Curves(_metrics(session, run, names, points))).series


def _metrics(session: Session, run: Run, names: Sequence[str], points: int) -> list[MetricSeries]:
    # All steps of a long run, grouped in memory: sorted on disk they take three times as long.
    session.execute(text("SET LOCAL work_mem = '32MB'"))
    rows = session.execute(_POINTS, {"run": run.id, "names": list(names) or None, "points": points})
    method = method_of(run.method)
    first = method.first_metrics if method is not None else FIRST_METRICS
    series: dict[str, MetricSeries] = {}
    for name, steps, step, value, low, high in rows:
        curve = series.setdefault(name, MetricSeries(name=name, group=group_of(name, first), steps=0, points=[]))
        curve.steps += steps
        curve.points.append(MetricPoint(step=step, value=value, low=low, high=high))
    return list(in_groups(series, first).values())
