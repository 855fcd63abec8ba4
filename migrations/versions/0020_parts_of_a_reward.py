"""a reward source that adds up others keeps how each was normalised

Revision: 0020, after 0019.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("reward_sources", sa.Column("parts", JSONB(), nullable=True))


def downgrade() -> None:
    op.drop_column("reward_sources", "parts")
