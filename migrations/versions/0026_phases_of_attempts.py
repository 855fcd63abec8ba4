"""attempts keep the phases that their device time went into

Revision: 0026, after 0025.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Null for the attempts of former releases, of which no one knows."""
    op.add_column("run_attempts", sa.Column("phases", JSONB, nullable=True))


def downgrade() -> None:
    op.drop_column("run_attempts", "phases")
