"""The quality of a campaign's rankings, as its API gives it."""

from __future__ import annotations

import datetime as dt
from typing import Literal

from pydantic import BaseModel

from steerboard.evaluation.ranking.questions import QuestionKind


class AnnotatorQuality(BaseModel):
    """`hours` at work, as browsers count them. `agreement` with the other annotators of the shared items, and with the
    reviewer of the adjudicated ones: 1 less the disagreement. `gold`: share of the pairs of gold items in the known
    order. Ends of intervals are at 95%, over items. `qualification`: null where the campaign asks for none."""

    annotator: str
    done: int
    skipped: int
    flagged: int
    hours: float
    items_per_hour: float | None
    median_seconds: float | None
    agreement: float | None
    agreement_low: float | None
    agreement_high: float | None
    shared_items: int
    agreement_with_reviewers: float | None
    agreement_with_reviewers_low: float | None
    agreement_with_reviewers_high: float | None
    adjudicated_items: int
    gold: float | None
    gold_low: float | None
    gold_high: float | None
    gold_pairs: int
    qualification: Literal["open", "passed", "failed"] | None
    last_at: dt.datetime | None


class CampaignDay(BaseModel):
    """A day, in UTC, with submissions."""

    day: dt.date
    submissions: int
    annotators: int
    median_seconds: float | None


class SpanCount(BaseModel):
    """Passages flagged with a label: in all, in so many items, and by entrant."""

    label: str
    spans: int
    items: int
    by_entrant: dict[str, int]


class JudgeAgreement(BaseModel):
    """How far submissions agree with the judge. `agreement`: the share of the `pairs` of answers that the judge orders
    that are in its order, a tie counting 1/2; null without any. Ends of intervals are at 95%, over items."""

    submissions: int
    pairs: int
    agreement: float | None
    agreement_low: float | None
    agreement_high: float | None


class SuggestionQuality(BaseModel):
    """Agreement with the judge whose suggestion annotators see, `visible` or `hidden` while they worked on the item.
    Both are over items on which the judge has a view now."""

    judge: str
    visible: JudgeAgreement
    hidden: JudgeAgreement


class ChoiceCount(BaseModel):
    choice: str
    replies: int


class QuestionCount(BaseModel):
    """The replies to a question of the campaign that count: reviewers' decisions instead of submissions where there are
    some. `choices`: in their order; none of a text. `agreement`: over the items with two or more replies, the share of
    the choices of either of two annotators that both chose; ends of intervals are at 95%, over items. `alpha`:
    Krippendorff's, nominal, of one choice. Agreement is null for a text."""

    label: str
    kind: QuestionKind
    replies: int
    choices: list[ChoiceCount]
    agreement: float | None
    agreement_low: float | None
    agreement_high: float | None
    shared_items: int
    alpha: float | None


class CampaignQuality(BaseModel):
    """Annotators by name; the last 60 days with submissions, newest first; flagged passages by label, the campaign's
    own first; the campaign's questions in their order. `suggestions`: null where annotators see none."""

    annotators: list[AnnotatorQuality]
    days: list[CampaignDay]
    spans: list[SpanCount]
    questions: list[QuestionCount]
    suggestions: SuggestionQuality | None
