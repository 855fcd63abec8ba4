"""campaigns ask questions of their own, and answers keep their prompts as the model was given
them

Revision: 0060, after 0059.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0060"
down_revision = "0059"
branch_labels = None
depends_on = None

_NEW = {
    "ranking_tasks": ("replies",),
    "ranking_decisions": ("replies",),
    "evaluation_responses": ("prompts", "prompt_tokens", "seconds"),
}


def upgrade() -> None:
    none = sa.text("'[]'::jsonb")
    op.add_column("ranking_campaigns", sa.Column("questions", postgresql.JSONB(), server_default=none, nullable=False))
    for table, columns in _NEW.items():
        for column in columns:
            op.add_column(table, sa.Column(column, postgresql.JSONB(), nullable=True))


def downgrade() -> None:
    op.drop_column("ranking_campaigns", "questions")
    for table, columns in _NEW.items():
        for column in columns:
            op.drop_column(table, column)
