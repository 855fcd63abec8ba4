"""held-out rows of a dataset

Revision: 0002, after 0001.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Previews leave the held-out rows out of a million without reading a million samples.
    op.create_index(
        "ix_samples_held_out", "samples", ["dataset_id", "row"], unique=False, postgresql_where=sa.text("held_out")
    )


def downgrade() -> None:
    op.drop_index("ix_samples_held_out", table_name="samples", postgresql_where=sa.text("held_out"))
