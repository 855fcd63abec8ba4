"""What an annotator's browser takes and gives. Nothing here identifies an entrant."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from steerboard.evaluation.ranking.campaigns.schemas import CampaignState, Criterion, Rank, SpanLabel, TaskType
from steerboard.evaluation.ranking.questions import Question, Replies

Ranks = Annotated[
    list[Rank],
    Field(min_length=2, max_length=8, description="One per answer, in the order shown; 1 is best, equal ones tie."),
]
Key = Annotated[str, StringConstraints(pattern=r"^[A-H]$")]
DraftRanks = Annotated[dict[Key, Annotated[int, Field(ge=1, le=9)]], Field(max_length=8)]
Score = Annotated[int, Field(ge=1, le=10)]
Scores = Annotated[
    list[Score], Field(min_length=1, max_length=8, description="One per answer, in the order shown, up to the points.")
]
DraftScores = Annotated[dict[Key, Score], Field(max_length=8)]
Correction = Annotated[
    str,
    Field(max_length=200_000, description="The last turn of the answer, as it should be; the same text accepts it."),
]
Comment = Annotated[str, StringConstraints(max_length=10_000)]
MOST_SPANS = 25
"""Flagged passages of one answer."""
Turn = Annotated[int, Field(ge=1, le=1_000, description="Counts from 1.")]
Start = Annotated[int, Field(ge=0, le=10**9, description="In Unicode code points from the start of the turn.")]
End = Annotated[int, Field(ge=1, le=10**9, description="In Unicode code points; the first one behind the passage.")]
Note = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]
Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
Seconds = Annotated[float, Field(ge=0, le=1e6, description="Spent on the item, as the browser counts.")]
Submission = Annotated[
    str, Field(min_length=8, max_length=100, description="A key of the browser's own: sent again, it changes nothing.")
]
Ahead = Annotated[
    int, Field(ge=0, le=3, description="Answer with so many tasks at hand, as `next` does, and spare that call.")
]
QueueState = Literal["ready", "waiting", "done", "paused", "closed", "unqualified"]


class SpanFlag(BaseModel):
    """A passage of an answer, flagged with one of the campaign's labels."""

    model_config = ConfigDict(extra="forbid")

    key: Key
    turn: Turn = 1
    start: Start
    end: End
    label: SpanLabel
    note: Note | None = None


SuggestionVisible = Annotated[
    bool | None,
    Field(description="Whether the judge's suggestion was in sight at any time; null: there was none."),
]
Spans = Annotated[list[SpanFlag], Field(max_length=8 * MOST_SPANS)]


class KeptSpanFlag(SpanFlag):
    id: uuid.UUID


class Draft(BaseModel):
    """What is done so far, by key; replaces the draft before. Other tabs and devices see it."""

    model_config = ConfigDict(extra="forbid")

    ranks: DraftRanks | None = None
    criteria_ranks: Annotated[dict[str, DraftRanks], Field(max_length=8)] = {}
    scores: Annotated[dict[str, DraftScores], Field(max_length=8)] = {}
    both_bad: bool = False
    correction: Correction | None = None
    replies: Replies = {}
    comment: Comment | None = None
    flag: Reason | None = None
    spans: Spans = []
    suggestion_visible: SuggestionVisible = None


class DraftSaved(BaseModel):
    locked_until: dt.datetime


class TaskPrompt(BaseModel):
    """`messages` end with the user turn that the first turn of each answer is about; `follow_ups` are later ones."""

    messages: list[dict[str, str]]
    follow_ups: list[str]


class TaskAnswer(BaseModel):
    key: str
    turns: list[str]


class Suggestion(BaseModel):
    """What the campaign's judge thinks of the answers, by key. `ranks`: 1 is best, equal ranks are ties; `scores`: the
    mean over turns, of a judge that scores."""

    ranks: dict[str, int]
    scores: dict[str, float] | None


class Task(BaseModel):
    """An item that is locked to the annotator until `locked_until`; every draft and `next` renews it."""

    id: uuid.UUID
    task_type: TaskType
    prompt: TaskPrompt
    answers: list[TaskAnswer]
    criteria: list[Criterion]
    questions: list[Question]
    span_labels: list[str]
    suggestion: Suggestion | None
    draft: Draft | None
    locked_until: dt.datetime


class NextRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ahead: Annotated[
        int, Field(ge=1, le=3, description="How many tasks to have at hand, the present one included.")
    ] = 1


class NextTasks(BaseModel):
    """`left`: items that still need this annotator, those at hand included; `done`: what they have submitted.

    `state` without items: `waiting` (others hold what is left), `done`, `paused`, `closed`, or
    `unqualified` (the annotator did not pass the campaign's gold items).
    """

    items: list[Task]
    left: int
    done: int
    state: QueueState


class Annotation(BaseModel):
    """What is submitted, by the campaign's task: a ranking has `ranks`, or `criteria_ranks` for each criterion where
    there are criteria (`ranks` may be left out then); a pairwise task `ranks`, and `both_bad` for a tie of two bad
    answers; a Likert task `scores` for each criterion; a correction `correction`. Each also has `replies` to the
    campaign's questions."""

    model_config = ConfigDict(extra="forbid")

    ranks: Ranks | None = None
    criteria_ranks: Annotated[dict[str, Ranks], Field(max_length=8)] = {}
    scores: Annotated[dict[str, Scores], Field(max_length=8)] = {}
    both_bad: bool = False
    correction: Correction | None = None
    replies: Replies = {}
    comment: Comment | None = None


class Submit(Annotation):
    """An annotation of an item, with what belongs to its submission."""

    flag: Reason | None = None
    spans: Spans = []
    suggestion_visible: SuggestionVisible = None
    seconds: Seconds
    submission: Submission
    ahead: Ahead = 0


class Skip(BaseModel):
    """The item goes to others, and does not come back to this annotator."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason
    seconds: Seconds
    submission: Submission
    ahead: Ahead = 0


class Submitted(BaseModel):
    """The same as `NextTasks`; `items` and `state` where the call asked for them with `ahead`."""

    left: int
    done: int
    items: list[Task] = []
    state: QueueState | None = None


class OpenCampaign(BaseModel):
    """`answers`: how many an item has. `items` and `done` are everyone's, `mine_*` and `left_for_me` the caller's."""

    id: uuid.UUID
    name: str
    task_type: TaskType
    instructions: str
    state: CampaignState
    criteria: list[Criterion]
    answers: int
    items: int
    done: int
    mine_done: int
    mine_skipped: int
    left_for_me: int


class OpenCampaigns(BaseModel):
    campaigns: list[OpenCampaign]


class MyTask(BaseModel):
    """Something that the caller submitted or skipped. `ranks` by key."""

    id: uuid.UUID
    campaign: uuid.UUID
    state: Literal["submitted", "skipped"]
    prompt: Annotated[str, Field(description="The start of the last user turn.")]
    ranks: dict[str, int] | None
    criteria_ranks: dict[str, dict[str, int]]
    comment: str | None
    flag: str | None
    skip_reason: str | None
    spans: list[KeptSpanFlag]
    at: dt.datetime


class MyTasks(BaseModel):
    """Newest first."""

    items: list[MyTask]
