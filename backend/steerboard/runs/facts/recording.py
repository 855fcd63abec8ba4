"""Keeps facts and words of runs as their settings, metrics and results change, in the transaction of the change."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Literal

from sqlalchemy import text
from sqlalchemy.orm import Session

from steerboard.runs.facts.words import GLUE
from steerboard.runs.tables import Run

LONGEST_KEY = 200
LONGEST_WORD = 200

# Numbers, texts and switches in a tree, each under the path to it, such as `lora.rank`. What a list holds is left out.
_LEAVES = """
    WITH RECURSIVE leaves AS (
        SELECT r.id, r.project_id, entry.key AS path, entry.value FROM runs r CROSS JOIN LATERAL
            jsonb_each(CASE WHEN jsonb_typeof(r.{column}) = 'object' THEN r.{column} ELSE '{{}}' END) entry
        WHERE r.id = :run AND entry.key NOT IN ('run', 'method')
        UNION ALL
        SELECT leaves.id, leaves.project_id, leaves.path || '.' || entry.key, entry.value FROM leaves CROSS JOIN LATERAL
            jsonb_each(CASE WHEN jsonb_typeof(leaves.value) = 'object' THEN leaves.value ELSE '{{}}' END) entry
    )
    INSERT INTO run_facts (run_id, source, key, project_id, number, word)
    SELECT id, '{source}', path, project_id,
        CASE WHEN jsonb_typeof(value) = 'number' THEN value::float8 END,
        CASE WHEN jsonb_typeof(value) IN ('string', 'boolean') THEN left(value #>> '{{}}', {longest_word}) END
    FROM leaves WHERE jsonb_typeof(value) IN ('number', 'string', 'boolean') AND length(path) <= {longest_key}
"""
_OF_TREE = {
    source: text(_LEAVES.format(source=source, column=column, longest_word=LONGEST_WORD, longest_key=LONGEST_KEY))
    for source, column in (("setting", "config"), ("result", "summary"))
}
_CLEAR = text("DELETE FROM run_facts WHERE run_id = :run AND source = :source")
_METRIC = text(
    """
    INSERT INTO run_facts AS f (run_id, source, key, project_id, number, low, high, step)
    VALUES (:run, 'metric', :key, :project, :number, :low, :high, :step)
    ON CONFLICT (run_id, source, key) DO UPDATE SET
        number = CASE WHEN excluded.step >= f.step THEN excluded.number ELSE f.number END,
        low = least(f.low, excluded.low), high = greatest(f.high, excluded.high), step = greatest(f.step, excluded.step)
    """
)
# From all points: replayed steps may have overwritten an extreme.
_ALL_METRICS = text(
    f"""
    INSERT INTO run_facts (run_id, source, key, project_id, number, low, high, step)
    SELECT :run, 'metric', extremes.name, :project, last.value, extremes.low, extremes.high, extremes.step
    FROM (SELECT name, max(step) AS step, min(value) AS low, max(value) AS high FROM metrics
          WHERE run_id = :run AND length(name) <= {LONGEST_KEY} GROUP BY name) AS extremes
    JOIN metrics last ON last.run_id = :run AND last.name = extremes.name AND last.step = extremes.step
    """
)
_TAKEN_OVER = text(
    """
    INSERT INTO run_facts (run_id, source, key, project_id, number, low, high, step)
    SELECT :run, source, key, project_id, number, low, high, step FROM run_facts
    WHERE run_id = :source AND source = 'metric' ON CONFLICT DO NOTHING
    """
)
_WORDS = text(
    """
    INSERT INTO run_words (run_id, project_id, words)
    SELECT r.id, r.project_id, to_tsvector('simple', translate(concat_ws(' ', r.name, p.name, r.kind, r.method,
        array_to_string(m.tags, ' '), left(m.notes, 100000),
        (SELECT string_agg(concat_ws(' ', f.key, f.word, f.number), ' ') FROM run_facts f
         WHERE f.run_id = r.id AND f.source = 'setting')
    ), :glue, repeat(' ', length(:glue))))
    FROM runs r LEFT JOIN pipelines p ON p.id = r.pipeline_id LEFT JOIN item_marks m ON m.item_id = r.id
    WHERE r.id = :run
    ON CONFLICT (run_id) DO UPDATE SET words = excluded.words
    """
)


def note_settings(session: Session, run: Run) -> None:
    """Called after the run was made or its config changed; its row is flushed."""
    if run.parent_id is None:
        _note_tree(session, run.id, "setting")
        note_words(session, run.id)


def note_words(session: Session, run_id: uuid.UUID) -> None:
    """Called after anything changed that a text search finds the run by."""
    session.execute(_WORDS, {"run": run_id, "glue": GLUE})


def note_metrics(session: Session, run: Run, values: Mapping[tuple[str, int], float]) -> None:
    """`values` by (name, step), as they were stored."""
    if run.parent_id is not None:
        return
    steps: dict[str, dict[int, float]] = {}
    for (name, step), value in values.items():
        if len(name) <= LONGEST_KEY:
            steps.setdefault(name, {})[step] = value
    rows = [
        {
            "run": run.id,
            "project": run.project_id,
            "key": name,
            "step": max(points),
            "number": points[max(points)],
            "low": min(points.values()),
            "high": max(points.values()),
        }
        for name, points in sorted(steps.items())
    ]
    if rows:
        session.execute(_METRIC, rows)


def note_end(session: Session, run: Run) -> None:
    """Called after the run has ended: records the results of its summary, and metrics that other attempts or another
    run wrote."""
    if run.parent_id is not None:
        return
    _note_tree(session, run.id, "result")
    if run.reused_from_id is not None:
        session.execute(_TAKEN_OVER, {"run": run.id, "source": run.reused_from_id})
    elif run.attempt > 1:
        session.execute(_CLEAR, {"run": run.id, "source": "metric"})
        session.execute(_ALL_METRICS, {"run": run.id, "project": run.project_id})


def _note_tree(session: Session, run_id: uuid.UUID, source: Literal["setting", "result"]) -> None:
    session.execute(_CLEAR, {"run": run_id, "source": source})
    session.execute(_OF_TREE[source], {"run": run_id})
