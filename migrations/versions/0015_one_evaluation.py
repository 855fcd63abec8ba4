"""one evaluation: the evaluate run that an evaluation was made for

Revision: 0015, after 0014.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

# No worker does an evaluate run any more. Those that wait for one, or are in the hands of one that is about to end,
# start their evaluation instead.
_NOBODY_TAKES = """
    WITH moved AS (
        UPDATE runs SET state = 'pending', reason = 'starts its evaluation', lease_owner = NULL, lease_expires_at = NULL
        WHERE kind = 'evaluate' AND state IN ('queued', 'running')
        RETURNING id, attempt
    )
    UPDATE run_attempts a SET ended_at = clock_timestamp(), outcome = 'stopped', reason = 'Steerboard was upgraded'
    FROM moved WHERE a.run_id = moved.id AND a.attempt = moved.attempt AND a.ended_at IS NULL"""


def upgrade() -> None:
    op.add_column("evaluations", sa.Column("run_id", sa.UUID(), nullable=True))
    op.create_foreign_key(op.f("fk_evaluations_run_id"), "evaluations", "runs", ["run_id"], ["id"])
    op.create_index(op.f("ix_evaluations_run_id"), "evaluations", ["run_id"])
    op.execute(_NOBODY_TAKES)


def downgrade() -> None:
    op.drop_index(op.f("ix_evaluations_run_id"), table_name="evaluations")
    op.drop_constraint(op.f("fk_evaluations_run_id"), "evaluations", type_="foreignkey")
    op.drop_column("evaluations", "run_id")
