"""imported reviews of both orders count once

Revision: 0032, after 0031.
"""

from __future__ import annotations

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

# Forgets the reports of evaluations whose figures change.
_FORGET_REPORTS = """
    DELETE FROM evaluation_reports USING evaluation_judges AS judge
    WHERE judge.evaluation_id = evaluation_reports.evaluation_id
    AND (judge.imported ->> 'format' = 'vicuna_review' OR judge.settings ->> 'calibration_threshold' IS NOT NULL)
"""


def upgrade() -> None:
    # Keeps the newest review of two answers to a question, as imports do now. Questions on which more entrants were
    # reviewed stay as they are: who was reviewed together is not known any longer.
    op.execute(
        """
        UPDATE evaluation_verdicts AS older SET superseded = true
        FROM evaluation_judges AS judge
        WHERE judge.id = older.judge_id AND judge.imported ->> 'format' = 'vicuna_review' AND NOT older.superseded
        AND 2 = (
            SELECT count(DISTINCT one.a) FROM evaluation_verdicts AS one
            WHERE one.judge_id = older.judge_id AND one.position = older.position
        )
        AND EXISTS (
            SELECT 1 FROM evaluation_verdicts AS newer
            WHERE newer.judge_id = older.judge_id AND newer.position = older.position AND newer.turn = older.turn
            AND newer.a = older.a AND newer.b IS NULL AND NOT newer.superseded
            AND (newer.created_at, newer.id) > (older.created_at, older.id)
        )
        """
    )
    # Computed again from the same data when someone looks: calibrations are read in another way, too.
    op.execute(_FORGET_REPORTS)


def downgrade() -> None:
    op.execute(
        """
        UPDATE evaluation_verdicts AS older SET superseded = false
        FROM evaluation_judges AS judge
        WHERE judge.id = older.judge_id AND judge.imported ->> 'format' = 'vicuna_review' AND older.superseded
        AND NOT EXISTS (
            SELECT 1 FROM evaluation_verdicts AS newer
            WHERE newer.judge_id = older.judge_id AND newer.position = older.position AND newer.turn = older.turn
            AND newer.a = older.a AND newer.a_first IS NOT DISTINCT FROM older.a_first
            AND (NOT newer.superseded OR (newer.created_at, newer.id) > (older.created_at, older.id))
        )
        """
    )
    op.execute(_FORGET_REPORTS)
