"""The API's schemas of items: prompts with the assessments of their answers."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from steerboard.evaluation.judges.schemas import JudgeStyle, VerdictOut, VerdictStatus
from steerboard.evaluation.ranking.campaigns.schemas import NamedSpanFlag, TaskType
from steerboard.evaluation.ranking.questions import Replies
from steerboard.evaluation.schemas import PromptOut
from steerboard_contracts.report.sections.comparison import By

Outcome = Literal["win", "tie", "loss", "disagree", "flip"]
Length = Literal["longer", "shorter", "similar"]
Order = Literal["position", "score", "-score", "difference", "-difference"]


class SourceOutcome(BaseModel):
    """Whom a source prefers: `win` for the entrant `a`. `flipped`: a judge's two orders differ."""

    by: By
    source: str
    outcome: Literal["win", "tie", "loss"]
    flipped: bool = False


class ItemSource(BaseModel):
    """`valid`: whether its figures may be used."""

    by: By
    source: str
    valid: bool


class ItemOut(BaseModel):
    """`text`: the beginning of the last user message. `lengths`: characters of the answers of `a` and `b`, null
    without an answer; empty where no two entrants were named, and so is `outcomes`. `scores`: those of `a`, and of `b`
    where it was named, by the source; empty where either was not named."""

    position: int
    question_id: str
    category: str | None
    text: str
    lengths: list[float | None]
    scores: list[float | None]
    outcomes: list[SourceOutcome]


class ItemCounts(BaseModel):
    """How the source compares the two entrants, whichever `outcome` is asked for: the report's wins, ties and losses
    where neither category nor length is."""

    win: int
    tie: int
    loss: int


class ItemPage(BaseModel):
    """`version`: of the evaluation whose report has these items. `total`: of all pages. `sources`: all that the
    report has. `next` is the `after` of the page that follows, null on the last."""

    version: int
    total: int
    counts: Annotated[ItemCounts | None, Field(description="Null unless two entrants and a source were named.")] = None
    sources: list[ItemSource]
    items: list[ItemOut]
    next: int | None = None


class ItemVerdict(VerdictOut):
    """`called`: an endpoint was asked, and the call can be traced."""

    judge: str
    judge_id: uuid.UUID
    style: JudgeStyle
    called: bool


class ItemRanking(BaseModel):
    """What one annotator did with the item. `ranks`: by entrant, 1 is best; `criteria_ranks`: the same by criterion.
    `scores`: of a Likert task, by criterion; `both_bad`: neither answer of a pairwise task is good; `correction`: the
    last turn as it should be; `replies` to the campaign's questions, by label. `gold`: the ranks that are known to be
    right. `suggestion_visible`: whether a judge's suggestion was in sight, null where there was none."""

    campaign: str
    task_type: TaskType
    annotator: str
    state: Literal["submitted", "skipped"]
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
    skip_reason: str | None
    seconds: float | None
    gold: dict[str, float] | None


class ItemDetail(BaseModel):
    """One prompt with all assessments of its answers. `number` counts from 1 among the `total` items that fit the
    filters, null where this one does not; `previous` and `next`: positions of its neighbours among them.

    `more_verdicts`: there are more than fit here; name two entrants to see all of theirs."""

    number: int | None
    total: int
    previous: int | None
    next: int | None
    prompt: PromptOut
    outcomes: list[SourceOutcome]
    verdicts: list[ItemVerdict]
    more_verdicts: bool
    rankings: list[ItemRanking]


class CallMessage(BaseModel):
    role: str
    content: str


class RepeatedCall(BaseModel):
    status: VerdictStatus
    value: float | None
    answer: str | None


class JudgeCall(BaseModel):
    """The call of an endpoint that a verdict was read from. `messages`: what was sent, put together again and equal to
    it by its hash; null, with the reason in `no_messages`, where it cannot be. `seconds`: from request to answer;
    `attempts`: how often it was sent until there was one, null for answers of earlier versions. `cost`: by the prices
    of the judge that paid, null without them. `cached`: the answer was known before, so that this verdict cost
    nothing; `paid_by` names the judge that had asked, null where that was deleted. `repeated`: its answer when it was
    asked the same once more."""

    judge: str
    model: str
    style: JudgeStyle
    endpoint: str | None
    position: int
    turn: int
    status: VerdictStatus
    value: float | None
    detail: str | None
    messages: list[CallMessage] | None
    no_messages: str | None
    temperature: float | None
    max_tokens: int | None
    answer: str | None
    finish_reason: str | None
    logprobs: dict[str, Any] | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    seconds: float | None
    attempts: int | None
    cached: bool
    paid_by: str | None
    answered_at: dt.datetime | None
    repeated: RepeatedCall | None = None
