"""blind ranking by people: campaigns, items, tasks

Revision: 0010, after 0009.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "ranking_campaigns",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.UUID(), nullable=False),
        sa.Column("evaluation_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("instructions", sa.String(), nullable=False),
        sa.Column("criteria", postgresql.JSONB(), nullable=False),
        sa.Column("entrants", postgresql.JSONB(), nullable=False),
        sa.Column("overlap", sa.Integer(), nullable=False),
        sa.Column("lock_seconds", sa.Integer(), nullable=False),
        sa.Column("gold_every", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("salt", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint("state IN ('open', 'paused', 'closed')", name=op.f("ck_ranking_campaigns_state")),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.id"], name=op.f("fk_ranking_campaigns_evaluation_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_ranking_campaigns_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ranking_campaigns")),
        sa.UniqueConstraint("evaluation_id", "name", name=op.f("uq_ranking_campaigns_evaluation_id_name")),
    )
    op.create_index(op.f("ix_ranking_campaigns_evaluation_id"), "ranking_campaigns", ["evaluation_id"], unique=False)
    op.create_index(op.f("ix_ranking_campaigns_project_id"), "ranking_campaigns", ["project_id"], unique=False)
    op.create_table(
        "ranking_items",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("campaign_id", sa.UUID(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("rankings", sa.Integer(), nullable=False),
        sa.Column("gold", postgresql.JSONB(), nullable=True),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["ranking_campaigns.id"], name=op.f("fk_ranking_items_campaign_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ranking_items")),
        sa.UniqueConstraint("campaign_id", "position", name=op.f("uq_ranking_items_campaign_id_position")),
    )
    op.create_index(
        "ix_ranking_items_gold",
        "ranking_items",
        ["campaign_id"],
        unique=False,
        postgresql_where=sa.text("gold IS NOT NULL"),
    )
    op.create_index("ix_ranking_items_queue", "ranking_items", ["campaign_id", "rankings", "place"], unique=False)
    op.create_table(
        "ranking_tasks",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("campaign_id", sa.UUID(), nullable=False),
        sa.Column("item_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.UUID(), nullable=False),
        sa.Column("shown", postgresql.JSONB(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("locked_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("draft", postgresql.JSONB(), nullable=True),
        sa.Column("ranks", postgresql.JSONB(), nullable=True),
        sa.Column("criteria_ranks", postgresql.JSONB(), nullable=True),
        sa.Column("comment", sa.String(), nullable=True),
        sa.Column("flag", sa.String(), nullable=True),
        sa.Column("skip_reason", sa.String(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("submission", sa.String(), nullable=True),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint("state IN ('locked', 'submitted', 'skipped')", name=op.f("ck_ranking_tasks_state")),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["ranking_campaigns.id"], name=op.f("fk_ranking_tasks_campaign_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["item_id"], ["ranking_items.id"], name=op.f("fk_ranking_tasks_item_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_ranking_tasks_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ranking_tasks")),
        sa.UniqueConstraint("item_id", "user_id", name=op.f("uq_ranking_tasks_item_id_user_id")),
    )
    op.create_index(op.f("ix_ranking_tasks_campaign_id"), "ranking_tasks", ["campaign_id"], unique=False)
    op.create_index(
        "ix_ranking_tasks_held",
        "ranking_tasks",
        ["campaign_id", "item_id"],
        unique=False,
        postgresql_where=sa.text("state = 'locked'"),
    )
    op.create_index(
        "ix_ranking_tasks_user_id_campaign_id", "ranking_tasks", ["user_id", "campaign_id", "state"], unique=False
    )
    op.create_table(
        "ranking_history",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("task_id", sa.Uuid(), nullable=False),
        sa.Column("was", postgresql.JSONB(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["task_id"], ["ranking_tasks.id"], name=op.f("fk_ranking_history_task_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ranking_history")),
    )
    op.create_index(op.f("ix_ranking_history_task_id"), "ranking_history", ["task_id"], unique=False)


def downgrade() -> None:
    op.drop_table("ranking_history")
    op.drop_table("ranking_tasks")
    op.drop_table("ranking_items")
    op.drop_table("ranking_campaigns")
