"""a preference model of the registry is the judge of an evaluation

Revision: 0023, after 0022.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_TABLE = "evaluation_judges"
_STYLE = "ck_evaluation_judges_style"
_FORMER = ("multi", "single", "pairwise", "alpaca_eval", "arena_hard")


def upgrade() -> None:
    op.add_column(_TABLE, sa.Column("model_id", sa.UUID(), nullable=True))
    op.add_column(_TABLE, sa.Column("content_hash", sa.String(), nullable=True))
    op.create_foreign_key(
        op.f("fk_evaluation_judges_model_id"), _TABLE, "models", ["model_id"], ["id"], ondelete="SET NULL"
    )
    op.create_index(op.f("ix_evaluation_judges_model_id"), _TABLE, ["model_id"])
    _allow((*_FORMER, "preference"))


def downgrade() -> None:
    op.execute(f"DELETE FROM {_TABLE} WHERE style = 'preference'")
    _allow(_FORMER)
    op.drop_index(op.f("ix_evaluation_judges_model_id"), _TABLE)
    op.drop_constraint(op.f("fk_evaluation_judges_model_id"), _TABLE, type_="foreignkey")
    op.drop_column(_TABLE, "content_hash")
    op.drop_column(_TABLE, "model_id")


def _allow(styles: tuple[str, ...]) -> None:
    op.drop_constraint(op.f(_STYLE), _TABLE, type_="check")
    listed = ", ".join(f"'{style}'" for style in styles)
    op.create_check_constraint(op.f(_STYLE), _TABLE, f"style IN ({listed})")
