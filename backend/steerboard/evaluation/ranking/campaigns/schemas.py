"""What the campaigns API, of those who ask for rankings, takes and gives."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from steerboard.evaluation.ranking.questions import MOST_QUESTIONS, Question, Replies, all_different

CampaignState = Literal["open", "paused", "closed"]
TaskType = Annotated[
    Literal["ranking", "pairwise", "likert", "correction"],
    Field(
        description="`ranking`: order 2 to 8 answers; `pairwise`: choose between two; `likert`: score 1 to 8 answers "
        "by each criterion; `correction`: rewrite the last turn of one answer."
    ),
]
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Instructions = Annotated[str, Field(max_length=20_000)]
Overlap = Annotated[int, Field(ge=1, le=100, description="How many annotators rank each item.")]
LockSeconds = Annotated[
    int, Field(ge=10, le=86_400, description="How long an item is kept for the annotator who works on it.")
]
QualifyItems = Annotated[
    int, Field(ge=0, le=50, description="Gold items that an annotator submits before any other; 0: no qualification.")
]
QualifyShare = Annotated[
    float, Field(ge=0.5, le=1, description="The share of their pairs of answers that must be in the known order.")
]
Rank = Annotated[int, Field(ge=1, le=8)]
SpanLabel = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60)]
SpanLabels = Annotated[
    list[SpanLabel],
    Field(max_length=9, description="What annotators flag passages of answers with; none: no passages are flagged."),
]
JudgeShown = Annotated[
    str | None,
    Field(
        max_length=200,
        description="The judge of the evaluation whose order or scores annotators see as a suggestion, which they can "
        "hide. Its name is not shown to them.",
    ),
]
Questions = Annotated[
    list[Question],
    Field(max_length=MOST_QUESTIONS, description="What annotators answer about each item, next to the task."),
]
SPAN_LABELS = ("factual error", "unsafe", "repetition")


class Criterion(BaseModel):
    """A criterion, which gets its own ranking; in a Likert task a score from 1 to `points`, 5 unless given. `low` and
    `high`: what the lowest and the highest score mean."""

    model_config = ConfigDict(extra="forbid")

    name: Words
    description: Annotated[str, Field(max_length=2_000)] = ""
    points: Annotated[int | None, Field(ge=2, le=10)] = None
    low: Words | None = None
    high: Words | None = None


def different(labels: list[str]) -> list[str]:
    """Raises `ValueError` where two differ in nothing, or in case alone."""
    if len({label.casefold() for label in labels}) < len(labels):
        raise ValueError("two labels have the same name")
    return labels


class CampaignCreate(BaseModel):
    """`criteria`: none for one overall ranking; a Likert task has at least one, a pairwise task or correction none.
    `entrants`: where none are named, the best ones of the evaluation: at most 8, two of a pairwise task, one of a
    correction. `GET .../standing` lists the best first."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, Field(description="Annotators see it. Null: ranking-1, ranking-2, ...")] = None
    task_type: TaskType = "ranking"
    instructions: Instructions = ""
    criteria: Annotated[list[Criterion], Field(max_length=8)] = []
    entrants: Annotated[list[str] | None, Field(min_length=1, max_length=8)] = None
    overlap: Overlap = 1
    lock_seconds: LockSeconds = 600
    gold_every: Annotated[
        int, Field(ge=0, le=1_000, description="One of so many items is a gold one; 0: gold items come first.")
    ] = 0
    qualify_items: QualifyItems = 0
    qualify_share: QualifyShare = 0.7
    judge: JudgeShown = None
    span_labels: SpanLabels = list(SPAN_LABELS)
    questions: Questions = []
    limit: Annotated[int | None, Field(ge=1, description="Number of prompts to ask about, drawn at random.")] = None

    @field_validator("span_labels")
    @classmethod
    def _labels_differ(cls, labels: list[str]) -> list[str]:
        return different(labels)

    @field_validator("questions")
    @classmethod
    def _questions_differ(cls, questions: list[Question]) -> list[Question]:
        return all_different(questions)

    @model_validator(mode="after")
    def _criteria_differ(self) -> CampaignCreate:
        names = [criterion.name for criterion in self.criteria]
        if len(set(names)) < len(names):
            raise ValueError("two criteria have the same name")
        return self

    @model_validator(mode="after")
    def _criteria_fit(self) -> CampaignCreate:
        if self.task_type == "likert":
            if not self.criteria:
                raise ValueError("a Likert task needs a criterion to score by")
            for criterion in self.criteria:
                criterion.points = criterion.points or 5
        elif self.criteria and self.task_type != "ranking":
            raise ValueError(f"a {self.task_type} task has no criteria")
        elif any(criterion.points or criterion.low or criterion.high for criterion in self.criteria):
            raise ValueError("only criteria of a Likert task have points")
        if self.judge and self.task_type == "correction":
            raise ValueError("a judge suggests no corrections")
        if self.qualify_items and self.task_type == "correction":
            raise ValueError("corrections have no gold items to qualify by")
        return self


class CampaignChange(BaseModel):
    """`paused` hands out nothing new, and takes what annotators hold; `closed` takes nothing. `overlap` only rises.
    An empty `judge` ends the suggestions."""

    model_config = ConfigDict(extra="forbid")

    state: CampaignState | None = None
    overlap: Overlap | None = None
    instructions: Instructions | None = None
    lock_seconds: LockSeconds | None = None
    gold_every: Annotated[int | None, Field(ge=0, le=1_000)] = None
    qualify_items: QualifyItems | None = None
    qualify_share: QualifyShare | None = None
    judge: JudgeShown = None
    span_labels: SpanLabels | None = None

    @field_validator("span_labels")
    @classmethod
    def _labels_differ(cls, labels: list[str] | None) -> list[str] | None:
        return labels and different(labels)


class AnnotatorFigures(BaseModel):
    """`gold`: share of the pairs of answers of gold items that were put in the known order, ties counting 1/2."""

    annotator: str
    done: int
    skipped: int
    flagged: int
    median_seconds: float | None
    gold: float | None
    gold_pairs: int
    last_at: dt.datetime | None


class CampaignOut(BaseModel):
    """`done_items` have `overlap` rankings. `skipped_by_all`: not done, and everyone who has taken part skipped them.
    `disagreements`: items on which annotators differ and no reviewer has decided; `adjudicated`: those that one has.

    `warnings`: words of the campaign that tell annotators what they should not know.
    """

    id: uuid.UUID
    name: str
    state: CampaignState
    task_type: TaskType
    instructions: str
    criteria: list[Criterion]
    entrants: list[str]
    overlap: int
    lock_seconds: int
    gold_every: int
    qualify_items: int
    qualify_share: float
    span_labels: list[str]
    questions: list[Question]
    judge: str | None
    items: int
    done_items: int
    gold_items: int
    rankings: int
    skipped_by_all: int
    disagreements: int
    adjudicated: int
    annotators: list[AnnotatorFigures]
    warnings: list[str]
    created_by: str
    created_at: dt.datetime


class Campaigns(BaseModel):
    """The campaigns of one evaluation, oldest first."""

    items: list[CampaignOut]


class GoldRanks(BaseModel):
    """The ranks that are known to be right: one for every entrant of the campaign, by name; 1 is best."""

    model_config = ConfigDict(extra="forbid")

    ranks: dict[str, Rank]


class GoldItem(BaseModel):
    position: int
    ranks: dict[str, int]


class GoldItems(BaseModel):
    items: list[GoldItem]


class NamedSpanFlag(BaseModel):
    """A passage of an answer that an annotator flagged. `start` and `end`: Unicode code points from the start of the
    turn, the end not included; `turn` counts from 1. `text`: the passage, at most its first 500 characters."""

    id: uuid.UUID
    entrant: str
    turn: int
    start: int
    end: int
    label: str
    note: str | None
    text: str


class RankingOut(BaseModel):
    """What one annotator submitted for one item. `shown`: the entrants in the order of the screen; `ranks` by name;
    `scores` by criterion and name; `correction`: the last turn of the answer as it should be; `replies` to the
    campaign's questions, by label."""

    id: uuid.UUID
    position: int
    question_id: str
    annotator: str
    shown: list[str]
    ranks: dict[str, int] | None
    criteria_ranks: dict[str, dict[str, int]]
    scores: dict[str, dict[str, int]]
    both_bad: bool
    correction: str | None
    replies: Replies
    comment: str | None
    flag: str | None
    spans: list[NamedSpanFlag]
    suggestion_visible: bool | None
    seconds: float | None
    gold: bool
    submitted_at: dt.datetime | None


class SpanFlagRow(NamedSpanFlag):
    position: int
    question_id: str
    annotator: str
    at: dt.datetime


class CorrectionsCreate(BaseModel):
    """`unchanged`: also answers that an annotator accepted as they are. `split`: as for preferences."""

    model_config = ConfigDict(extra="forbid")

    unchanged: bool = True
    split: Literal["by_prompt", "train"] = "by_prompt"
    name: Annotated[
        str | None, Field(description="A version number is appended: NAME-1, NAME-2. Null: EVALUATION-corrections.")
    ] = None


class StandingRow(BaseModel):
    """`standing`: the share of rivals whose mean is lower, over everyone who compared or scored them; null where no one
    has."""

    entrant: str
    standing: float | None


class Standing(BaseModel):
    """Best first."""

    items: list[StandingRow]


class FlagOut(BaseModel):
    """An item that an annotator flagged or skipped, in their words."""

    position: int
    question_id: str
    annotator: str
    kind: Literal["flag", "skip"]
    reason: str
    comment: str | None
    at: dt.datetime | None


class Flags(BaseModel):
    """Newest first, at most 1,000."""

    items: list[FlagOut]


class AnnotatorAdd(BaseModel):
    """Null makes a name: annotator-1, annotator-2, ..."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")] = None


class AnnotatorLink(BaseModel):
    """`link`: a path of the dashboard that signs in once, shown in this answer only, and leads to the campaign."""

    annotator: str
    link: str
    expires_at: dt.datetime
