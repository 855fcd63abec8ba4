"""answers to a run's probe prompts, by step

Revision: 0021, after 0020.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "probe_steps",
        sa.Column("run_id", sa.UUID(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("document", JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_probe_steps_run_id")),
        sa.PrimaryKeyConstraint("run_id", "step", name=op.f("pk_probe_steps")),
    )


def downgrade() -> None:
    op.drop_table("probe_steps")
