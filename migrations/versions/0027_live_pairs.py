"""active runs show what they make of inspected pairs

Revision: 0027, after 0026.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "live_pairs",
        sa.Column("run_id", sa.UUID(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("document", JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_live_pairs_run_id")),
        sa.PrimaryKeyConstraint("run_id", "place", name=op.f("pk_live_pairs")),
    )


def downgrade() -> None:
    op.drop_table("live_pairs")
