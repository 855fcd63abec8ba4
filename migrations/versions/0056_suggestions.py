"""a judge's suggestion to annotators, and whether it was in sight

Revision: 0056, after 0054.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0056"
down_revision = "0054"
branch_labels = None
depends_on = None

_CAMPAIGNS = "ranking_campaigns"
_JUDGE = "fk_ranking_campaigns_judge_id_evaluation_judges"


def upgrade() -> None:
    op.add_column(_CAMPAIGNS, sa.Column("judge_id", sa.Uuid(), nullable=True))
    op.create_foreign_key(_JUDGE, _CAMPAIGNS, "evaluation_judges", ["judge_id"], ["id"], ondelete="SET NULL")
    op.create_index("ix_ranking_campaigns_judge_id", _CAMPAIGNS, ["judge_id"])
    op.add_column("ranking_tasks", sa.Column("suggestion_visible", sa.Boolean(), nullable=True))


def downgrade() -> None:
    op.drop_column("ranking_tasks", "suggestion_visible")
    op.drop_index("ix_ranking_campaigns_judge_id", _CAMPAIGNS)
    op.drop_constraint(_JUDGE, _CAMPAIGNS, type_="foreignkey")
    op.drop_column(_CAMPAIGNS, "judge_id")
