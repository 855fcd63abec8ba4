"""Judges of an evaluation, alone and as juries, their verdicts, and the answers that these come from."""

from __future__ import annotations

import uuid

from sqlalchemy import CheckConstraint, ForeignKey, Identity, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, BigInt, CreatedAt, Id, Json

VERDICT_STATUSES = ("ok", "unparsed", "refused", "error")
JUDGE_STYLES = ("multi", "single", "pairwise", "alpaca_eval", "arena_hard", "preference", "rubric")


class Judge(Base):
    """One judge with its style and settings: an LLM asked by us (`endpoint_id`, `run_id`), a preference model of the
    registry (`model_id`, `run_id`, pinned by `content_hash`), or imported (`imported`).

    `settings`: `JudgeSettings` of judges/schemas.py. `imported`: {file, format, rows, ...} where it was judged
    elsewhere. `failures`: how many requests failed so far, by code; those that were tried again are counted too.
    `uncertain_cost`: an upper bound, by the judge's prices, for requests that are under way or whose answer or token
    count never arrived.
    """

    __tablename__ = "evaluation_judges"
    __table_args__ = (
        CheckConstraint(f"style IN ({', '.join(repr(style) for style in JUDGE_STYLES)})", name="style"),
        UniqueConstraint("evaluation_id", "name"),
    )

    id: Mapped[Id]
    evaluation_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    style: Mapped[str]
    model: Mapped[str]
    family: Mapped[str | None]
    endpoint_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("endpoints.id", ondelete="SET NULL"), index=True)
    model_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("models.id", ondelete="SET NULL"), index=True)
    content_hash: Mapped[str | None]
    settings: Mapped[Json]
    run_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("runs.id"), index=True)
    imported: Mapped[Json | None]
    failures: Mapped[Json | None]
    uncertain_cost: Mapped[float] = mapped_column(server_default="0", default=0.0)
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]

    @property
    def unreadable(self) -> int:
        """Rows of the imported file that were left out because they could not be read."""
        return int((self.imported or {}).get("skipped", 0))

    @property
    def unordered(self) -> int:
        """Items of the imported file with several verdicts that no time orders: its last one counts."""
        return int((self.imported or {}).get("unordered", 0))


class Verdict(Base):
    """A judge's verdict on one item.

    `a` is the entrant in question; `b` the other one of a pairwise style, None for `single` and `multi` (there one row
    an entrant). `a_first`: whether a's answer was shown first, None where there is no order or it is not known.
    In `multi` it marks which of all answers was shown first. `turn` counts from 1. `value` by style: `single`,
    `multi`: the score (1 to 10, stored ones as they are); `rubric`: 1 and 9 times the share of the weights whose
    questions are met; `alpaca_eval`: p, the probability in [0, 1] that `a` is
    better (preference - 1, turned round where a was output_1); `pairwise`: 1, 0.5, 0 for a better, tie, b better;
    `arena_hard`: the same, with `weight` 3 for a clear one; `preference`: the probability that `a` is better, in the
    order of `a_first`. `value` is None unless `status` is ok. `superseded`: a
    newer row of the same item counts instead.
    """

    __tablename__ = "evaluation_verdicts"
    __table_args__ = (
        CheckConstraint(f"status IN ({', '.join(repr(status) for status in VERDICT_STATUSES)})", name="status"),
        Index("ix_evaluation_verdicts_judge_id_position", "judge_id", "position"),
        Index(
            "uq_evaluation_verdicts_item",
            "judge_id",
            "position",
            "turn",
            "a",
            text("coalesce(b, '00000000-0000-0000-0000-000000000000'::uuid)"),
            text("coalesce(a_first, true)"),
            unique=True,
            postgresql_where=text("NOT superseded"),
        ),
    )

    id: Mapped[BigInt] = mapped_column(Identity(), primary_key=True)
    judge_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("evaluation_judges.id", ondelete="CASCADE"))
    position: Mapped[int]
    turn: Mapped[int]
    a: Mapped[uuid.UUID] = mapped_column(ForeignKey("evaluation_entrants.id", ondelete="CASCADE"), index=True)
    b: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("evaluation_entrants.id", ondelete="CASCADE"), index=True)
    a_first: Mapped[bool | None]
    value: Mapped[float | None]
    weight: Mapped[int]
    status: Mapped[str]
    raw: Mapped[str | None]
    detail: Mapped[str | None]
    answer_key: Mapped[str | None]
    superseded: Mapped[bool]
    created_at: Mapped[CreatedAt]


class RepeatedVerdict(Base):
    """The verdict on an item whose question was asked once more, word for word: how far a judge repeats itself.

    Columns as in `Verdict`. It counts in no comparison.
    """

    __tablename__ = "evaluation_repeated_verdicts"
    __table_args__ = (
        CheckConstraint(f"status IN ({', '.join(repr(status) for status in VERDICT_STATUSES)})", name="status"),
        Index("ix_evaluation_repeated_verdicts_judge_id_position", "judge_id", "position"),
    )

    id: Mapped[BigInt] = mapped_column(Identity(), primary_key=True)
    judge_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("evaluation_judges.id", ondelete="CASCADE"))
    position: Mapped[int]
    turn: Mapped[int]
    a: Mapped[uuid.UUID] = mapped_column(ForeignKey("evaluation_entrants.id", ondelete="CASCADE"), index=True)
    b: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("evaluation_entrants.id", ondelete="CASCADE"), index=True)
    a_first: Mapped[bool | None]
    value: Mapped[float | None]
    status: Mapped[str]
    answer_key: Mapped[str | None]
    created_at: Mapped[CreatedAt]


class Jury(Base):
    """Several judges of an evaluation as one source. `judges`: their ids, as texts; one that was deleted is left out.

    `rule`: `majority` of the verdicts on each pair, or `mean` of the standardised scores.
    """

    __tablename__ = "evaluation_juries"
    __table_args__ = (
        CheckConstraint("rule IN ('majority', 'mean')", name="rule"),
        UniqueConstraint("evaluation_id", "name"),
    )

    id: Mapped[Id]
    evaluation_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    judges: Mapped[list[str]] = mapped_column(JSONB)
    rule: Mapped[str]
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]


class JudgeAnswer(Base):
    """What an endpoint answered to a request, by the content of both; paid for once in a project.

    `key`: SHA-256 of base URL, model, messages and sampling parameters. `judge_id`: who paid. `seconds`: from request
    to answer. `attempts`: how often it was sent until there was one.
    """

    __tablename__ = "judge_answers"

    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    content: Mapped[str]
    finish_reason: Mapped[str | None]
    logprobs: Mapped[Json | None]
    prompt_tokens: Mapped[int | None]
    completion_tokens: Mapped[int | None]
    seconds: Mapped[float | None]
    attempts: Mapped[int | None]
    judge_id: Mapped[uuid.UUID | None] = mapped_column(
        ForeignKey("evaluation_judges.id", ondelete="SET NULL"), index=True
    )
    created_at: Mapped[CreatedAt]
