"""tags, notes, favourites, and what lists of runs are searched, filtered and sorted by

Revision: 0043, after 0042.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TEXT, TSVECTOR

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

_LISTED = sa.text("parent_id IS NULL")
_SORTED = ("name", "state", "kind")
_VALUES = ("number", "word", "low", "high")

# As `steerboard.runs.facts.recording` writes them.
_TREES = """
    INSERT INTO run_facts (run_id, source, key, project_id, number, word)
    WITH RECURSIVE leaves AS (
        SELECT r.id, r.project_id, entry.key AS path, entry.value FROM runs r CROSS JOIN LATERAL
            jsonb_each(CASE WHEN jsonb_typeof(r.{column}) = 'object' THEN r.{column} ELSE '{{}}' END) entry
        WHERE r.parent_id IS NULL AND entry.key NOT IN ('run', 'method')
        UNION ALL
        SELECT leaves.id, leaves.project_id, leaves.path || '.' || entry.key, entry.value FROM leaves CROSS JOIN LATERAL
            jsonb_each(CASE WHEN jsonb_typeof(leaves.value) = 'object' THEN leaves.value ELSE '{{}}' END) entry
    )
    SELECT id, '{source}', path, project_id,
        CASE WHEN jsonb_typeof(value) = 'number' THEN value::float8 END,
        CASE WHEN jsonb_typeof(value) IN ('string', 'boolean') THEN left(value #>> '{{}}', 200) END
    FROM leaves WHERE jsonb_typeof(value) IN ('number', 'string', 'boolean') AND length(path) <= 200
"""
_METRICS = """
    INSERT INTO run_facts (run_id, source, key, project_id, number, low, high, step)
    SELECT found.run_id, 'metric', found.name, r.project_id, last.value, found.low, found.high, found.step
    FROM (SELECT run_id, name, max(step) AS step, min(value) AS low, max(value) AS high
          FROM metrics WHERE length(name) <= 200 GROUP BY run_id, name) AS found
    JOIN runs r ON r.id = found.run_id AND r.parent_id IS NULL
    JOIN metrics last ON last.run_id = found.run_id AND last.name = found.name AND last.step = found.step
"""
_REUSED = """
    INSERT INTO run_facts (run_id, source, key, project_id, number, low, high, step)
    SELECT r.id, 'metric', f.key, r.project_id, f.number, f.low, f.high, f.step
    FROM runs r JOIN run_facts f ON f.run_id = r.reused_from_id AND f.source = 'metric'
    WHERE r.parent_id IS NULL
    ON CONFLICT DO NOTHING
"""
_WORDS = """
    INSERT INTO run_words (run_id, project_id, words)
    SELECT r.id, r.project_id, to_tsvector('simple', translate(concat_ws(' ', r.name, p.name, r.kind, r.method,
        (SELECT string_agg(concat_ws(' ', f.key, f.word, f.number), ' ') FROM run_facts f
         WHERE f.run_id = r.id AND f.source = 'setting')
    ), './@-_<>&~+:,;=|', '               '))
    FROM runs r LEFT JOIN pipelines p ON p.id = r.pipeline_id WHERE r.parent_id IS NULL
"""


def upgrade() -> None:
    _marks()
    op.create_table(
        "run_facts",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Float(), nullable=True),
        sa.Column("word", sa.String(), nullable=True),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("step", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_facts_run_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_run_facts_project_id"),
        sa.PrimaryKeyConstraint("run_id", "source", "key", name="pk_run_facts"),
    )
    op.create_table(
        "run_words",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("words", TSVECTOR(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_words_run_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_run_words_project_id"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_words"),
    )
    op.create_table(
        "run_views",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("query", JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_run_views_project_id"),
        sa.PrimaryKeyConstraint("id", name="pk_run_views"),
        sa.UniqueConstraint("project_id", "name", name="uq_run_views_project_id_name"),
    )
    op.execute(_TREES.format(column="config", source="setting"))
    op.execute(_TREES.format(column="summary", source="result"))
    op.execute(_METRICS)
    op.execute(_REUSED)
    op.execute(_WORDS)
    for value in _VALUES:
        op.create_index(
            f"ix_run_facts_{value}",
            "run_facts",
            ["project_id", "source", "key", value, "run_id"],
            postgresql_where=sa.text(f"{value} IS NOT NULL"),
        )
    op.create_index("ix_run_words_words", "run_words", ["words"], postgresql_using="gin")
    for column in _SORTED:
        op.create_index(f"ix_runs_{column}", "runs", ["project_id", column, "id"], postgresql_where=_LISTED)
    op.create_index(
        "ix_runs_reused_from_id", "runs", ["reused_from_id"], postgresql_where=sa.text("reused_from_id IS NOT NULL")
    )
    op.create_index(
        "ix_runs_device_time",
        "runs",
        ["project_id", sa.text("(device_seconds + failed_device_seconds)"), "id"],
        postgresql_where=_LISTED,
    )
    op.create_index(
        "ix_runs_duration",
        "runs",
        ["project_id", sa.text("(ended_at - started_at)"), "id"],
        postgresql_where=_LISTED,
    )


def _marks() -> None:
    op.create_table(
        "item_marks",
        sa.Column("item_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("tags", ARRAY(TEXT()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("notes", sa.String(), server_default=sa.text("''"), nullable=False),
        sa.Column("archived_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("archived_by", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_item_marks_project_id"),
        sa.PrimaryKeyConstraint("item_id", name="pk_item_marks"),
    )
    op.create_index("ix_item_marks_project_id_type", "item_marks", ["project_id", "type"])
    op.create_index("ix_item_marks_tags", "item_marks", ["tags"], postgresql_using="gin")
    op.create_index(
        "ix_item_marks_archived", "item_marks", ["item_id"], postgresql_where=sa.text("archived_at IS NOT NULL")
    )
    op.create_table(
        "favourites",
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("item_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_favourites_project_id"),
        sa.PrimaryKeyConstraint("owner", "item_id", name="pk_favourites"),
    )
    op.create_index("ix_favourites_item_id", "favourites", ["item_id"])


def downgrade() -> None:
    for index in ("duration", "device_time", "reused_from_id", *_SORTED):
        op.drop_index(f"ix_runs_{index}", "runs")
    for table in ("run_views", "run_words", "run_facts", "favourites", "item_marks"):
        op.drop_table(table)
