"""stored figures of datasets, the order of their rewards, and the words of their samples

Revision: 0006, after 0005. Datasets from before get their figures when these are first asked for, or in the background;
their samples are entered here to be indexed.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_SEGMENT_ROWS = 32_768


def upgrade() -> None:
    op.create_table(
        "dataset_statistics",
        sa.Column("dataset_id", sa.UUID(), nullable=False),
        sa.Column("figures", postgresql.JSONB(), nullable=False),
        sa.Column("held_out", sa.LargeBinary(), nullable=False),
        sa.Column("response_lengths", sa.LargeBinary(), nullable=True),
        sa.Column("source_names", postgresql.JSONB(), nullable=True),
        sa.Column("source_codes", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_dataset_statistics_dataset_id")),
        sa.PrimaryKeyConstraint("dataset_id", name=op.f("pk_dataset_statistics")),
    )
    op.create_table(
        "reward_statistics",
        sa.Column("dataset_id", sa.UUID(), nullable=False),
        sa.Column("reward_source_id", sa.UUID(), nullable=False),
        sa.Column("version", sa.UUID(), nullable=False),
        sa.Column("figures", postgresql.JSONB(), nullable=False),
        sa.Column("bins", postgresql.JSONB(), nullable=False),
        sa.Column("by_length", postgresql.JSONB(), nullable=True),
        sa.Column("values", sa.LargeBinary(), nullable=False),
        sa.Column("ranking", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_reward_statistics_dataset_id")),
        sa.ForeignKeyConstraint(
            ["reward_source_id"], ["reward_sources.id"], name=op.f("fk_reward_statistics_reward_source_id")
        ),
        sa.PrimaryKeyConstraint("dataset_id", "reward_source_id", name=op.f("pk_reward_statistics")),
    )
    op.create_table(
        "search_segments",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("dataset_id", sa.UUID(), nullable=False),
        sa.Column("first_row", sa.Integer(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("ready", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_search_segments_dataset_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_search_segments")),
    )
    op.create_index(
        "ix_search_segments_dataset_id_first_row", "search_segments", ["dataset_id", "first_row"], unique=True
    )
    op.create_index("ix_search_segments_waiting", "search_segments", ["id"], postgresql_where=sa.text("NOT ready"))
    op.create_table(
        "search_words",
        sa.Column("segment_id", sa.BigInteger(), nullable=False),
        sa.Column("word", sa.String(), nullable=False),
        sa.Column("rows", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("segment_id", "word", name=op.f("pk_search_words")),
    )
    # These bytes hardly compress, and an uncompressed value is read in a fraction of the time.
    for table, columns in (
        ("dataset_statistics", ("held_out", "response_lengths", "source_codes")),
        ("reward_statistics", ("values", "ranking")),
        ("search_words", ("rows",)),
    ):
        for column in columns:
            op.execute(f'ALTER TABLE {table} ALTER COLUMN "{column}" SET STORAGE EXTERNAL')
    op.execute(
        "INSERT INTO search_segments (dataset_id, first_row, rows, ready)"
        f" SELECT d.id, first, least({_SEGMENT_ROWS}, d.rows - first), false"
        f" FROM datasets d, generate_series(0, d.rows - 1, {_SEGMENT_ROWS}) first"
        " WHERE d.base_dataset_id IS NULL ORDER BY d.id, first"
    )


def downgrade() -> None:
    op.drop_table("search_words")
    op.drop_table("search_segments")
    op.drop_table("reward_statistics")
    op.drop_table("dataset_statistics")
