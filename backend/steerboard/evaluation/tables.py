"""Evaluations: prompts, entrants, their responses, and the rewards that reward models give these.

Judges are in judge_tables.py, people's rankings in ranking/tables.py. An evaluation's responses are made once; every
assessment reads the same ones.
"""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, LargeBinary, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, ConditionValue, CreatedAt, Id, Json

# `prompts_from["kind"]` of an evaluation that calibrates judges.
CALIBRATION = "calibration"


class PromptSet(Base):
    """Prompts of a benchmark under a name: MT-Bench, Vicuna, AlpacaEval, Arena-Hard, or your own file.

    `prompts`: [{question_id, category, messages, follow_ups, reference}], as in `EvaluationPrompt`.
    """

    __tablename__ = "prompt_sets"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    format: Mapped[str]
    prompts: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]


class Evaluation(Base):
    """`prompts_from` records where the prompts came from; `checked_against` the training datasets that they were looked
    for in, [{id, name, rows}]. `to_check`: ids of those where they have still to be looked for, None when that is done.
    `run_id`: the evaluate run that it was made for, None where someone made it. `kl_to`: the model that answers are
    compared with (`evaluation.divergence.KlTo`).
    """

    __tablename__ = "evaluations"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    description: Mapped[str]
    prompts_from: Mapped[Json]
    checked_against: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    to_check: Mapped[list[str] | None] = mapped_column(JSONB(none_as_null=True))
    kl_to: Mapped[Json | None] = mapped_column(JSONB(none_as_null=True))
    pool: Mapped[str | None]
    seed: Mapped[int] = mapped_column(BigInteger)
    run_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("runs.id"), index=True)
    # Rises with every change of what the report is made of, so that a report is computed once for each version.
    version: Mapped[int] = mapped_column(BigInteger)
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]


class EvaluationPrompt(Base):
    """One prompt. `messages` end with the first user turn that is answered, `follow_ups` are later user turns.

    `reference`: one text a turn. `seen`: None, or where it occurs in training data: {match: exact|near, dataset, row,
    overlap}.
    """

    __tablename__ = "evaluation_prompts"

    evaluation_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    question_id: Mapped[str]
    category: Mapped[str | None]
    messages: Mapped[list[dict[str, str]]] = mapped_column(JSONB)
    follow_ups: Mapped[list[str]] = mapped_column(JSONB)
    reference: Mapped[list[str] | None] = mapped_column(JSONB)
    seen: Mapped[Json | None]


class Entrant(Base):
    """Who answers: a model with its decoding and score, an endpoint, or imported answers (`source`).

    `family` is compared with a judge's for self-preference. `content_hash` pins the weights that answered.
    """

    __tablename__ = "evaluation_entrants"
    __table_args__ = (
        CheckConstraint("source IN ('model', 'endpoint', 'import')", name="source"),
        UniqueConstraint("evaluation_id", "name"),
    )

    id: Mapped[Id]
    evaluation_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), index=True)
    position: Mapped[int]
    name: Mapped[str]
    source: Mapped[str]
    model_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("models.id", ondelete="SET NULL"), index=True)
    endpoint_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("endpoints.id", ondelete="SET NULL"), index=True)
    method: Mapped[str | None]
    family: Mapped[str | None]
    content_hash: Mapped[str | None]
    score: Mapped[ConditionValue | None]
    decoding: Mapped[Json]
    samples: Mapped[int]
    run_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("runs.id"), index=True)
    imported: Mapped[Json | None]
    created_at: Mapped[CreatedAt]

    @property
    def best_of(self) -> int | None:
        """The number of answers that its reward model chose from."""
        best_of = self.decoding.get("best_of")
        return int(best_of["n"]) if best_of else None

    @property
    def chosen_by(self) -> str | None:
        """The name of the reward model that chose its answers."""
        best_of = self.decoding.get("best_of")
        return str(best_of["reward"]) if best_of else None


class Response(Base):
    """One answer, all its turns. `finished`: the model ended that turn, the token limit did not; None: unknown.
    `log_ratio`: log pi of the answer less that by the evaluation's `kl_to`, in nats, where it was computed. `log_prob`:
    that by `kl_to` alone, at temperature 1, of `log_prob_tokens` tokens, the end tokens among them. `prompts`: the
    texts that the model was given for each turn, with special tokens; `prompt_tokens`: of these; `seconds`: from
    request to answer of each turn, of endpoints. None where they were not recorded."""

    __tablename__ = "evaluation_responses"

    entrant_id: Mapped[uuid.UUID] = mapped_column(
        ForeignKey("evaluation_entrants.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    sample: Mapped[int] = mapped_column(primary_key=True)
    turns: Mapped[list[str]] = mapped_column(JSONB)
    tokens: Mapped[list[int] | None] = mapped_column(JSONB)
    finished: Mapped[list[bool] | None] = mapped_column(JSONB)
    log_ratio: Mapped[float | None]
    log_prob: Mapped[float | None]
    log_prob_tokens: Mapped[int | None]
    prompts: Mapped[list[str] | None] = mapped_column(JSONB(none_as_null=True))
    prompt_tokens: Mapped[list[int] | None] = mapped_column(JSONB(none_as_null=True))
    seconds: Mapped[list[float] | None] = mapped_column(JSONB(none_as_null=True))


class RewardAssessment(Base):
    """One reward model over all responses of an evaluation.

    `summary`: held-out pairs and calibration, see `RewardReport`; None until its run has ended.
    """

    __tablename__ = "evaluation_reward_assessments"
    __table_args__ = (UniqueConstraint("evaluation_id", "name"),)

    id: Mapped[Id]
    evaluation_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    model_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("models.id", ondelete="SET NULL"), index=True)
    content_hash: Mapped[str]
    run_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("runs.id"), index=True)
    normaliser: Mapped[Json | None]
    summary: Mapped[Json | None]
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]


class RewardValue(Base):
    """The raw reward of one response: of its last turn, with everything before as the prompt."""

    __tablename__ = "evaluation_reward_values"

    assessment_id: Mapped[uuid.UUID] = mapped_column(
        ForeignKey("evaluation_reward_assessments.id", ondelete="CASCADE"), primary_key=True
    )
    entrant_id: Mapped[uuid.UUID] = mapped_column(
        ForeignKey("evaluation_entrants.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    sample: Mapped[int] = mapped_column(primary_key=True)
    value: Mapped[float]


class EvaluationReportRow(Base):
    """The report of one version of an evaluation.

    `entrants`: names, in the order of the report's columns. `positions`: int32 by row, of the prompts. `lengths`:
    float64 by entrant and row, characters of an answer, NaN where there is none.
    """

    __tablename__ = "evaluation_reports"

    evaluation_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True)
    version: Mapped[int] = mapped_column(BigInteger)
    document: Mapped[Json]
    entrants: Mapped[list[str]] = mapped_column(JSONB)
    positions: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    lengths: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    created_at: Mapped[CreatedAt]


class ReportSource(Base):
    """Whom one source of a kept report prefers, item by item: what its figures count.

    `signs`: int8 by pair of entrants and row: 1 where the first is better, 0 a tie, -1, and 2 where it does not compare
    the two. `flips`, of judges of pairs: 1 where a judge's two orders differ, 0 where they do not, 2 where not both
    have a verdict. `scores`: float64 by entrant and row, higher is better, NaN where there is none.
    """

    __tablename__ = "evaluation_report_sources"

    evaluation_id: Mapped[uuid.UUID] = mapped_column(
        ForeignKey("evaluation_reports.evaluation_id", ondelete="CASCADE"), primary_key=True
    )
    place: Mapped[int] = mapped_column(primary_key=True)
    by: Mapped[str]
    source: Mapped[str]
    valid: Mapped[bool]
    signs: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    flips: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    scores: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
