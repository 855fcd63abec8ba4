"""Webhooks over HTTP: which URLs get an event when runs and pipelines end."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import Depends, Query, Request
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Db, audit, let_go
from steerboard.accounts.http.routes import Router, UnkeptRoute
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import NotFound, problems
from steerboard.platform.http.paging import Page, paginate
from steerboard.webhooks import delivery, service
from steerboard.webhooks.schemas import (
    DeliveryOut,
    DeliveryState,
    WebhookChange,
    WebhookCreate,
    WebhookCreated,
    WebhookOut,
)
from steerboard.webhooks.tables import Webhook, WebhookDelivery

router = Router(prefix="/webhooks", tags=["webhooks"])
_live = Router(route_class=UnkeptRoute)

Admin = Annotated[Access, Depends(AccessTo("admin"))]


@router.get("", responses=problems(404))
def list_webhooks(session: Db, access: Admin) -> list[WebhookOut]:
    """All of them, by name."""
    return _all_out(session, service.webhooks_of(session, access.project))


@router.post("", status_code=201, responses=problems(404, 409))
def create_webhook(request: Request, body: WebhookCreate, session: Db, access: Admin) -> WebhookCreated:
    """The secret is shown in this answer and never again."""
    state = request.app.state
    webhook, secret = service.create(session, state.settings, state.secrets, access.project, body)
    audit(session, access, "webhook.create", f"webhook {webhook.name} {webhook.id}", {"events": webhook.events})
    return WebhookCreated(**_all_out(session, [webhook])[0].model_dump(), secret=secret)


@router.patch("/{webhook}", responses=problems(404))
def change_webhook(request: Request, webhook: str, body: WebhookChange, session: Db, access: Admin) -> WebhookOut:
    """Only what is given. The secret stays."""
    found = service.get_webhook(session, access.project, webhook)
    service.change(session, request.app.state.settings, found, body)
    # A URL may carry a token of its receiver, so the log records only that it changed.
    detail = {**body.model_dump(exclude={"url"}, exclude_unset=True), "new_url": body.url is not None}
    audit(session, access, "webhook.change", f"webhook {found.name} {found.id}", detail)
    return _all_out(session, [found])[0]


@router.delete("/{webhook}", status_code=204, responses=problems(404))
def delete_webhook(webhook: str, session: Db, access: Admin) -> None:
    """With all of its deliveries, also those that still wait."""
    found = service.get_webhook(session, access.project, webhook)
    service.remove(session, found)
    audit(session, access, "webhook.delete", f"webhook {found.name} {found.id}")


@router.get("/{webhook}/deliveries", responses=problems(404))
def list_deliveries(
    webhook: str,
    session: Db,
    access: Admin,
    state: DeliveryState | None = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Page[DeliveryOut]:
    """The newest first. They are kept for a month."""
    found = service.deliveries_of(service.get_webhook(session, access.project, webhook))
    if state:
        found = found.where(WebhookDelivery.state == state)
    return paginate(session, found, WebhookDelivery.id, DeliveryOut.model_validate, cursor=cursor, limit=limit)


@router.post("/{webhook}/deliveries/{delivery}/redeliver", responses=problems(404, 409))
def redeliver_webhook(webhook: str, delivery: uuid.UUID, session: Db, access: Admin) -> DeliveryOut:
    """Send it again within seconds, with the same id, and ten tries as at first."""
    found = service.get_webhook(session, access.project, webhook)
    again = service.redeliver(session, found, delivery)
    audit(session, access, "webhook.redeliver", f"webhook {found.name} {found.id}", {"delivery": str(delivery)})
    return DeliveryOut.model_validate(again)


@_live.post("/{webhook}/test", responses=problems(404))
def test_webhook(request: Request, webhook: str, session: Db, access: Admin) -> DeliveryOut:
    """Send an event `test` now, once, also to an inactive webhook. A failure is an answer: `last_error` explains it."""
    state = request.app.state
    found = service.get_webhook(session, access.project, webhook)
    parcel = service.make_test(session, access.project, found)
    audit(session, access, "webhook.test", f"webhook {found.name} {found.id}")
    let_go(session)
    outcome = delivery.send(state.settings, state.secrets, parcel)
    with transaction(state.sessions) as own:
        delivery.note(own, parcel, outcome)
        sent = own.get(WebhookDelivery, parcel.id)
        if sent is None:
            raise NotFound("the webhook was deleted meanwhile")
        return DeliveryOut.model_validate(sent)


router.include_router(_live)


def _all_out(session: Session, webhooks: list[Webhook]) -> list[WebhookOut]:
    last = service.last_deliveries(session, webhooks)
    return [
        WebhookOut.model_validate(
            {
                "id": webhook.id,
                "name": webhook.name,
                "url": webhook.url,
                "events": webhook.events,
                "active": webhook.active,
                "created_at": webhook.created_at,
                "last_delivery": DeliveryOut.model_validate(last[webhook.id]) if webhook.id in last else None,
            }
        )
        for webhook in webhooks
    ]
