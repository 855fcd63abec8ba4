"""pairwise, Likert and correction tasks of campaigns

Revision: 0046, after 0044.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0046"
down_revision = "0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "ranking_campaigns",
        sa.Column("task_type", sa.String(), server_default=sa.text("'ranking'"), nullable=False),
    )
    op.create_check_constraint(
        op.f("ck_ranking_campaigns_task_type"),
        "ranking_campaigns",
        "task_type IN ('ranking', 'pairwise', 'likert', 'correction')",
    )
    op.add_column("ranking_tasks", sa.Column("scores", JSONB(astext_type=sa.Text()), nullable=True))
    op.add_column("ranking_tasks", sa.Column("both_bad", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("ranking_tasks", sa.Column("correction", sa.String(), nullable=True))


def downgrade() -> None:
    for column in ("correction", "both_bad", "scores"):
        op.drop_column("ranking_tasks", column)
    op.drop_constraint(op.f("ck_ranking_campaigns_task_type"), "ranking_campaigns")
    op.drop_column("ranking_campaigns", "task_type")
