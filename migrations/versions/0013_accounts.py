"""accounts: whose tokens are, from where people sign in, the audit log without rankings

Revision: 0013, after 0012.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_OWNERS = """
    UPDATE api_tokens t SET user_id = u.id FROM audit_log a JOIN users u ON a.actor = 'user:' || u.name
    WHERE a.action = 'token.create' AND a.project_id = t.project_id
        AND a.target = 'token ' || t.name || ' ' || t.id::text AND t.user_id IS NULL"""


def upgrade() -> None:
    op.create_table(
        "known_addresses",
        sa.Column("user_id", sa.UUID(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_known_addresses_user_id")),
        sa.PrimaryKeyConstraint("user_id", "address", name=op.f("pk_known_addresses")),
    )
    op.create_index("ix_known_addresses_seen_at", "known_addresses", ["seen_at"])
    # So far only the log has recorded who made a token.
    op.execute(_OWNERS)
    op.create_index(
        "ix_audit_log_without_rankings",
        "audit_log",
        ["project_id", "id"],
        postgresql_where=sa.text("left(action, 8) <> 'ranking.'"),
    )


def downgrade() -> None:
    op.drop_index("ix_audit_log_without_rankings", table_name="audit_log")
    # To the release before, a project's token with a person could rank.
    op.execute("UPDATE api_tokens SET user_id = NULL WHERE project_id IS NOT NULL")
    op.drop_table("known_addresses")
