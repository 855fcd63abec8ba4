"""webhook deliveries are leased like runs and imports: by an owner, for a numbered attempt

Revision: 0033, after 0032.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # What a former release was sending has no owner: it is sent again once its lease has run out.
    op.alter_column("webhook_deliveries", "attempts", new_column_name="attempt")
    op.add_column("webhook_deliveries", sa.Column("lease_owner", sa.UUID()))


def downgrade() -> None:
    op.drop_column("webhook_deliveries", "lease_owner")
    op.alter_column("webhook_deliveries", "attempt", new_column_name="attempts")
