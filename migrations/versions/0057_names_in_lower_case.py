"""names in lower case, for searches that read an index alone

Revision: 0057, after 0056.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None

_TABLES = ("models", "datasets", "pipelines")


def upgrade() -> None:
    for table in _TABLES:
        lower = sa.Computed("lower(name)", persisted=True)
        op.add_column(table, sa.Column("name_lower", sa.String(), lower, nullable=False))
        op.create_index(f"ix_{table}_name_lower", table, ["project_id", "id"], postgresql_include=["name_lower"])


def downgrade() -> None:
    for table in _TABLES:
        op.drop_index(f"ix_{table}_name_lower", table)
        op.drop_column(table, "name_lower")
