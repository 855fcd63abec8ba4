"""juries are circular like their judges, and a calibration that showed names counts no longer

Revision: 0034, after 0033.
"""

from __future__ import annotations

from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

# Forgets the reports of evaluations whose report differs now. They are computed again from the same data when someone
# looks.
_FORGET_REPORTS = """
    DELETE FROM evaluation_reports
    WHERE EXISTS (SELECT 1 FROM evaluation_juries AS jury WHERE jury.evaluation_id = evaluation_reports.evaluation_id)
    OR EXISTS (
        SELECT 1 FROM evaluation_judges AS judge
        WHERE judge.evaluation_id = evaluation_reports.evaluation_id
        AND judge.style = 'multi' AND judge.settings ->> 'blind' = 'false'
    )
"""


def upgrade() -> None:
    op.execute(_FORGET_REPORTS)


def downgrade() -> None:
    op.execute(_FORGET_REPORTS)
