"""trackers that runs are exported to, and how far each has got

Revision: 0050, after 0052.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TEXT, UUID

revision = "0050"
down_revision = "0052"
branch_labels = None
depends_on = None


def _time(name: str, *, now: bool = False) -> sa.Column[object]:
    default = sa.text("clock_timestamp()") if now else None
    return sa.Column(name, sa.DateTime(timezone=True), server_default=default, nullable=not now)


def upgrade() -> None:
    op.create_table(
        "trackers",
        sa.Column("id", UUID(as_uuid=True), primary_key=True),
        sa.Column("project_id", UUID(as_uuid=True), sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("settings", JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("run_kinds", ARRAY(TEXT()), nullable=False),
        sa.Column("secret_sealed", sa.String(), nullable=True),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("lease_owner", UUID(as_uuid=True), nullable=True),
        _time("lease_expires_at"),
        _time("next_look_at", now=True),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_error", sa.String(), nullable=True),
        _time("last_export_at"),
        _time("created_at", now=True),
        sa.CheckConstraint("kind IN ('mlflow', 'wandb', 'tensorboard', 'trackio')", name=op.f("ck_trackers_kind")),
        sa.UniqueConstraint("project_id", "name"),
    )
    op.create_index("ix_trackers_due", "trackers", ["next_look_at"], postgresql_where=sa.text("active"))
    op.create_table(
        "run_exports",
        sa.Column("tracker_id", UUID(as_uuid=True), sa.ForeignKey("trackers.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("run_id", UUID(as_uuid=True), sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("remote", sa.String(), nullable=True),
        sa.Column("link", sa.String(), nullable=True),
        sa.Column("folder", sa.String(), nullable=True),
        sa.Column("confirmed_step", sa.Integer(), nullable=True),
        sa.Column("sent_step", sa.Integer(), nullable=True),
        _time("ended_at"),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        _time("next_attempt_at"),
        sa.Column("last_error", sa.String(), nullable=True),
        _time("last_export_at"),
        _time("created_at", now=True),
    )
    op.create_index("ix_run_exports_run_id", "run_exports", ["run_id"])


def downgrade() -> None:
    op.drop_table("run_exports")
    op.drop_table("trackers")
