"""Blind annotation by people: campaigns, items, and what each annotator did with each."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, CreatedAt, Id, Json, Timestamp


def random_id() -> uuid.UUID:
    """Reveals nothing, not even an order, unlike the ids of everything else."""
    return uuid.uuid4()


class Campaign(Base):
    """Asks people about the answers of some entrants (`entrants`: [id]).

    `task_type`: `ranking` of 2 to 8 answers, `pairwise` choice between two, `likert` scores of 1 to 8, or `correction`
    of one. `criteria`: [{name, description}]; empty: one overall ranking; of `likert` also {points, low, high}.
    `qualify_items`: how many gold items an annotator submits before any other, and `qualify_share` the share of their
    pairs that must be right for the annotator's submissions to count; 0 items: everyone's count.
    `judge_id`: the judge of the evaluation whose order or scores annotators see as a suggestion; None: no one's.
    `span_labels`: what passages of answers are flagged with; empty: none can be flagged.
    `questions`: what the owner asks about each item, [{label, help, kind, choices, required}].
    `overlap`: how many annotators see each item. `salt` shuffles, and never leaves the server.
    """

    __tablename__ = "ranking_campaigns"
    __table_args__ = (
        CheckConstraint("state IN ('open', 'paused', 'closed')", name="state"),
        CheckConstraint("task_type IN ('ranking', 'pairwise', 'likert', 'correction')", name="task_type"),
        UniqueConstraint("evaluation_id", "name"),
    )

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"), index=True)
    evaluation_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    task_type: Mapped[str] = mapped_column(server_default="ranking", default="ranking")
    instructions: Mapped[str]
    criteria: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    entrants: Mapped[list[str]] = mapped_column(JSONB)
    overlap: Mapped[int]
    lock_seconds: Mapped[int]
    gold_every: Mapped[int]
    qualify_items: Mapped[int] = mapped_column(server_default="0", default=0)
    qualify_share: Mapped[float] = mapped_column(server_default=text("0.7"), default=0.7)
    judge_id: Mapped[uuid.UUID | None] = mapped_column(
        ForeignKey("evaluation_judges.id", ondelete="SET NULL"), index=True
    )
    span_labels: Mapped[list[str]] = mapped_column(JSONB, server_default=text("'[]'"), default=list)
    questions: Mapped[list[dict[str, Any]]] = mapped_column(JSONB, server_default=text("'[]'"), default=list)
    state: Mapped[str]
    salt: Mapped[str]
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]


class RankingItem(Base):
    """One prompt of a campaign. `place` is its random place in the queue; `rankings` counts its submitted tasks.

    `gold`: None, or the ranks that are known to be right, {entrant id: rank}; everyone sees every gold item.
    `disagreement` of its annotators, from 0 to 1; None below two.
    Lock an item's row before changing who holds or has ranked it.
    """

    __tablename__ = "ranking_items"
    __table_args__ = (
        UniqueConstraint("campaign_id", "position"),
        # The queue, read backwards: what has rankings already comes first.
        Index("ix_ranking_items_queue", "campaign_id", "rankings", "place"),
        Index("ix_ranking_items_gold", "campaign_id", postgresql_where=text("gold IS NOT NULL")),
        Index(
            "ix_ranking_items_disagreement",
            "campaign_id",
            text("disagreement DESC"),
            postgresql_where=text("disagreement > 0"),
        ),
    )

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=random_id)
    campaign_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("ranking_campaigns.id", ondelete="CASCADE"))
    position: Mapped[int]
    place: Mapped[int]
    rankings: Mapped[int] = mapped_column(default=0)
    gold: Mapped[Json | None]
    disagreement: Mapped[float | None]


class RankingTask(Base):
    """An item given to an annotator. `shown`: [entrant id] in the order of the screen.

    `ranks`: one an answer in the order shown, 1 is best, equal ranks are ties ("competition" ranks: 1, 2, 2, 4).
    `criteria_ranks`: the same for each criterion. `scores`: of a Likert task, by criterion, in the order shown; its
    `criteria_ranks` follow from them. `both_bad`: a tie of a pairwise task, neither answer being good. `correction`:
    the last turn of the answer as it should be. `replies` to the campaign's questions, by label: a choice, a list of
    choices, or a text; None where it asks none. `suggestion_visible`: whether the judge's suggestion was in sight at
    any time of the work on it; None where there was none. `draft` is what the browser saved last. `submission`: the key
    under which the browser submitted, so that sending it again changes nothing.
    """

    __tablename__ = "ranking_tasks"
    __table_args__ = (
        CheckConstraint("state IN ('locked', 'submitted', 'skipped')", name="state"),
        UniqueConstraint("item_id", "user_id"),
        Index("ix_ranking_tasks_user_id_campaign_id", "user_id", "campaign_id", "state"),
        Index("ix_ranking_tasks_held", "campaign_id", "item_id", postgresql_where=text("state = 'locked'")),
    )

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=random_id)
    campaign_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("ranking_campaigns.id", ondelete="CASCADE"), index=True)
    item_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("ranking_items.id", ondelete="CASCADE"))
    user_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("users.id"))
    shown: Mapped[list[str]] = mapped_column(JSONB)
    state: Mapped[str]
    locked_until: Mapped[Timestamp | None]
    draft: Mapped[Json | None]
    ranks: Mapped[list[int] | None] = mapped_column(JSONB)
    criteria_ranks: Mapped[dict[str, list[int]] | None] = mapped_column(JSONB)
    scores: Mapped[dict[str, list[int]] | None] = mapped_column(JSONB)
    both_bad: Mapped[bool] = mapped_column(server_default="false", default=False)
    correction: Mapped[str | None]
    replies: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    comment: Mapped[str | None]
    flag: Mapped[str | None]
    suggestion_visible: Mapped[bool | None]
    skip_reason: Mapped[str | None]
    seconds: Mapped[float | None]
    submission: Mapped[str | None]
    submitted_at: Mapped[Timestamp | None]
    created_at: Mapped[CreatedAt]


class RankingSpan(Base):
    """A passage of an answer that an annotator flagged with one of the campaign's labels, in a task that is submitted.

    `turn` counts from 1. `start` and `end`: Unicode code points from the start of that turn, the end not included.
    `removed`: the flag was taken back since, and is kept.
    """

    __tablename__ = "ranking_spans"
    __table_args__ = (
        CheckConstraint('"end" > "start"', name="range"),
        Index("ix_ranking_spans_task_id", "task_id", postgresql_where=text("NOT removed")),
    )

    id: Mapped[Id]
    task_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("ranking_tasks.id", ondelete="CASCADE"))
    entrant_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("evaluation_entrants.id", ondelete="CASCADE"), index=True)
    turn: Mapped[int]
    start: Mapped[int]
    end: Mapped[int]
    label: Mapped[str]
    note: Mapped[str | None]
    removed: Mapped[bool] = mapped_column(server_default="false", default=False)
    created_at: Mapped[CreatedAt]


class RankingHistory(Base):
    """A submission or skip that was undone or changed: nothing that a person made is lost."""

    __tablename__ = "ranking_history"

    id: Mapped[Id]
    task_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("ranking_tasks.id", ondelete="CASCADE"), index=True)
    was: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[CreatedAt]


class RankingDecision(Base):
    """A reviewer's decision on an item, which counts instead of what its annotators submitted.

    Columns as in `RankingTask`. `superseded`: it was changed or withdrawn since; at most one of an item is not.
    """

    __tablename__ = "ranking_decisions"
    __table_args__ = (
        Index("uq_ranking_decisions_item_id", "item_id", unique=True, postgresql_where=text("NOT superseded")),
        Index("ix_ranking_decisions_campaign_id", "campaign_id", "id", postgresql_where=text("NOT superseded")),
    )

    id: Mapped[Id]
    campaign_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("ranking_campaigns.id", ondelete="CASCADE"))
    item_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("ranking_items.id", ondelete="CASCADE"))
    user_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("users.id"))
    shown: Mapped[list[str]] = mapped_column(JSONB)
    ranks: Mapped[list[int] | None] = mapped_column(JSONB)
    criteria_ranks: Mapped[dict[str, list[int]] | None] = mapped_column(JSONB)
    scores: Mapped[dict[str, list[int]] | None] = mapped_column(JSONB)
    both_bad: Mapped[bool]
    correction: Mapped[str | None]
    replies: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    comment: Mapped[str | None]
    superseded: Mapped[bool] = mapped_column(server_default="false", default=False)
    created_at: Mapped[CreatedAt]
