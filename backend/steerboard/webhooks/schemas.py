"""What the API takes and gives of webhooks."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

WebhookEvent = Literal[
    "run.succeeded",
    "run.failed",
    "run.cancelled",
    "run.paused",
    "run.health",
    "pipeline.succeeded",
    "pipeline.failed",
    "pipeline.cancelled",
]
DeliveryState = Literal["pending", "delivered", "failed"]


def _each_once(events: list[WebhookEvent]) -> list[WebhookEvent]:
    return list(dict.fromkeys(events))


WebhookEvents = Annotated[list[WebhookEvent], Field(min_length=1), AfterValidator(_each_once)]


class WebhookCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    url: str
    events: WebhookEvents


class WebhookChange(BaseModel):
    """Only what is given changes. An inactive webhook receives nothing; pending deliveries resume when it is active."""

    model_config = ConfigDict(extra="forbid")

    url: str | None = None
    events: WebhookEvents | None = None
    active: bool | None = None


class DeliveryOut(BaseModel):
    """`event` is one of the webhook's, or `test`. `last_status`: the HTTP status of the last answer, null without one.

    `next_attempt_at` is null once the delivery has ended.
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


class WebhookOut(BaseModel):
    """`active` also becomes false when the receiver answers 410 Gone."""

    id: uuid.UUID
    name: str
    url: str
    events: list[WebhookEvent]
    active: bool
    created_at: dt.datetime
    last_delivery: DeliveryOut | None


class WebhookCreated(WebhookOut):
    """The only answer that ever holds the secret."""

    secret: str = Field(description="Checks the signatures of what is sent; starts with `whsec_`.")
