"""whom each source of a report prefers, item by item; how often a judge's request was sent

Revision: 0044, after 0043.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

_COLUMNS = {"entrants": JSONB(), "positions": sa.LargeBinary(), "lengths": sa.LargeBinary()}


def upgrade() -> None:
    # They are computed again when someone looks, then with their items.
    op.execute("DELETE FROM evaluation_reports")
    for name, kind in _COLUMNS.items():
        op.add_column("evaluation_reports", sa.Column(name, kind, nullable=False))
    op.create_table(
        "evaluation_report_sources",
        sa.Column("evaluation_id", sa.Uuid(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("valid", sa.Boolean(), nullable=False),
        sa.Column("signs", sa.LargeBinary(), nullable=False),
        sa.Column("flips", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluation_reports.evaluation_id"],
            name=op.f("fk_evaluation_report_sources_evaluation_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "place", name=op.f("pk_evaluation_report_sources")),
    )
    # Not compressed, so that the part of one pair is read alone.
    for column in ("signs", "flips"):
        op.execute(f"ALTER TABLE evaluation_report_sources ALTER COLUMN {column} SET STORAGE EXTERNAL")
    op.add_column("judge_answers", sa.Column("attempts", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.execute("DELETE FROM evaluation_reports")
    op.drop_column("judge_answers", "attempts")
    op.drop_table("evaluation_report_sources")
    for name in _COLUMNS:
        op.drop_column("evaluation_reports", name)
