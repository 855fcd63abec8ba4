"""evaluations: prompts, entrants, responses, rewards, judges, verdicts, reports

Revision: 0009, after 0008.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "evaluations",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("prompts_from", postgresql.JSONB(), nullable=False),
        sa.Column("checked_against", postgresql.JSONB(), nullable=False),
        sa.Column(
            "to_check",
            postgresql.JSONB(
                none_as_null=True,
            ),
            nullable=True,
        ),
        sa.Column("pool", sa.String(), nullable=True),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_evaluations_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluations")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_evaluations_project_id_name")),
    )
    op.create_table(
        "prompt_sets",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("format", sa.String(), nullable=False),
        sa.Column("prompts", postgresql.JSONB(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_prompt_sets_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prompt_sets")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_prompt_sets_project_id_name")),
    )
    op.create_table(
        "evaluation_prompts",
        sa.Column("evaluation_id", sa.UUID(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("question_id", sa.String(), nullable=False),
        sa.Column("category", sa.String(), nullable=True),
        sa.Column("messages", postgresql.JSONB(), nullable=False),
        sa.Column("follow_ups", postgresql.JSONB(), nullable=False),
        sa.Column("reference", postgresql.JSONB(), nullable=True),
        sa.Column("seen", postgresql.JSONB(), nullable=True),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.id"], name=op.f("fk_evaluation_prompts_evaluation_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "position", name=op.f("pk_evaluation_prompts")),
    )
    op.create_table(
        "evaluation_reports",
        sa.Column("evaluation_id", sa.UUID(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("document", postgresql.JSONB(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.id"], name=op.f("fk_evaluation_reports_evaluation_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("evaluation_id", name=op.f("pk_evaluation_reports")),
    )
    op.create_table(
        "evaluation_entrants",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("evaluation_id", sa.UUID(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("model_id", sa.UUID(), nullable=True),
        sa.Column("endpoint_id", sa.UUID(), nullable=True),
        sa.Column("method", sa.String(), nullable=True),
        sa.Column("family", sa.String(), nullable=True),
        sa.Column("content_hash", sa.String(), nullable=True),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("decoding", postgresql.JSONB(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.UUID(), nullable=True),
        sa.Column("imported", postgresql.JSONB(), nullable=True),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint("source IN ('model', 'endpoint', 'import')", name=op.f("ck_evaluation_entrants_source")),
        sa.ForeignKeyConstraint(
            ["endpoint_id"], ["endpoints.id"], name=op.f("fk_evaluation_entrants_endpoint_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.id"], name=op.f("fk_evaluation_entrants_evaluation_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name=op.f("fk_evaluation_entrants_model_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_evaluation_entrants_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation_entrants")),
        sa.UniqueConstraint("evaluation_id", "name", name=op.f("uq_evaluation_entrants_evaluation_id_name")),
    )
    op.create_index(op.f("ix_evaluation_entrants_endpoint_id"), "evaluation_entrants", ["endpoint_id"], unique=False)
    op.create_index(
        op.f("ix_evaluation_entrants_evaluation_id"), "evaluation_entrants", ["evaluation_id"], unique=False
    )
    op.create_index(op.f("ix_evaluation_entrants_model_id"), "evaluation_entrants", ["model_id"], unique=False)
    op.create_index(op.f("ix_evaluation_entrants_run_id"), "evaluation_entrants", ["run_id"], unique=False)
    op.create_table(
        "evaluation_judges",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("evaluation_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("style", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("family", sa.String(), nullable=True),
        sa.Column("endpoint_id", sa.UUID(), nullable=True),
        sa.Column("settings", postgresql.JSONB(), nullable=False),
        sa.Column("run_id", sa.UUID(), nullable=True),
        sa.Column("imported", postgresql.JSONB(), nullable=True),
        sa.Column("failures", postgresql.JSONB(), nullable=True),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint(
            "style IN ('multi', 'single', 'pairwise', 'alpaca_eval', 'arena_hard')",
            name=op.f("ck_evaluation_judges_style"),
        ),
        sa.ForeignKeyConstraint(
            ["endpoint_id"], ["endpoints.id"], name=op.f("fk_evaluation_judges_endpoint_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.id"], name=op.f("fk_evaluation_judges_evaluation_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_evaluation_judges_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation_judges")),
        sa.UniqueConstraint("evaluation_id", "name", name=op.f("uq_evaluation_judges_evaluation_id_name")),
    )
    op.create_index(op.f("ix_evaluation_judges_endpoint_id"), "evaluation_judges", ["endpoint_id"], unique=False)
    op.create_index(op.f("ix_evaluation_judges_evaluation_id"), "evaluation_judges", ["evaluation_id"], unique=False)
    op.create_index(op.f("ix_evaluation_judges_run_id"), "evaluation_judges", ["run_id"], unique=False)
    op.create_table(
        "evaluation_reward_assessments",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("evaluation_id", sa.UUID(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("model_id", sa.UUID(), nullable=True),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("run_id", sa.UUID(), nullable=True),
        sa.Column("normaliser", postgresql.JSONB(), nullable=True),
        sa.Column("summary", postgresql.JSONB(), nullable=True),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluations.id"],
            name=op.f("fk_evaluation_reward_assessments_evaluation_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name=op.f("fk_evaluation_reward_assessments_model_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_evaluation_reward_assessments_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation_reward_assessments")),
        sa.UniqueConstraint("evaluation_id", "name", name=op.f("uq_evaluation_reward_assessments_evaluation_id_name")),
    )
    op.create_index(
        op.f("ix_evaluation_reward_assessments_evaluation_id"),
        "evaluation_reward_assessments",
        ["evaluation_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_evaluation_reward_assessments_model_id"), "evaluation_reward_assessments", ["model_id"], unique=False
    )
    op.create_index(
        op.f("ix_evaluation_reward_assessments_run_id"), "evaluation_reward_assessments", ["run_id"], unique=False
    )
    op.create_table(
        "evaluation_responses",
        sa.Column("entrant_id", sa.UUID(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("sample", sa.Integer(), nullable=False),
        sa.Column("turns", postgresql.JSONB(), nullable=False),
        sa.Column("tokens", postgresql.JSONB(), nullable=True),
        sa.Column("finished", postgresql.JSONB(), nullable=True),
        sa.ForeignKeyConstraint(
            ["entrant_id"],
            ["evaluation_entrants.id"],
            name=op.f("fk_evaluation_responses_entrant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("entrant_id", "position", "sample", name=op.f("pk_evaluation_responses")),
    )
    op.create_table(
        "evaluation_reward_values",
        sa.Column("assessment_id", sa.UUID(), nullable=False),
        sa.Column("entrant_id", sa.UUID(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("sample", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["assessment_id"],
            ["evaluation_reward_assessments.id"],
            name=op.f("fk_evaluation_reward_values_assessment_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["entrant_id"],
            ["evaluation_entrants.id"],
            name=op.f("fk_evaluation_reward_values_entrant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "assessment_id", "entrant_id", "position", "sample", name=op.f("pk_evaluation_reward_values")
        ),
    )
    op.create_table(
        "evaluation_verdicts",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("judge_id", sa.UUID(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("a", sa.UUID(), nullable=False),
        sa.Column("b", sa.UUID(), nullable=True),
        sa.Column("a_first", sa.Boolean(), nullable=True),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("weight", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("raw", sa.String(), nullable=True),
        sa.Column("detail", sa.String(), nullable=True),
        sa.Column("answer_key", sa.String(), nullable=True),
        sa.Column("superseded", sa.Boolean(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint(
            "status IN ('ok', 'unparsed', 'refused', 'error')", name=op.f("ck_evaluation_verdicts_status")
        ),
        sa.ForeignKeyConstraint(
            ["a"], ["evaluation_entrants.id"], name=op.f("fk_evaluation_verdicts_a"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["b"], ["evaluation_entrants.id"], name=op.f("fk_evaluation_verdicts_b"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["judge_id"], ["evaluation_judges.id"], name=op.f("fk_evaluation_verdicts_judge_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation_verdicts")),
    )
    op.create_index(op.f("ix_evaluation_verdicts_a"), "evaluation_verdicts", ["a"], unique=False)
    op.create_index(op.f("ix_evaluation_verdicts_b"), "evaluation_verdicts", ["b"], unique=False)
    op.create_index(
        "ix_evaluation_verdicts_judge_id_position", "evaluation_verdicts", ["judge_id", "position"], unique=False
    )
    op.create_index(
        "uq_evaluation_verdicts_item",
        "evaluation_verdicts",
        [
            "judge_id",
            "position",
            "turn",
            "a",
            sa.literal_column("coalesce(b, '00000000-0000-0000-0000-000000000000'::uuid)"),
            sa.literal_column("coalesce(a_first, true)"),
        ],
        unique=True,
        postgresql_where=sa.text("NOT superseded"),
    )
    op.create_table(
        "judge_answers",
        sa.Column("project_id", sa.UUID(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("content", sa.String(), nullable=False),
        sa.Column("finish_reason", sa.String(), nullable=True),
        sa.Column("logprobs", postgresql.JSONB(), nullable=True),
        sa.Column("prompt_tokens", sa.Integer(), nullable=True),
        sa.Column("completion_tokens", sa.Integer(), nullable=True),
        sa.Column("judge_id", sa.UUID(), nullable=True),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["judge_id"], ["evaluation_judges.id"], name=op.f("fk_judge_answers_judge_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_judge_answers_project_id")),
        sa.PrimaryKeyConstraint("project_id", "key", name=op.f("pk_judge_answers")),
    )
    op.create_index(op.f("ix_judge_answers_judge_id"), "judge_answers", ["judge_id"], unique=False)


def downgrade() -> None:
    op.drop_table("judge_answers")
    op.drop_table("evaluation_verdicts")
    op.drop_table("evaluation_reward_values")
    op.drop_table("evaluation_responses")
    op.drop_table("evaluation_reward_assessments")
    op.drop_table("evaluation_judges")
    op.drop_table("evaluation_entrants")
    op.drop_table("evaluation_reports")
    op.drop_table("evaluation_prompts")
    op.drop_table("prompt_sets")
    op.drop_table("evaluations")
