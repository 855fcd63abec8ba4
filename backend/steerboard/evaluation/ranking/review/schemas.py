"""What a reviewer's browser takes and gives. Nothing here identifies an entrant."""

from __future__ import annotations

import datetime as dt
import uuid

from pydantic import BaseModel

from steerboard.evaluation.ranking.campaigns.schemas import Criterion, TaskType
from steerboard.evaluation.ranking.questions import Question, Replies
from steerboard.evaluation.ranking.schemas import KeptSpanFlag, TaskAnswer, TaskPrompt


class Opinion(BaseModel):
    """What an annotator submitted, or a reviewer decided, by the keys of the reviewer's screen."""

    by: str
    ranks: dict[str, int] | None
    criteria_ranks: dict[str, dict[str, int]]
    scores: dict[str, dict[str, int]]
    both_bad: bool
    correction: str | None
    replies: Replies = {}
    comment: str | None
    flag: str | None = None
    spans: list[KeptSpanFlag] = []
    at: dt.datetime | None


class ReviewItem(BaseModel):
    """`disagreement` of the annotators, from 0 to 1. `decision`: what counts instead of what they submitted."""

    id: uuid.UUID
    prompt: TaskPrompt
    answers: list[TaskAnswer]
    disagreement: float
    annotators: list[Opinion]
    decision: Opinion | None


class Review(BaseModel):
    """`open`: items on which annotators disagree and no one has decided; `items`: some of them, the greatest
    disagreement first."""

    campaign: str
    task_type: TaskType
    instructions: str
    criteria: list[Criterion]
    questions: list[Question]
    open: int
    decided: int
    items: list[ReviewItem]
