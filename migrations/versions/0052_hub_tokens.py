"""the token with which a project speaks to its hub, sealed

Revision: 0052, after 0051.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("projects", sa.Column("hub_token_sealed", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("projects", "hub_token_sealed")
