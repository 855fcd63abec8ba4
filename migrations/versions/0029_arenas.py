"""arenas: battles of policies without names, and votes on them

Revision: 0029, after 0028.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def _created_at() -> sa.Column[object]:
    return sa.Column(
        "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
    )


def _foreign(table: str, column: str, other: str, *, cascade: bool = False) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}")
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=name, ondelete="CASCADE" if cascade else None)


def upgrade() -> None:
    op.add_column(
        "playground_comparisons", sa.Column("blind", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    op.alter_column("playground_comparisons", "blind", server_default=None)
    op.add_column("playground_answers", sa.Column("prompt", postgresql.JSONB()))

    op.create_table(
        "arenas",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("entrants", postgresql.JSONB(), nullable=False),
        sa.Column("categories", postgresql.JSONB(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        _created_at(),
        sa.CheckConstraint("state IN ('open', 'closed')", name=op.f("ck_arenas_state")),
        _foreign("arenas", "project_id", "projects"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_arenas")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_arenas_project_id_name")),
    )

    table = "arena_battles"
    op.create_table(
        table,
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.UUID(), nullable=False),
        sa.Column("arena_id", sa.UUID(), nullable=False),
        sa.Column("user_id", sa.UUID(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("a", sa.Integer(), nullable=False),
        sa.Column("b", sa.Integer(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("category", sa.String()),
        _created_at(),
        sa.CheckConstraint("a <> b", name=op.f("ck_arena_battles_two_entrants")),
        _foreign(table, "project_id", "projects"),
        _foreign(table, "arena_id", "arenas", cascade=True),
        _foreign(table, "user_id", "users"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_arena_battles")),
        sa.UniqueConstraint("arena_id", "number", name=op.f("uq_arena_battles_arena_id_number")),
    )
    op.create_index(op.f("ix_arena_battles_project_id"), table, ["project_id"])
    op.create_index("ix_arena_battles_user_id_created_at", table, ["user_id", "created_at"])

    table = "arena_turns"
    op.create_table(
        table,
        sa.Column("battle_id", sa.Uuid(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("prompt", sa.String(), nullable=False),
        sa.Column("comparison_id", sa.UUID(), nullable=False),
        _created_at(),
        _foreign(table, "battle_id", "arena_battles", cascade=True),
        _foreign(table, "comparison_id", "playground_comparisons"),
        sa.PrimaryKeyConstraint("battle_id", "place", name=op.f("pk_arena_turns")),
        sa.UniqueConstraint("comparison_id", name=op.f("uq_arena_turns_comparison_id")),
    )

    table = "arena_votes"
    op.create_table(
        table,
        sa.Column("battle_id", sa.Uuid(), nullable=False),
        sa.Column("arena_id", sa.UUID(), nullable=False),
        sa.Column("user_id", sa.UUID(), nullable=False),
        sa.Column("submission", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("category", sa.String()),
        sa.Column("pair", sa.String(), nullable=False),
        sa.Column("prompt_hash", sa.String(), nullable=False),
        sa.Column("counts", sa.Boolean(), nullable=False),
        sa.Column("conversations", postgresql.JSONB(), nullable=False),
        _created_at(),
        sa.CheckConstraint("verdict IN ('a', 'b', 'tie', 'both_bad')", name=op.f("ck_arena_votes_verdict")),
        _foreign(table, "battle_id", "arena_battles", cascade=True),
        _foreign(table, "arena_id", "arenas", cascade=True),
        _foreign(table, "user_id", "users"),
        sa.PrimaryKeyConstraint("battle_id", name=op.f("pk_arena_votes")),
    )
    op.create_index(
        "uq_arena_votes_counts",
        table,
        ["arena_id", "user_id", "pair", "prompt_hash"],
        unique=True,
        postgresql_where=sa.text("counts"),
    )
    op.create_index("ix_arena_votes_user_id_created_at", table, ["user_id", "created_at"])


def downgrade() -> None:
    for table in ("arena_votes", "arena_turns", "arena_battles", "arenas"):
        op.drop_table(table)
    op.drop_column("playground_answers", "prompt")
    # Without the column their names would be shown.
    op.execute(
        "DELETE FROM playground_answers WHERE comparison_id IN (SELECT id FROM playground_comparisons WHERE blind)"
    )
    op.execute("DELETE FROM playground_comparisons WHERE blind")
    op.drop_column("playground_comparisons", "blind")
