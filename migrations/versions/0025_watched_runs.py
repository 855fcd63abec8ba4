"""watching runs: answers that they sampled, a pause, settings that changed, health rules that held

Revision: 0025, after 0024.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_FORMER = "state IN ('pending', 'queued', 'running', 'succeeded', 'failed', 'cancelled', 'skipped')"
_WITH_PAUSED = "state IN ('pending', 'queued', 'running', 'succeeded', 'failed', 'cancelled', 'skipped', 'paused')"
_EMPTY = sa.text("'[]'")


def upgrade() -> None:
    op.create_table(
        "sampled_groups",
        sa.Column("run_id", sa.UUID(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("document", JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_sampled_groups_run_id")),
        sa.PrimaryKeyConstraint("run_id", "step", "place", name=op.f("pk_sampled_groups")),
    )
    op.add_column("runs", sa.Column("pause_requested_at", sa.DateTime(timezone=True)))
    op.add_column("runs", sa.Column("pause_requested_by", sa.String()))
    for name in ("changes", "findings"):
        op.add_column("runs", sa.Column(name, JSONB(astext_type=sa.Text()), server_default=_EMPTY, nullable=False))
    op.drop_constraint(op.f("ck_runs_state"), "runs")
    op.create_check_constraint(op.f("ck_runs_state"), "runs", _WITH_PAUSED)


def downgrade() -> None:
    """A former release has no word for paused runs; cancelled ones can be resumed, too."""
    op.drop_constraint(op.f("ck_runs_state"), "runs")
    op.execute("UPDATE runs SET state = 'cancelled', ended_at = now() WHERE state = 'paused'")
    op.create_check_constraint(op.f("ck_runs_state"), "runs", _FORMER)
    for name in ("findings", "changes", "pause_requested_by", "pause_requested_at"):
        op.drop_column("runs", name)
    op.drop_table("sampled_groups")
