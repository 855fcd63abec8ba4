"""a dataset may be a cleaned version of another, and keeps which rows were dropped

Revision: 0019, after 0018.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("datasets", sa.Column("parent_id", sa.UUID(), nullable=True))
    op.create_foreign_key(op.f("fk_datasets_parent_id"), "datasets", "datasets", ["parent_id"], ["id"])
    op.create_index(op.f("ix_datasets_parent_id"), "datasets", ["parent_id"])
    op.create_table(
        "dropped_rows",
        sa.Column("dataset_id", sa.UUID(), nullable=False),
        sa.Column("row", sa.Integer(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("of_row", sa.Integer(), nullable=True),
        sa.Column("detail", JSONB(), nullable=True),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_dropped_rows_dataset_id")),
        sa.PrimaryKeyConstraint("dataset_id", "row", name=op.f("pk_dropped_rows")),
    )


def downgrade() -> None:
    op.drop_table("dropped_rows")
    op.drop_index(op.f("ix_datasets_parent_id"), table_name="datasets")
    op.drop_constraint(op.f("fk_datasets_parent_id"), "datasets", type_="foreignkey")
    op.drop_column("datasets", "parent_id")
