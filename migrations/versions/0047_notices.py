"""webhooks become notice rules, which may also send to Slack and by e-mail, on a schedule

Revision: 0047, after 0046.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TEXT

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None

# Names of constraints and indexes, which a table's new name leaves as they were.
_NAMES = (
    ("notice_rules", "pk_webhooks", "pk_notice_rules"),
    ("notice_rules", "fk_webhooks_project_id", "fk_notice_rules_project_id"),
    ("notice_rules", "uq_webhooks_project_id_name", "uq_notice_rules_project_id_name"),
    ("notice_deliveries", "pk_webhook_deliveries", "pk_notice_deliveries"),
    ("notice_deliveries", "fk_webhook_deliveries_webhook_id", "fk_notice_deliveries_rule_id"),
    ("notice_deliveries", "ck_webhook_deliveries_state", "ck_notice_deliveries_state"),
)
_INDEXES = (
    ("ix_webhook_deliveries_webhook_id_id", "ix_notice_deliveries_rule_id_id"),
    ("ix_webhook_deliveries_due", "ix_notice_deliveries_due"),
)


def upgrade() -> None:
    op.rename_table("webhooks", "notice_rules")
    op.rename_table("webhook_deliveries", "notice_deliveries")
    op.alter_column("notice_deliveries", "webhook_id", new_column_name="rule_id")
    for table, old, new in _NAMES:
        op.execute(f"ALTER TABLE {table} RENAME CONSTRAINT {old} TO {new}")
    for old, new in _INDEXES:
        op.execute(f"ALTER INDEX {old} RENAME TO {new}")
    op.add_column(
        "notice_rules", sa.Column("channel", sa.String(), server_default=sa.text("'webhook'"), nullable=False)
    )
    op.create_check_constraint(
        op.f("ck_notice_rules_channel"), "notice_rules", "channel IN ('webhook', 'slack', 'email')"
    )
    op.add_column(
        "notice_rules", sa.Column("recipients", ARRAY(TEXT()), server_default=sa.text("'{}'"), nullable=False)
    )
    op.add_column(
        "notice_rules",
        sa.Column("schedule", JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False),
    )
    op.alter_column("notice_rules", "url", nullable=True)
    op.alter_column("notice_rules", "secret_sealed", nullable=True)
    op.add_column("notice_deliveries", sa.Column("once", sa.String(), nullable=True))
    op.create_index(
        "ix_notice_deliveries_once",
        "notice_deliveries",
        ["rule_id", "once"],
        unique=True,
        postgresql_where=sa.text("once IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_notice_deliveries_once", "notice_deliveries")
    op.drop_column("notice_deliveries", "once")
    op.execute("DELETE FROM notice_rules WHERE channel <> 'webhook'")
    op.alter_column("notice_rules", "secret_sealed", nullable=False)
    op.alter_column("notice_rules", "url", nullable=False)
    for column in ("schedule", "recipients", "channel"):
        op.drop_column("notice_rules", column)
    for old, new in _INDEXES:
        op.execute(f"ALTER INDEX {new} RENAME TO {old}")
    for table, old, new in _NAMES:
        op.execute(f"ALTER TABLE {table} RENAME CONSTRAINT {new} TO {old}")
    op.alter_column("notice_deliveries", "rule_id", new_column_name="webhook_id")
    op.rename_table("notice_deliveries", "webhook_deliveries")
    op.rename_table("notice_rules", "webhooks")
