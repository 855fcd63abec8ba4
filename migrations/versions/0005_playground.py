"""comparisons, answers and control curves

Revision: 0005, after 0004.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_STATES = "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')"


def _created_at() -> sa.Column[object]:
    return sa.Column(
        "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
    )


def _lease() -> list[sa.Column[object]]:
    return [
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String()),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True)),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
    ]


def _foreign(table: str, column: str, other: str, *, set_null: bool = False) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}")
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=name, ondelete="SET NULL" if set_null else None)


def upgrade() -> None:
    table = "playground_comparisons"
    op.create_table(
        table,
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.UUID(), nullable=False),
        sa.Column("prompt", postgresql.JSONB(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("reward_model_id", sa.UUID()),
        sa.Column("reward_model_name", sa.String()),
        sa.Column("created_by", sa.String(), nullable=False),
        _created_at(),
        *_lease(),
        _foreign(table, "project_id", "projects"),
        _foreign(table, "reward_model_id", "models", set_null=True),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
    )
    op.create_index("ix_playground_comparisons_project_id_id", table, ["project_id", "id"])
    op.create_index("ix_playground_comparisons_open", table, ["id"], postgresql_where=sa.text("ended_at IS NULL"))

    table = "playground_answers"
    op.create_table(
        table,
        sa.Column("comparison_id", sa.UUID(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("model_id", sa.UUID()),
        sa.Column("endpoint_id", sa.UUID()),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("score", sa.Float()),
        sa.Column("score_text", sa.String()),
        sa.Column("decoding", postgresql.JSONB(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("reuse_key", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("waits_for", sa.String()),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("finished", sa.Boolean(), nullable=False),
        sa.Column("reward", sa.Float()),
        sa.Column("reward_z", sa.Float()),
        sa.Column("first_token_seconds", sa.Float()),
        sa.Column("seconds", sa.Float()),
        sa.Column("error", postgresql.JSONB()),
        sa.Column("reused", sa.Boolean(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint(_STATES, name=op.f(f"ck_{table}_state")),
        sa.CheckConstraint("num_nonnulls(model_id, endpoint_id) <= 1", name=op.f(f"ck_{table}_one_source")),
        _foreign(table, "comparison_id", "playground_comparisons"),
        _foreign(table, "model_id", "models", set_null=True),
        _foreign(table, "endpoint_id", "endpoints", set_null=True),
        sa.PrimaryKeyConstraint("comparison_id", "place", name=op.f(f"pk_{table}")),
    )
    op.create_index(
        "ix_playground_answers_reuse_key", table, ["reuse_key"], postgresql_where=sa.text("state = 'succeeded'")
    )

    table = "playground_curves"
    op.create_table(
        table,
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.UUID(), nullable=False),
        sa.Column("model_id", sa.UUID(), nullable=False),
        sa.Column("model_name", sa.String(), nullable=False),
        sa.Column("reward_model_id", sa.UUID(), nullable=False),
        sa.Column("reward_model_name", sa.String(), nullable=False),
        sa.Column("dataset_id", sa.UUID(), nullable=False),
        sa.Column("dataset_name", sa.String(), nullable=False),
        sa.Column("split", sa.String(), nullable=False),
        sa.Column("scores", postgresql.JSONB(), nullable=False),
        sa.Column("prompt_limit", sa.Integer(), nullable=False),
        sa.Column("prompts", postgresql.JSONB(), nullable=False),
        sa.Column("decoding", postgresql.JSONB(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("waits_for", sa.String()),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("points", postgresql.JSONB(), nullable=False),
        sa.Column("spearman", sa.Float()),
        sa.Column("error", postgresql.JSONB()),
        sa.Column("created_by", sa.String(), nullable=False),
        _created_at(),
        *_lease(),
        sa.CheckConstraint(_STATES, name=op.f(f"ck_{table}_state")),
        _foreign(table, "project_id", "projects"),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
    )
    op.create_index("ix_playground_curves_project_id_model_id", table, ["project_id", "model_id", "id"])
    op.create_index("ix_playground_curves_open", table, ["id"], postgresql_where=sa.text("ended_at IS NULL"))

    op.add_column("workers", sa.Column("holds", postgresql.JSONB(), server_default=sa.text("'[]'"), nullable=False))


def downgrade() -> None:
    op.drop_column("workers", "holds")
    for table in ("playground_curves", "playground_answers", "playground_comparisons"):
        op.drop_table(table)
