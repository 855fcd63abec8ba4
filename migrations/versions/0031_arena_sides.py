"""two to four entrants answer side by side in an arena

Revision: 0031, after 0030.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def _verdicts(*verdicts: str) -> None:
    listed = ", ".join(f"'{verdict}'" for verdict in verdicts)
    op.create_check_constraint(op.f("ck_arena_votes_verdict"), "arena_votes", f"verdict IN ({listed})")


def upgrade() -> None:
    op.add_column("arenas", sa.Column("sides", sa.Integer(), server_default="2", nullable=False))
    op.alter_column("arenas", "sides", server_default=None)
    op.create_check_constraint(op.f("ck_arenas_sides"), "arenas", "sides IN (2, 3, 4)")

    op.add_column("arena_battles", sa.Column("entrants", postgresql.ARRAY(sa.Integer())))
    op.execute("UPDATE arena_battles SET entrants = ARRAY[a, b]")
    op.alter_column("arena_battles", "entrants", nullable=False)
    op.create_check_constraint(op.f("ck_arena_battles_sides"), "arena_battles", "cardinality(entrants) BETWEEN 2 AND 4")
    op.drop_constraint(op.f("ck_arena_battles_two_entrants"), "arena_battles")
    op.drop_column("arena_battles", "a")
    op.drop_column("arena_battles", "b")

    op.alter_column("arena_votes", "pair", new_column_name="entrant_set")
    op.drop_constraint(op.f("ck_arena_votes_verdict"), "arena_votes")
    op.execute("UPDATE arena_votes SET verdict = 'all_bad' WHERE verdict = 'both_bad'")
    _verdicts("a", "b", "c", "d", "tie", "all_bad")


def downgrade() -> None:
    # With their battles and votes: a former release knows only two sides.
    op.execute("DELETE FROM arenas WHERE sides > 2")
    op.drop_constraint(op.f("ck_arena_votes_verdict"), "arena_votes")
    op.execute("UPDATE arena_votes SET verdict = 'both_bad' WHERE verdict = 'all_bad'")
    _verdicts("a", "b", "tie", "both_bad")
    op.alter_column("arena_votes", "entrant_set", new_column_name="pair")

    op.add_column("arena_battles", sa.Column("a", sa.Integer()))
    op.add_column("arena_battles", sa.Column("b", sa.Integer()))
    op.execute("UPDATE arena_battles SET a = entrants[1], b = entrants[2]")
    op.alter_column("arena_battles", "a", nullable=False)
    op.alter_column("arena_battles", "b", nullable=False)
    op.create_check_constraint(op.f("ck_arena_battles_two_entrants"), "arena_battles", "a <> b")
    op.drop_constraint(op.f("ck_arena_battles_sides"), "arena_battles")
    op.drop_column("arena_battles", "entrants")

    op.drop_constraint(op.f("ck_arenas_sides"), "arenas")
    op.drop_column("arenas", "sides")
