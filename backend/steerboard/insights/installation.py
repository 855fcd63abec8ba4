"""Figures of the installation, read from Postgres when they are asked for: they survive every restart, and each
process of the API gives the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from steerboard import __version__

# Several scrapers, or an impatient one, cost the database no more than one.
KEPT_SECONDS = 5.0
STAGE_BUCKETS = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600)

_RUNS = text("SELECT pool, state, count(*) FROM runs GROUP BY pool, state")
_QUEUES = text("""
    SELECT pool, count(*) FILTER (WHERE not_before IS NULL OR not_before <= clock_timestamp()),
        extract(epoch FROM clock_timestamp() - min(queued_at))
    FROM runs WHERE state = 'queued' GROUP BY pool
""")
_WORKERS = text("""
    SELECT pool, CASE WHEN run_id IS NULL THEN 'idle' ELSE 'busy' END, count(*)
    FROM workers WHERE heartbeat_at > clock_timestamp() - make_interval(secs => :lease) GROUP BY 1, 2
""")
_GPUS = text("""
    SELECT w.name, w.pool, gpu
    FROM workers w, jsonb_array_elements(w.devices -> 'gpus') gpu
    WHERE w.heartbeat_at > clock_timestamp() - make_interval(secs => :lease)
""")
# Attempts of stages; a parent of shards only waits, and is not one.
_STAGES = text("""
    SELECT kind, outcome, bucket, count(*), sum(seconds) FROM (
        SELECT r.kind, coalesce(a.outcome, 'unknown') AS outcome,
            extract(epoch FROM a.ended_at - a.started_at) AS seconds,
            width_bucket(extract(epoch FROM a.ended_at - a.started_at)::numeric, CAST(:bounds AS numeric[])) AS bucket
        FROM run_attempts a JOIN runs r ON r.id = a.run_id WHERE a.ended_at IS NOT NULL
    ) attempts GROUP BY kind, outcome, bucket
""")


class Figures(Collector):
    """`lease_seconds`: a worker that was silent for longer is not counted."""

    def __init__(self, sessions: sessionmaker[Session], lease_seconds: float) -> None:
        self._sessions = sessions
        self._lease_seconds = lease_seconds
        self._lock = threading.Lock()
        self._kept: list[Metric] = []
        self._kept_until = 0.0

    def collect(self) -> Iterable[Metric]:
        """The metrics; without the database only `steerboard_database_up` 0."""
        with self._lock:
            if time.monotonic() >= self._kept_until:
                self._kept = list(self._read())
                self._kept_until = time.monotonic() + KEPT_SECONDS
            return self._kept

    def _read(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("steerboard_database_up", "1 when the database answers.")
        try:
            with self._sessions() as session:
                metrics = [
                    _runs(session),
                    *_queues(session),
                    _workers(session, self._lease_seconds),
                    *_gpus(session, self._lease_seconds),
                    _stages(session),
                ]
        except SQLAlchemyError:
            metrics = []
        up.add_metric([], float(bool(metrics)))
        yield up
        yield InfoMetricFamily("steerboard", "The version that answers.", {"version": __version__})
        yield from metrics


def _runs(session: Session) -> Metric:
    runs = GaugeMetricFamily("steerboard_runs", "Runs by their state.", labels=("pool", "state"))
    for pool, state, count in session.execute(_RUNS):
        runs.add_metric([pool, state], count)
    return runs


def _queues(session: Session) -> Iterator[Metric]:
    due = GaugeMetricFamily("steerboard_queue_due_runs", "Queued runs that a worker could take now.", labels=("pool",))
    oldest = GaugeMetricFamily(
        "steerboard_queue_oldest_seconds", "How long the oldest queued run has waited.", labels=("pool",)
    )
    for pool, count, seconds in session.execute(_QUEUES):
        due.add_metric([pool], count)
        oldest.add_metric([pool], float(seconds or 0))
    yield due
    yield oldest


def _workers(session: Session, lease_seconds: float) -> Metric:
    workers = GaugeMetricFamily("steerboard_workers", "Workers that are alive.", labels=("pool", "state"))
    for pool, state, count in session.execute(_WORKERS, {"lease": lease_seconds}):
        workers.add_metric([pool, state], count)
    return workers


def _gpus(session: Session, lease_seconds: float) -> Iterator[Metric]:
    """The GPUs as their workers saw them at the last heartbeat."""
    labels = ("worker", "pool", "device", "name")
    families = {
        "utilization": GaugeMetricFamily(
            "steerboard_gpu_utilization_ratio", "Share of time in which the GPU computed, 0 to 1.", labels=labels
        ),
        "memory_used": GaugeMetricFamily(
            "steerboard_gpu_memory_used_bytes", "Memory of the GPU that is taken.", labels=labels
        ),
        "memory": GaugeMetricFamily("steerboard_gpu_memory_bytes", "Memory of the GPU.", labels=labels),
    }
    for worker, pool, gpu in session.execute(_GPUS, {"lease": lease_seconds}):
        for name, family in families.items():
            family.add_metric([worker, pool, gpu["id"], gpu["name"]], gpu[name])
    yield from families.values()


def _stages(session: Session) -> Metric:
    stages = HistogramMetricFamily(
        "steerboard_stage_seconds", "How long attempts at runs took that have ended.", labels=("kind", "outcome")
    )
    by_kind: dict[tuple[str, str], tuple[list[int], float]] = {}
    for kind, outcome, bucket, count, seconds in session.execute(_STAGES, {"bounds": list(STAGE_BUCKETS)}):
        counts, total = by_kind.setdefault((kind, outcome), ([0] * (len(STAGE_BUCKETS) + 1), 0.0))
        counts[bucket] += count
        by_kind[kind, outcome] = (counts, total + float(seconds))
    for key, (counts, total) in sorted(by_kind.items()):
        stages.add_metric(list(key), _cumulative(counts), total)
    return stages


def _cumulative(counts: list[int]) -> list[Any]:
    """[(upper bound, how many up to it)] of counts by bucket."""
    bounds = [*(f"{bound:.1f}" for bound in STAGE_BUCKETS), "+Inf"]
    return [(bound, sum(counts[: place + 1])) for place, bound in enumerate(bounds)]
