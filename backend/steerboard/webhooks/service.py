"""The rules of webhooks. Callers commit."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import Select, delete, func, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import NameTaken
from steerboard.platform.http.errors import Conflict, NotFound
from steerboard.platform.names import check_name, find
from steerboard.platform.security.safe_http import check_url, refuse_private
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.webhooks import outbox
from steerboard.webhooks.delivery import Parcel, grant, new_secret
from steerboard.webhooks.schemas import WebhookChange, WebhookCreate
from steerboard.webhooks.tables import Webhook, WebhookDelivery

# Each ending of a run writes a row for each of them.
MOST_WEBHOOKS = 50
TEST_EVENT = "test"


def webhooks_of(session: Session, project: Project) -> list[Webhook]:
    """By name."""
    return list(session.scalars(select(Webhook).where(Webhook.project_id == project.id).order_by(Webhook.name)))


def get_webhook(session: Session, project: Project, ref: str) -> Webhook:
    """By id or name. Raises `NotFound`, also for another project's."""
    webhook = find(session, select(Webhook).where(Webhook.project_id == project.id), Webhook.id, Webhook.name, ref)
    if webhook is None:
        raise NotFound(f"there is no webhook {ref!r}")
    return webhook


def create(
    session: Session, settings: Settings, secrets: Secrets, project: Project, given: WebhookCreate
) -> tuple[Webhook, str]:
    """The webhook and its secret. Raises `BadInput` (`invalid_name`), `BadUrl`, `AddressRefused`, `NameTaken`,
    `Conflict`."""
    check_name(given.name)
    url = check_url(given.url)
    refuse_private(settings, url)
    if session.scalar(select(Webhook.id).where(Webhook.project_id == project.id, Webhook.name == given.name)):
        raise NameTaken(f"there is already a webhook {given.name!r}", hint="Choose another name.")
    mine = select(func.count()).select_from(Webhook).where(Webhook.project_id == project.id)
    if (session.scalar(mine) or 0) >= MOST_WEBHOOKS:
        raise Conflict(
            f"a project has at most {MOST_WEBHOOKS} webhooks", code="too_many_webhooks", hint="Delete another first."
        )
    secret = new_secret()
    webhook = Webhook(
        project_id=project.id,
        name=given.name,
        url=url,
        events=list(given.events),
        secret_sealed=secrets.seal(secret),
        active=True,
    )
    session.add(webhook)
    session.flush()
    session.refresh(webhook)
    return webhook, secret


def change(session: Session, settings: Settings, webhook: Webhook, given: WebhookChange) -> None:
    """Only what was given. Raises `BadUrl`, `AddressRefused`."""
    if given.url is not None:
        url = check_url(given.url)
        refuse_private(settings, url)
        webhook.url = url
    if given.events is not None:
        webhook.events = list(given.events)
    if given.active is not None:
        webhook.active = given.active
    session.flush()


def remove(session: Session, webhook: Webhook) -> None:
    """With all of its deliveries."""
    session.execute(delete(Webhook).where(Webhook.id == webhook.id))


def last_deliveries(session: Session, webhooks: Sequence[Webhook]) -> dict[uuid.UUID, WebhookDelivery]:
    """The newest of each webhook that has one."""
    found = (
        select(WebhookDelivery)
        .ext(distinct_on(WebhookDelivery.webhook_id))
        .where(WebhookDelivery.webhook_id.in_([webhook.id for webhook in webhooks]))
        .order_by(WebhookDelivery.webhook_id, WebhookDelivery.id.desc())
    )
    return {delivery.webhook_id: delivery for delivery in session.scalars(found)}


def deliveries_of(webhook: Webhook) -> Select[WebhookDelivery]:
    return select(WebhookDelivery).where(WebhookDelivery.webhook_id == webhook.id)


def make_test(session: Session, project: Project, webhook: Webhook) -> Parcel:
    """A `test` delivery, leased to the caller, who sends it now. It is tried once."""
    delivery = outbox.delivery(
        webhook,
        TEST_EVENT,
        {
            "id": str(webhook.id),
            "name": webhook.name,
            "project": project.name,
            "state": None,
            "reason": "someone tests this webhook",
            "url": outbox.link(project),
        },
    )
    delivery.tries_left = 1
    session.add(delivery)
    session.flush()
    return grant(session, delivery, webhook)


def redeliver(session: Session, webhook: Webhook, id_: uuid.UUID) -> WebhookDelivery:
    """Send a delivery again, with the same id and all tries. Raises `NotFound`, `Conflict` (`webhook_inactive`)."""
    delivery = session.scalar(
        deliveries_of(webhook)
        .where(WebhookDelivery.id == id_)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    if delivery is None:
        raise NotFound(f"webhook {webhook.name!r} has no delivery {id_}")
    if not webhook.active:
        raise Conflict(
            f"webhook {webhook.name!r} is not active", code="webhook_inactive", hint="Make it active, then try again."
        )
    delivery.state, delivery.tries_left, delivery.delivered_at = "pending", outbox.TRIES, None
    delivery.next_attempt_at = func.clock_timestamp()
    session.flush()
    session.refresh(delivery)
    return delivery
