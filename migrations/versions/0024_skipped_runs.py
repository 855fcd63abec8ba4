"""runs may be skipped: stages of rounds that a recipe's stop rule left out

Revision: 0024, after 0023.
"""

from __future__ import annotations

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_FORMER = "state IN ('pending', 'queued', 'running', 'succeeded', 'failed', 'cancelled')"
_WITH_SKIPPED = "state IN ('pending', 'queued', 'running', 'succeeded', 'failed', 'cancelled', 'skipped')"


def upgrade() -> None:
    op.drop_constraint(op.f("ck_runs_state"), "runs")
    op.create_check_constraint(op.f("ck_runs_state"), "runs", _WITH_SKIPPED)


def downgrade() -> None:
    """A former release has no word for them; a cancelled one ends its pipeline as cancelled."""
    op.drop_constraint(op.f("ck_runs_state"), "runs")
    op.execute("UPDATE runs SET state = 'cancelled' WHERE state = 'skipped'")
    op.create_check_constraint(op.f("ck_runs_state"), "runs", _FORMER)
