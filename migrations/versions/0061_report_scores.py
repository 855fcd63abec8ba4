"""Kept reports hold the scores of each source, so that items can be sorted by them

Revision: 0061, after 0060. Reports are computed again when they are next asked for.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0061"
down_revision = "0060"
branch_labels = None
depends_on = None

_TABLE = "evaluation_report_sources"


def upgrade() -> None:
    op.execute("DELETE FROM evaluation_reports")
    op.add_column(_TABLE, sa.Column("scores", sa.LargeBinary(), nullable=False))
    # Parts are read by their place, which a compressed value does not allow.
    op.execute(f"ALTER TABLE {_TABLE} ALTER COLUMN scores SET STORAGE EXTERNAL")


def downgrade() -> None:
    op.drop_column(_TABLE, "scores")
