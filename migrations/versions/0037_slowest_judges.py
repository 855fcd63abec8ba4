"""judges ask at least once in 100 minutes

Revision: 0037, after 0036.
"""

from __future__ import annotations

from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        UPDATE evaluation_judges SET settings = jsonb_set(settings, '{requests_per_minute}', '0.01')
        WHERE CAST(settings ->> 'requests_per_minute' AS double precision) < 0.01
    """)


def downgrade() -> None:
    """Changes nothing: the former release takes 0.01, too."""
