"""judges are asked twice, have budgets, and sit in juries

Revision: 0028, after 0027.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

_STATUSES = "status IN ('ok', 'unparsed', 'refused', 'error')"
_NOW = sa.text("clock_timestamp()")


def upgrade() -> None:
    op.add_column("judge_answers", sa.Column("seconds", sa.Float(), nullable=True))
    op.add_column("evaluation_judges", sa.Column("uncertain_cost", sa.Float(), server_default="0", nullable=False))
    op.create_table(
        "evaluation_repeated_verdicts",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("judge_id", sa.UUID(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("a", sa.UUID(), nullable=False),
        sa.Column("b", sa.UUID(), nullable=True),
        sa.Column("a_first", sa.Boolean(), nullable=True),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("answer_key", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.CheckConstraint(_STATUSES, name=op.f("ck_evaluation_repeated_verdicts_status")),
        sa.ForeignKeyConstraint(
            ["judge_id"],
            ["evaluation_judges.id"],
            name=op.f("fk_evaluation_repeated_verdicts_judge_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["a"], ["evaluation_entrants.id"], name=op.f("fk_evaluation_repeated_verdicts_a"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["b"], ["evaluation_entrants.id"], name=op.f("fk_evaluation_repeated_verdicts_b"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation_repeated_verdicts")),
    )
    table = "evaluation_repeated_verdicts"
    op.create_index(f"ix_{table}_judge_id_position", table, ["judge_id", "position"])
    op.create_index(op.f(f"ix_{table}_a"), table, ["a"])
    op.create_index(op.f(f"ix_{table}_b"), table, ["b"])
    op.create_table(
        "evaluation_juries",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("evaluation_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("judges", JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.CheckConstraint("rule IN ('majority', 'mean')", name=op.f("ck_evaluation_juries_rule")),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluations.id"],
            name=op.f("fk_evaluation_juries_evaluation_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation_juries")),
        sa.UniqueConstraint("evaluation_id", "name", name=op.f("uq_evaluation_juries_evaluation_id_name")),
    )
    op.create_index(op.f("ix_evaluation_juries_evaluation_id"), "evaluation_juries", ["evaluation_id"])


def downgrade() -> None:
    op.drop_table("evaluation_juries")
    op.drop_table("evaluation_repeated_verdicts")
    op.drop_column("evaluation_judges", "uncertain_cost")
    op.drop_column("judge_answers", "seconds")
