"""runs count the attempts that failed and those that lost their machine apart

Revision: 0035, after 0034.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

# Until now `max_attempts` rose with every attempt that did not count. What a run has left stays what it was:
# `uncounted` is 1 where the newest attempt has not failed, so that its number is not yet spent.
_COUNTED = """
    WITH counted AS (
        SELECT run.id, count(*) FILTER (WHERE one.outcome = 'failed') AS failed,
            count(*) FILTER (
                WHERE one.attempt = run.attempt AND coalesce(one.outcome, 'succeeded') IN ('succeeded', 'cancelled')
            ) AS uncounted
        FROM runs AS run JOIN run_attempts AS one ON one.run_id = run.id GROUP BY run.id
    )
"""
_COUNT_FAILED = f"""{_COUNTED}
    UPDATE runs SET failed_attempts = failed, max_attempts = max_attempts - attempt + failed + uncounted
    FROM counted WHERE counted.id = runs.id
"""
_COUNT_ALL = f"""{_COUNTED}
    UPDATE runs SET max_attempts = max_attempts + attempt - failed_attempts - uncounted
    FROM counted WHERE counted.id = runs.id
"""


def upgrade() -> None:
    op.add_column("runs", sa.Column("failed_attempts", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("interruptions", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("max_interruptions", sa.Integer(), nullable=False, server_default="10"))
    op.execute(_COUNT_FAILED)


def downgrade() -> None:
    op.execute(_COUNT_ALL)
    for column in ("failed_attempts", "interruptions", "max_interruptions"):
        op.drop_column("runs", column)
