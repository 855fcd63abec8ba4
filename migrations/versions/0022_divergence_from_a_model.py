"""an evaluation may name a model that its entrants' answers are compared with, answer by answer

Revision: 0022, after 0021.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("evaluations", sa.Column("kl_to", JSONB(), nullable=True))
    op.add_column("evaluation_responses", sa.Column("log_ratio", sa.Float(), nullable=True))


def downgrade() -> None:
    op.drop_column("evaluation_responses", "log_ratio")
    op.drop_column("evaluations", "kl_to")
