"""Fills a platform: samples by its own import, and runs, metrics, models and the rest as bulk SQL, then ANALYZE."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import psycopg
from harness.measure import say
from harness.running_platform import Bench

from dashboard.facts import store_facts
from dashboard.outputs import Known, Plan
from dashboard.runs import plan_runs
from dashboard.samples import DATASET, import_samples, wait_for_index, write_samples

SEED_DATASET = "seed-instructions"
METRICS = ("loss", "lr", "grad_norm", "tokens_per_second", "held_out_loss", "reward", "kl", "length")
STEPS = 1_000
_SEED_ROWS = 20
_AUDIT, _EVENTS, _COLLECTIONS, _LOG_LINES = 20_000, 20_000, 20, 100
_ORDER = (
    "pipelines",
    "runs",
    "artifacts",
    "models",
    "reward_sources",
    "datasets",
    "run_inputs",
    "run_outputs",
    "run_transitions",
    "run_attempts",
)
# The fields whose values every new dataset takes from the imported one.
_OF_SEED = ("project_id", "rows", "held_out_rows", "content_hash", "origin")


@dataclass(frozen=True)
class Amounts:
    runs: int
    samples: int
    points: int


def fill(bench: Bench, amounts: Amounts) -> dict[str, float]:
    """Returns the seconds of each step."""
    took: dict[str, float] = {}
    file = bench.home / "samples.jsonl"
    began = time.monotonic()
    write_samples(file, amounts.samples)
    took["write_file"] = time.monotonic() - began
    with bench.client() as client:
        _import_seed(client, bench.home / "seed.jsonl")
        took["import"] = import_samples(client, file, DATASET)
        file.unlink()
        say(f"  imported {amounts.samples:,} samples in {took['import']:.0f} s")
        began = time.monotonic()
        with bench.connect() as connection:
            known = Known(
                _value(connection, "SELECT id FROM projects"),
                _value(connection, "SELECT id FROM datasets WHERE name = %s", SEED_DATASET),
            )
            plan = plan_runs(known, amounts.runs)
            _store(connection, plan, known, amounts.points)
        took["runs_and_metrics"] = time.monotonic() - began
        say(f"  wrote {plan.runs:,} runs with their metrics in {took['runs_and_metrics']:.0f} s")
        took["search_index"] = wait_for_index(client, DATASET)
    _wait_for_segments(bench)
    began = time.monotonic()
    with bench.connect(autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")
    took["analyze"] = time.monotonic() - began
    return {name: round(seconds, 1) for name, seconds in took.items()}


def _value(connection: psycopg.Connection, query: str, *values: object) -> Any:
    row = connection.execute(query.encode(), values).fetchone()
    assert row is not None, query
    return row[0]


def _import_seed(client: httpx.Client, file: Path) -> None:
    with file.open("wb") as out:
        for row in range(_SEED_ROWS):
            sample = {"prompt": f"What is number {row} good for?", "response": "For many things. " * 12}
            out.write(orjson.dumps(sample) + b"\n")
    with file.open("rb") as given:
        form = {"name": SEED_DATASET, "kind": "instructions"}
        client.post("datasets/import", data=form, files={"file": (file.name, given)}).raise_for_status()


def _store(connection: psycopg.Connection, plan: Plan, known: Known, points: int) -> None:
    """One transaction, so that the sweeper sees all of it or nothing."""
    seed = connection.execute(
        f"SELECT {', '.join(_OF_SEED)} FROM datasets WHERE id = %s".encode(), (known.data,)
    ).fetchone()
    assert seed is not None
    for dataset in plan.tables["datasets"]:
        dataset |= dict(zip(_OF_SEED, seed, strict=True))
    for table in _ORDER:
        _copy(connection, table, plan.tables[table])
    _clone_rows(connection, plan, known)
    _metrics(connection, plan, points)
    _logs_and_the_rest(connection, plan, known)
    store_facts(connection, known.project, METRICS)
    # Before the first statement of the platform that would be planned for empty tables.
    connection.execute("ANALYZE")


def _copy(connection: psycopg.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row([_text(row.get(column)) for column in columns])


def _text(value: Any) -> Any:
    return orjson.dumps(value).decode() if isinstance(value, dict) else value


def _clone_rows(connection: psycopg.Connection, plan: Plan, known: Known) -> None:
    """The rows of datasets that runs made are those of the imported one; the platform itself indexes their words."""
    given = {"seed": known.data, "clones": plan.clones}
    connection.execute(
        """INSERT INTO samples (dataset_id, row, prompt_hash, held_out, sample, extra)
           SELECT clone, row, prompt_hash, held_out, sample, extra
           FROM unnest(%(clones)s::uuid[]) clone CROSS JOIN samples WHERE dataset_id = %(seed)s""",
        given,
    )
    connection.execute(
        """INSERT INTO dataset_statistics (dataset_id, figures, held_out, response_lengths, source_names, source_codes)
           SELECT clone, figures, held_out, response_lengths, source_names, source_codes
           FROM unnest(%(clones)s::uuid[]) clone CROSS JOIN dataset_statistics WHERE dataset_id = %(seed)s""",
        given,
    )
    connection.execute(
        """INSERT INTO search_segments (dataset_id, first_row, rows, ready)
           SELECT clone, 0, d.rows, false
           FROM unnest(%(clones)s::uuid[]) clone CROSS JOIN datasets d WHERE d.id = %(seed)s""",
        given,
    )
    connection.execute(
        """INSERT INTO rewards (dataset_id, reward_source_id, row, value)
           SELECT d.base_dataset_id, d.reward_source_id, row, row * 0.05
           FROM datasets d CROSS JOIN generate_series(0, d.rows - 1) row
           WHERE d.base_dataset_id = ANY(%(clones)s)""",
        given,
    )


def _metrics(connection: psycopg.Connection, plan: Plan, points: int) -> None:
    """One run has a twelfth of all points, and the newest trained runs share the others."""
    long, *others = reversed(plan.trained)
    of_long = max(1, points // 12 // len(METRICS))
    count = min(len(others), max(4, (points - of_long * len(METRICS)) // (STEPS * len(METRICS))))
    steps = (points // len(METRICS) - of_long) // count
    for runs, length in (([long], of_long), (others[:count], steps)):
        connection.execute(
            """INSERT INTO metrics (run_id, name, step, value, attempt)
               SELECT run, name, step, 1 + 4 / (1 + step / 50.0) + random() / 10, 1
               FROM unnest(%s::uuid[]) run CROSS JOIN unnest(%s::text[]) name CROSS JOIN generate_series(1, %s) step
               ORDER BY run, step, name""",
            (runs, list(METRICS), length),
        )
    connection.execute(
        """INSERT INTO run_logs (run_id, attempt, level, message)
           SELECT run, 1, 'info', 'step ' || line || ' loss 1.9 of what has been learned so far'
           FROM unnest(%s::uuid[]) run CROSS JOIN generate_series(1, %s) line""",
        ([long, *others[:count]], _LOG_LINES),
    )


def _logs_and_the_rest(connection: psycopg.Connection, plan: Plan, known: Known) -> None:
    """Audit rows, events and collections."""
    given = {"project": known.project, "data": known.data}
    # Ids by age, as the platform's own are: the time in front.
    id_ = "(lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 19))::uuid"
    connection.execute(
        f"""INSERT INTO audit_log (id, project_id, actor, action, target, detail, created_at)
            SELECT {id_}, %(project)s, (ARRAY['user:local', 'user:ana', 'token:ci'])[1 + n %% 3],
                   (ARRAY['run.start', 'run.move', 'dataset.import', 'member.add'])[1 + n %% 4],
                   'run ' || n, '{{"config": {{"lr": 0.0001}}}}', at
            FROM (SELECT n, clock_timestamp() - n * interval '3 minutes' AS at
                  FROM generate_series(1, {_AUDIT}) n) past""".encode(),
        given,
    )
    connection.execute("INSERT INTO event_streams VALUES (%(project)s, 0) ON CONFLICT DO NOTHING", given)
    last = _value(
        connection,
        f"UPDATE event_streams SET last_id = last_id + {_EVENTS} WHERE project_id = %s RETURNING last_id",
        known.project,
    )
    payload = {"run_id": str(plan.trained[-1]), "pipeline_id": None, "name": "sft", "state": "queued", "attempt": 1}
    connection.execute(
        """INSERT INTO events (project_id, id, type, payload)
           SELECT %s, id, 'run.state', %s::jsonb FROM generate_series(%s::int, %s::int) id""",
        (known.project, orjson.dumps(payload).decode(), last - _EVENTS + 1, last),
    )
    connection.execute(
        f"""WITH made AS (
                INSERT INTO collections (id, project_id, name, kind, created_by)
                SELECT gen_random_uuid(), %(project)s, 'collection-' || n, 'instructions', 'user:ana'
                FROM generate_series(1, {_COLLECTIONS}) n RETURNING id)
            INSERT INTO collection_rows (id, collection_id, place, sample, dataset_id, actor)
            SELECT gen_random_uuid(), made.id, s.row, s.sample, CASE WHEN s.row < 10 THEN s.dataset_id END, 'user:ana'
            FROM made CROSS JOIN samples s WHERE s.dataset_id = %(data)s""".encode(),
        given,
    )


def _wait_for_segments(bench: Bench, seconds: float = 3600.0) -> None:
    """The words of all other datasets too: indexing would take a core away from what is measured."""
    deadline = time.monotonic() + seconds
    with bench.connect(autocommit=True) as connection:
        while _value(connection, "SELECT EXISTS (SELECT FROM search_segments WHERE NOT ready)"):
            if time.monotonic() > deadline:
                raise SystemExit("the search index of the small datasets is not ready")
            time.sleep(0.5)


def sizes(bench: Bench) -> dict[str, int]:
    """Counts of the existing rows."""
    counted = {
        "runs": "runs",
        "samples": f"samples WHERE dataset_id = (SELECT id FROM datasets WHERE name = '{DATASET}')",
        "metric_points": "metrics",
        "pipelines": "pipelines",
        "datasets": "datasets",
        "models": "models",
        "run_facts": "run_facts",
        "queued": "runs WHERE state = 'queued'",
        "audit_rows": "audit_log",
        "events": "events",
    }
    with bench.connect(autocommit=True) as connection:
        counts = {name: int(_value(connection, f"SELECT count(*) FROM {what}")) for name, what in counted.items()}
        counts["database_mb"] = int(_value(connection, "SELECT pg_database_size(current_database())")) >> 20
    return counts
