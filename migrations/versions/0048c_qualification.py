"""gold items that annotators have to pass before their submissions count

Revision: 0048c, after 0048b.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0048c"
down_revision = "0048b"
branch_labels = None
depends_on = None

_TABLE = "ranking_campaigns"


def upgrade() -> None:
    op.add_column(_TABLE, sa.Column("qualify_items", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.add_column(_TABLE, sa.Column("qualify_share", sa.Float(), server_default=sa.text("0.7"), nullable=False))


def downgrade() -> None:
    op.drop_column(_TABLE, "qualify_share")
    op.drop_column(_TABLE, "qualify_items")
