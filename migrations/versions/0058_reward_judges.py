"""judges reward the answers of runs, and judge by rubrics

Revision: 0058, after 0057.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None

_JUDGES = "evaluation_judges"
_STYLE = "ck_evaluation_judges_style"
_FORMER = ("multi", "single", "pairwise", "alpaca_eval", "arena_hard", "preference")
_COUNTS = ("requests", "cached")
_TOKENS = ("prompt_tokens", "completion_tokens")


def upgrade() -> None:
    op.create_table(
        "reward_judges",
        sa.Column("run_id", sa.UUID(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.Integer(), server_default="0", nullable=False) for name in _COUNTS),
        *(sa.Column(name, sa.BigInteger(), server_default="0", nullable=False) for name in _TOKENS),
        *(sa.Column(name, sa.Float(), server_default="0", nullable=False) for name in ("cost", "uncertain_cost")),
        sa.Column("failures", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_reward_judges_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "place", name=op.f("pk_reward_judges")),
    )
    _allow((*_FORMER, "rubric"))


def downgrade() -> None:
    op.execute(f"DELETE FROM {_JUDGES} WHERE style = 'rubric'")
    _allow(_FORMER)
    op.drop_table("reward_judges")


def _allow(styles: tuple[str, ...]) -> None:
    op.drop_constraint(op.f(_STYLE), _JUDGES, type_="check")
    listed = ", ".join(f"'{style}'" for style in styles)
    op.create_check_constraint(op.f(_STYLE), _JUDGES, f"style IN ({listed})")
