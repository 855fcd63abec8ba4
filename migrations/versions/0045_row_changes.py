"""changes, flags and comments of rows; the words of segments by a part; views of other lists than that of runs

Revision: 0045, after 0047.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0045"
down_revision = "0047"
branch_labels = None
depends_on = None

# As `steerboard.datasets.search.indexing` writes it.
_LEXICONS = """
    UPDATE search_segments SET lexicon = coalesce((
        SELECT E'\\n' || string_agg(word, E'\\n') || E'\\n' FROM search_words WHERE segment_id = search_segments.id
    ), E'\\n') WHERE ready
"""
_NOW = sa.text("clock_timestamp()")


def _of_a_row() -> list[sa.Column[object]]:
    return [sa.Column("dataset_id", sa.Uuid(), nullable=False), sa.Column("row", sa.Integer(), nullable=False)]


def _dataset_of(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=f"fk_{table}_dataset_id", ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "row_changes",
        *_of_a_row(),
        sa.Column("sample", JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("flips", sa.Boolean(), nullable=False),
        sa.Column("revision", sa.Uuid(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        _dataset_of("row_changes"),
        sa.PrimaryKeyConstraint("dataset_id", "row", name="pk_row_changes"),
    )
    op.create_table(
        "row_flags",
        *_of_a_row(),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        _dataset_of("row_flags"),
        sa.PrimaryKeyConstraint("dataset_id", "row", name="pk_row_flags"),
    )
    op.create_table(
        "row_comments",
        sa.Column("id", sa.Uuid(), nullable=False),
        *_of_a_row(),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        _dataset_of("row_comments"),
        sa.PrimaryKeyConstraint("id", name="pk_row_comments"),
    )
    op.create_index("ix_row_comments_dataset_id_row", "row_comments", ["dataset_id", "row"])
    op.add_column("search_segments", sa.Column("lexicon", sa.String(), nullable=True))
    op.execute(_LEXICONS)
    op.rename_table("run_views", "saved_views")
    op.add_column("saved_views", sa.Column("list", sa.String(), server_default=sa.text("'runs'"), nullable=False))
    for old, new in (("fk_run_views_project_id", "fk_saved_views_project_id"), ("pk_run_views", "pk_saved_views")):
        op.execute(f"ALTER TABLE saved_views RENAME CONSTRAINT {old} TO {new}")
    op.drop_constraint("uq_run_views_project_id_name", "saved_views")
    op.create_unique_constraint("uq_saved_views_project_id_list_name", "saved_views", ["project_id", "list", "name"])


def downgrade() -> None:
    op.execute("DELETE FROM saved_views WHERE list <> 'runs'")
    op.drop_constraint("uq_saved_views_project_id_list_name", "saved_views")
    op.drop_column("saved_views", "list")
    op.rename_table("saved_views", "run_views")
    for old, new in (("fk_saved_views_project_id", "fk_run_views_project_id"), ("pk_saved_views", "pk_run_views")):
        op.execute(f"ALTER TABLE run_views RENAME CONSTRAINT {old} TO {new}")
    op.create_unique_constraint("uq_run_views_project_id_name", "run_views", ["project_id", "name"])
    op.drop_column("search_segments", "lexicon")
    for table in ("row_comments", "row_flags", "row_changes"):
        op.drop_table(table)
