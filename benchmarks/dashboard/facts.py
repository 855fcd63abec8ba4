"""What the list of runs is searched, filtered and sorted by: facts, words and marks, as bulk SQL."""

from __future__ import annotations

import uuid

import psycopg

# The platform's own statements take one run at a time; configs here hold their settings at the top.
_SETTINGS = """
    INSERT INTO run_facts (run_id, source, key, project_id, number, word)
    SELECT r.id, 'setting', entry.key, r.project_id,
        CASE WHEN jsonb_typeof(entry.value) = 'number' THEN entry.value::float8 END,
        CASE WHEN jsonb_typeof(entry.value) IN ('string', 'boolean') THEN entry.value #>> '{}' END
    FROM runs r CROSS JOIN LATERAL jsonb_each(r.config) entry
    WHERE r.parent_id IS NULL AND entry.key NOT IN ('run', 'method')
        AND jsonb_typeof(entry.value) IN ('number', 'string', 'boolean')
"""
_METRICS = """
    INSERT INTO run_facts (run_id, source, key, project_id, number, low, high, step)
    SELECT r.id, 'metric', metric, r.project_id, last, last - random(), last + 4 * random(), 1000
    FROM runs r CROSS JOIN unnest(%(metrics)s::text[]) metric
    CROSS JOIN LATERAL (SELECT 1 + (hashtext(r.id::text || metric) & 1023) / 1024.0 AS last) drawn
    WHERE r.parent_id IS NULL AND r.kind = 'train' AND r.started_at IS NOT NULL
"""
_RESULTS = """
    INSERT INTO run_facts (run_id, source, key, project_id, number)
    SELECT r.id, 'result', entry.key, r.project_id, entry.value::float8
    FROM runs r CROSS JOIN LATERAL jsonb_each(r.summary) entry
    WHERE r.parent_id IS NULL AND jsonb_typeof(r.summary) = 'object' AND jsonb_typeof(entry.value) = 'number'
"""
_MARKS = """
    INSERT INTO item_marks (item_id, project_id, type, tags, notes)
    SELECT id, project_id, %(type)s, ARRAY[(ARRAY['keep', 'baseline', 'paper', 'odd'])[1 + n %% 4]],
        CASE WHEN n %% 5 = 0 THEN 'The loss has a spike near step ' || n ELSE '' END
    FROM (SELECT id, project_id, row_number() OVER (ORDER BY id) AS n FROM {table}
          WHERE project_id = %(project)s) things
    WHERE n %% 10 = 0
"""
_ARCHIVED = "UPDATE item_marks SET archived_at = now(), archived_by = 'user:ana' WHERE random() < 0.2"
_WORDS = """
    INSERT INTO run_words (run_id, project_id, words)
    SELECT r.id, r.project_id, to_tsvector('simple', translate(concat_ws(' ', r.name, p.name, r.kind, r.method,
        array_to_string(m.tags, ' '), m.notes, settings.words), '_.-/', '    '))
    FROM runs r LEFT JOIN pipelines p ON p.id = r.pipeline_id LEFT JOIN item_marks m ON m.item_id = r.id
    LEFT JOIN (SELECT run_id, string_agg(concat_ws(' ', key, word, number), ' ') AS words FROM run_facts
               WHERE source = 'setting' GROUP BY run_id) settings ON settings.run_id = r.id
    WHERE r.parent_id IS NULL
"""
_MARKED = {"run": "runs", "pipeline": "pipelines", "model": "models", "dataset": "datasets"}


def store_facts(connection: psycopg.Connection, project: uuid.UUID, metrics: tuple[str, ...]) -> None:
    for statement in (_SETTINGS, _METRICS, _RESULTS):
        connection.execute(statement.encode(), {"metrics": list(metrics)})
    for type_, table in _MARKED.items():
        connection.execute(_MARKS.format(table=table).encode(), {"type": type_, "project": project})
    connection.execute(_ARCHIVED.encode())
    connection.execute(_WORDS.encode())
