"""promotions of models, and collections that grow into datasets

Revision: 0008, after 0007.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_NOW = sa.text("clock_timestamp()")


def upgrade() -> None:
    op.add_column("models", sa.Column("stage", sa.String(), nullable=True))
    op.create_check_constraint(op.f("ck_models_stage"), "models", "stage IN ('candidate', 'production')")
    op.create_index(
        "ix_models_production_policy",
        "models",
        ["project_id"],
        unique=True,
        postgresql_where=sa.text("stage = 'production' AND role IN ('base', 'sft', 'policy')"),
    )
    op.create_index(
        "ix_models_production_reward",
        "models",
        ["project_id"],
        unique=True,
        postgresql_where=sa.text("stage = 'production' AND role IN ('reward', 'preference')"),
    )
    op.create_table(
        "model_promotions",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("model_id", sa.Uuid(), nullable=False),
        sa.Column("stage", sa.String(), nullable=True),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("replaced_by_id", sa.Uuid(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_model_promotions_project_id")),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name=op.f("fk_model_promotions_model_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["replaced_by_id"], ["models.id"], name=op.f("fk_model_promotions_replaced_by_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_promotions")),
    )
    op.create_index("ix_model_promotions_model_id_id", "model_promotions", ["model_id", "id"])
    op.create_index(op.f("ix_model_promotions_replaced_by_id"), "model_promotions", ["replaced_by_id"])
    op.create_table(
        "collections",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_collections_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_collections")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_collections_project_id_name")),
    )
    op.create_table(
        "collection_datasets",
        sa.Column("dataset_id", sa.Uuid(), nullable=False),
        sa.Column("collection_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_collection_datasets_dataset_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collections.id"], name=op.f("fk_collection_datasets_collection_id")
        ),
        sa.PrimaryKeyConstraint("dataset_id", name=op.f("pk_collection_datasets")),
    )
    op.create_index(op.f("ix_collection_datasets_collection_id"), "collection_datasets", ["collection_id"])
    op.create_table(
        "collection_rows",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("collection_id", sa.Uuid(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("sample", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("provenance", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("dataset_id", sa.Uuid(), nullable=True),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["collection_id"], ["collections.id"], name=op.f("fk_collection_rows_collection_id")),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_collection_rows_dataset_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_collection_rows")),
        sa.UniqueConstraint("collection_id", "place", name=op.f("uq_collection_rows_collection_id_place")),
    )
    op.create_index(op.f("ix_collection_rows_dataset_id"), "collection_rows", ["dataset_id"])


def downgrade() -> None:
    op.drop_table("collection_rows")
    op.drop_table("collection_datasets")
    op.drop_table("collections")
    op.drop_table("model_promotions")
    op.drop_index("ix_models_production_reward", table_name="models")
    op.drop_index("ix_models_production_policy", table_name="models")
    op.drop_constraint(op.f("ck_models_stage"), "models")
    op.drop_column("models", "stage")
