"""links to reports become links to any page, and comparisons are shared too

Revision: 0053, after 0055.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, UUID

revision = "0053"
down_revision = "0055"
branch_labels = None
depends_on = None

_NAMES = (
    ("pk_report_links", "pk_share_links"),
    ("uq_report_links_code_hash", "uq_share_links_code_hash"),
    ("fk_report_links_evaluation_id", "fk_share_links_evaluation_id"),
)


def upgrade() -> None:
    op.rename_table("report_links", "share_links")
    for old, new in _NAMES:
        op.execute(f"ALTER TABLE share_links RENAME CONSTRAINT {old} TO {new}")
    op.execute("ALTER INDEX ix_report_links_evaluation_id RENAME TO ix_share_links_evaluation_id")
    op.add_column("share_links", sa.Column("project_id", UUID(as_uuid=True), nullable=True))
    op.add_column("share_links", sa.Column("kind", sa.String(), nullable=True))
    op.add_column("share_links", sa.Column("title", sa.String(), nullable=True))
    op.add_column("share_links", sa.Column("page", JSONB(astext_type=sa.Text()), nullable=True))
    op.execute(
        "UPDATE share_links SET project_id = evaluations.project_id, kind = 'report', title = evaluations.name "
        "FROM evaluations WHERE evaluations.id = share_links.evaluation_id"
    )
    for name in ("project_id", "kind", "title"):
        op.alter_column("share_links", name, nullable=False)
    op.alter_column("share_links", "evaluation_id", nullable=True)
    op.create_foreign_key(op.f("fk_share_links_project_id"), "share_links", "projects", ["project_id"], ["id"])
    op.create_check_constraint(op.f("ck_share_links_kind"), "share_links", "kind IN ('report', 'runs', 'answers')")
    op.create_check_constraint(op.f("ck_share_links_one_page"), "share_links", "num_nonnulls(evaluation_id, page) = 1")
    op.create_index("ix_share_links_project_id_kind", "share_links", ["project_id", "kind"])


def downgrade() -> None:
    op.execute("DELETE FROM share_links WHERE kind <> 'report'")
    op.drop_index("ix_share_links_project_id_kind", "share_links")
    for name in ("ck_share_links_one_page", "ck_share_links_kind"):
        op.drop_constraint(op.f(name), "share_links", type_="check")
    op.drop_constraint(op.f("fk_share_links_project_id"), "share_links", type_="foreignkey")
    op.alter_column("share_links", "evaluation_id", nullable=False)
    for name in ("page", "title", "kind", "project_id"):
        op.drop_column("share_links", name)
    op.execute("ALTER INDEX ix_share_links_evaluation_id RENAME TO ix_report_links_evaluation_id")
    for old, new in _NAMES:
        op.execute(f"ALTER TABLE share_links RENAME CONSTRAINT {new} TO {old}")
    op.rename_table("share_links", "report_links")
