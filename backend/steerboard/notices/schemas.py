"""What the API takes and gives of notice rules."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from steerboard.notices.schedule import Schedule
from steerboard.platform.names import EmailAddress

NoticeEvent = Literal[
    "run.succeeded",
    "run.failed",
    "run.cancelled",
    "run.paused",
    "run.health",
    "pipeline.succeeded",
    "pipeline.failed",
    "pipeline.cancelled",
    "evaluation.succeeded",
    "evaluation.failed",
    "evaluation.cancelled",
    "gate.passed",
    "gate.failed",
    "campaign.done",
    "comment.mention",
]
Channel = Literal["webhook", "slack", "email"]
DeliveryState = Literal["pending", "delivered", "failed"]

MOST_RECIPIENTS = 20


def _each_once(events: list[NoticeEvent]) -> list[NoticeEvent]:
    return list(dict.fromkeys(events))


NoticeEvents = Annotated[list[NoticeEvent], Field(min_length=1), AfterValidator(_each_once)]
Recipients = Annotated[list[EmailAddress], Field(max_length=MOST_RECIPIENTS)]


class NoticeRuleCreate(BaseModel):
    """`url` for a webhook and for Slack, whose incoming webhook it is; `recipients` for e-mail. `schedule` is for what
    people read: Slack and e-mail."""

    model_config = ConfigDict(extra="forbid")

    name: str
    channel: Channel = "webhook"
    url: str | None = None
    recipients: Recipients = []
    events: NoticeEvents
    schedule: Schedule = Schedule()


class NoticeRuleChange(BaseModel):
    """Only what is given changes. An inactive rule sends nothing; pending deliveries resume when it is active."""

    model_config = ConfigDict(extra="forbid")

    url: str | None = None
    recipients: Recipients | None = None
    events: NoticeEvents | None = None
    schedule: Schedule | None = None
    active: bool | None = None


class DeliveryOut(BaseModel):
    """`event` is one of the rule's, or `test`. `last_status`: the HTTP or SMTP status of the last answer, null without
    one. `next_attempt_at` is null once the delivery has ended.
    """

    model_config = ConfigDict(from_attributes=True, populate_by_name=True)

    id: uuid.UUID
    event: str
    state: DeliveryState
    attempts: int = Field(validation_alias="attempt")
    next_attempt_at: dt.datetime | None
    last_status: int | None
    last_error: str | None
    created_at: dt.datetime
    delivered_at: dt.datetime | None
    payload: dict[str, Any]


class NoticeRuleOut(BaseModel):
    """`active` also becomes false when the receiver answers 410 Gone. Slack's `url` is cut, since it allows
    anyone to post."""

    id: uuid.UUID
    name: str
    channel: Channel
    url: str | None
    recipients: list[str]
    events: list[NoticeEvent]
    schedule: Schedule
    active: bool
    created_at: dt.datetime
    last_delivery: DeliveryOut | None


class NoticeRuleCreated(NoticeRuleOut):
    """The only answer that ever holds the secret."""

    secret: str | None = Field(
        description="Checks the signatures of what a webhook is sent; starts with `whsec_`. Null for Slack and e-mail."
    )


class NoticeOut(BaseModel):
    """`title` and `reason` are what e-mail and Slack show. `path`: of the page, below the project's. `mentions_you`: a
    comment names the caller."""

    id: int
    event: NoticeEvent
    title: str
    reason: str
    path: str
    unread: bool
    mentions_you: bool
    created_at: dt.datetime


class UnreadNotices(BaseModel):
    """`notices`: all of them; `mentions`: those that name the caller. Counted to 100."""

    notices: int
    mentions: int


class NoticesRead(BaseModel):
    """`until`: the newest notice that was read; older ones count as read, too."""

    model_config = ConfigDict(extra="forbid")

    until: Annotated[int, Field(ge=0, lt=2**63)]
