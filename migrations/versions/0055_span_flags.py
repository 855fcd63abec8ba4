"""flags on passages of answers in campaigns

Revision: 0055, after 0050.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0055"
down_revision = "0050"
branch_labels = None
depends_on = None

_SPANS = "ranking_spans"


def upgrade() -> None:
    op.add_column(
        "ranking_campaigns",
        sa.Column("span_labels", JSONB(astext_type=sa.Text()), server_default=sa.text("'[]'"), nullable=False),
    )
    op.create_table(
        _SPANS,
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("task_id", sa.Uuid(), nullable=False),
        sa.Column("entrant_id", sa.Uuid(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("end", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("note", sa.String(), nullable=True),
        sa.Column("removed", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint('"end" > "start"', name=op.f("ck_ranking_spans_range")),
        sa.ForeignKeyConstraint(
            ["task_id"], ["ranking_tasks.id"], name=op.f("fk_ranking_spans_task_id_ranking_tasks"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["entrant_id"],
            ["evaluation_entrants.id"],
            name=op.f("fk_ranking_spans_entrant_id_evaluation_entrants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ranking_spans")),
    )
    op.create_index("ix_ranking_spans_task_id", _SPANS, ["task_id"], postgresql_where=sa.text("NOT removed"))
    op.create_index(op.f("ix_ranking_spans_entrant_id"), _SPANS, ["entrant_id"])


def downgrade() -> None:
    op.drop_table(_SPANS)
    op.drop_column("ranking_campaigns", "span_labels")
