"""groups of answers: an index of the rows that answer the same prompt

Revision: 0016, after 0015.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_GROUP = "((sample ->> 'group'::text)::bigint)"


def upgrade() -> None:
    op.create_index(
        "ix_samples_group",
        "samples",
        ["dataset_id", sa.text(_GROUP)],
        postgresql_where=sa.text(f"{_GROUP} IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_samples_group", table_name="samples")
