"""how likely the model that an evaluation names makes each answer

Revision: 0041, after 0040.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

# Reports that were computed before do not include fluency. They are computed again when someone looks.
_FORGET_REPORTS = "DELETE FROM evaluation_reports"


def upgrade() -> None:
    op.add_column("evaluation_responses", sa.Column("log_prob", sa.Float(), nullable=True))
    op.add_column("evaluation_responses", sa.Column("log_prob_tokens", sa.Integer(), nullable=True))
    op.execute(_FORGET_REPORTS)


def downgrade() -> None:
    op.execute(_FORGET_REPORTS)
    op.drop_column("evaluation_responses", "log_prob_tokens")
    op.drop_column("evaluation_responses", "log_prob")
