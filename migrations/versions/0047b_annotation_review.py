"""how far annotators disagree on an item, and what a reviewer decides

Revision: 0047b, after 0045.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0047b"
down_revision = "0045"
branch_labels = None
depends_on = None

# As `steerboard.evaluation.ranking.disagreement` computes it from ranks, which is all that there was before.
_DISAGREEMENT = """
    WITH ranked AS (
        SELECT t.item_id, t.id AS task, kind.name, shown.entrant, CAST(given.rank AS integer) AS rank
        FROM ranking_tasks t
        CROSS JOIN LATERAL jsonb_each(coalesce(nullif(t.criteria_ranks, 'null'), '{}')
            || CASE WHEN jsonb_typeof(t.ranks) = 'array' THEN jsonb_build_object('', t.ranks) ELSE '{}' END)
            AS kind(name, ranks)
        CROSS JOIN LATERAL jsonb_array_elements_text(t.shown) WITH ORDINALITY AS shown(entrant, place)
        JOIN LATERAL jsonb_array_elements_text(kind.ranks) WITH ORDINALITY AS given(rank, place)
            ON given.place = shown.place
        WHERE t.state = 'submitted' AND t.item_id IN (SELECT id FROM ranking_items WHERE rankings > 1)
    ),
    pairs AS (
        SELECT a.item_id, a.task, a.name, a.entrant AS one, b.entrant AS other, sign(a.rank - b.rank) AS sign
        FROM ranked a JOIN ranked b ON b.task = a.task AND b.name = a.name AND b.entrant > a.entrant
    )
    UPDATE ranking_items i SET disagreement = found.apart FROM (
        SELECT p.item_id, avg(abs(p.sign - q.sign)) / 2 AS apart
        FROM pairs p JOIN pairs q ON q.item_id = p.item_id AND q.task > p.task AND q.name = p.name
            AND q.one = p.one AND q.other = p.other
        GROUP BY p.item_id
    ) found WHERE found.item_id = i.id"""


def upgrade() -> None:
    op.add_column("ranking_items", sa.Column("disagreement", sa.Float(), nullable=True))
    op.execute(_DISAGREEMENT)
    op.create_index(
        "ix_ranking_items_disagreement",
        "ranking_items",
        ["campaign_id", sa.text("disagreement DESC")],
        postgresql_where=sa.text("disagreement > 0"),
    )
    op.create_table(
        "ranking_decisions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("campaign_id", sa.Uuid(), nullable=False),
        sa.Column("item_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("shown", JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("ranks", JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("criteria_ranks", JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("scores", JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("both_bad", sa.Boolean(), nullable=False),
        sa.Column("correction", sa.String(), nullable=True),
        sa.Column("comment", sa.String(), nullable=True),
        sa.Column("superseded", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["ranking_campaigns.id"], name="fk_ranking_decisions_campaign_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["item_id"], ["ranking_items.id"], name="fk_ranking_decisions_item_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_ranking_decisions_user_id"),
        sa.PrimaryKeyConstraint("id", name="pk_ranking_decisions"),
    )
    op.create_index(
        "uq_ranking_decisions_item_id",
        "ranking_decisions",
        ["item_id"],
        unique=True,
        postgresql_where=sa.text("NOT superseded"),
    )
    op.create_index(
        "ix_ranking_decisions_campaign_id",
        "ranking_decisions",
        ["campaign_id", "id"],
        postgresql_where=sa.text("NOT superseded"),
    )


def downgrade() -> None:
    op.drop_table("ranking_decisions")
    op.drop_index("ix_ranking_items_disagreement", "ranking_items")
    op.drop_column("ranking_items", "disagreement")
