"""conditions of several attributes, where there was one score; a score stays the number that it is

Revision: 0017, after 0016.
"""

from __future__ import annotations

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_TABLES = ("evaluation_entrants", "playground_answers")


def upgrade() -> None:
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} ALTER COLUMN score TYPE jsonb USING to_jsonb(score)")


def downgrade() -> None:
    number = "CASE WHEN jsonb_typeof(score) = 'number' THEN score::text::float8 END"
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} ALTER COLUMN score TYPE float8 USING {number}")
