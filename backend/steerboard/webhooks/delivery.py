"""Sending what is due, by the scheme of Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`).

Any number of API processes may run senders: each delivery is claimed with a lease in one short transaction, sent in
none, and its outcome noted in another. A process that is killed in between leaves a lease that expires, and the
delivery is sent again with the same id; so it arrives at least once.
"""

from __future__ import annotations

import base64
import datetime as dt
import logging
import random
import secrets as randomness
import threading
import time
import uuid
from dataclasses import dataclass
from typing import Any

import httpx
import orjson
from sqlalchemy import delete, exists, func
from sqlalchemy.orm import Session, aliased, sessionmaker
from standardwebhooks import Webhook as Signer

from steerboard.accounts.tables import AuditEntry
from steerboard.platform.database import transaction
from steerboard.platform.leases import Lease, LeaseLost, Leases, now, take_away
from steerboard.platform.security.safe_http import open_client, read_start
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.webhooks.outbox import TRIES
from steerboard.webhooks.tables import Webhook, WebhookDelivery
from steerboard_contracts.errors import SteerboardError

log = logging.getLogger(__name__)

SECRET_PREFIX = "whsec_"
TIMEOUT_SECONDS = 10.0
LEASE_SECONDS = 60.0
KEPT = dt.timedelta(days=30)
_GONE = 410
# 10 s, 40 s, ... up to six hours: ten tries in about 22 hours.
_FIRST_WAIT, _FACTOR, _LONGEST_WAIT = 10.0, 4.0, 6 * 3600.0
_JITTER = 0.2
_POLL_SECONDS = 2.0
_SENDERS = 4
_SHOWN = 200


LEASES = Leases(WebhookDelivery, "webhook delivery", open=WebhookDelivery.state == "pending", key_share=False)


@dataclass(frozen=True)
class Parcel(Lease):
    """A claimed delivery: all that sending needs, so that no transaction is open meanwhile."""

    url: str
    secret_sealed: str
    payload: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """`error` is None for a success; `status` is None when there was no answer."""

    status: int | None
    error: str | None


def new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(randomness.token_bytes(24)).decode()


def _signed_headers(secret: str, id_: str, body: bytes) -> dict[str, str]:
    at = dt.datetime.now(dt.UTC).replace(microsecond=0)
    return {
        "webhook-id": id_,
        "webhook-timestamp": f"{at.timestamp():.0f}",
        "webhook-signature": Signer(secret).sign(id_, at, body.decode()),
    }


_other = aliased(WebhookDelivery)
# Its time has come, its webhook is active, and none of that webhook's is on its way.
_DUE = (
    WebhookDelivery.next_attempt_at <= now(),
    exists().where(Webhook.id == WebhookDelivery.webhook_id, Webhook.active),
    ~exists().where(
        _other.webhook_id == WebhookDelivery.webhook_id, _other.state == "pending", _other.lease_expires_at > now()
    ),
)


def claim_next(session: Session) -> Parcel | None:
    """The delivery that is due longest, leased to the caller. A webhook with one on its way waits (except if two
    senders look at the same moment), so a slow receiver holds up only itself.
    """
    found = LEASES.first(session, LEASES.free(), *_DUE, order_by=(WebhookDelivery.next_attempt_at,))
    return grant(session, found, session.get_one(Webhook, found.webhook_id)) if found else None


def grant(session: Session, delivery: WebhookDelivery, webhook: Webhook) -> Parcel:
    """Lease a delivery, whose row the caller has locked or just made, for one attempt."""
    # Not below zero: a try whose sender was killed is made again.
    delivery.tries_left = max(delivery.tries_left - 1, 0)
    lease = LEASES.grant(delivery, uuid.uuid4(), LEASE_SECONDS)
    session.flush()
    return Parcel(lease.id, lease.attempt, lease.owner, webhook.url, webhook.secret_sealed, delivery.payload)


def send(settings: Settings, secrets: Secrets, parcel: Parcel) -> Outcome:
    """One POST. Every failure is an outcome. Touches no database."""
    body = orjson.dumps(parcel.payload)
    try:
        headers = _signed_headers(secrets.open(parcel.secret_sealed), str(parcel.id), body)
        headers["Content-Type"] = "application/json"
        with open_client(settings, timeout_seconds=TIMEOUT_SECONDS, total_seconds=TIMEOUT_SECONDS) as client:
            with client.stream("POST", parcel.url, content=body, headers=headers) as response:
                if response.is_success:
                    return Outcome(response.status_code, None)
                said = _words(response)
                return Outcome(response.status_code, f"answered {response.status_code}" + (f": {said}" if said else ""))
    except SteerboardError as error:
        return Outcome(None, f"{error.code}: {error.detail}")
    except httpx.TimeoutException:
        return Outcome(None, f"no answer within {TIMEOUT_SECONDS:.0f} s")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Outcome(None, str(error) or type(error).__name__)


def _words(response: httpx.Response) -> str:
    """The start of the receiver's error message. If it is cut short, that changes nothing."""
    try:
        body, _ = read_start(response, 4 * _SHOWN)
    except httpx.HTTPError:
        return ""
    return " ".join(body.decode(errors="replace").replace("\x00", "").split())[:_SHOWN]


def note(session: Session, parcel: Parcel, outcome: Outcome) -> None:
    """Write the outcome down, unless another attempt was made meanwhile, or the webhook is gone."""
    try:
        delivery = LEASES.fenced(session, parcel)
    except LeaseLost:
        return
    take_away(delivery)
    delivery.last_status, delivery.last_error = outcome.status, outcome.error
    if outcome.error is None:
        delivery.state, delivery.next_attempt_at = "delivered", None
        delivery.delivered_at = func.clock_timestamp()
    elif outcome.status == _GONE or delivery.tries_left == 0:
        delivery.state, delivery.next_attempt_at = "failed", None
    else:
        wait = wait_seconds(TRIES - delivery.tries_left)
        delivery.next_attempt_at = func.clock_timestamp() + dt.timedelta(seconds=wait)
    if outcome.status == _GONE:
        _deactivate(session, delivery.webhook_id)
    session.flush()
    session.refresh(delivery)


def _deactivate(session: Session, webhook_id: uuid.UUID) -> None:
    webhook = session.get_one(Webhook, webhook_id)
    if webhook.active:
        webhook.active = False
        target = f"webhook {webhook.name} {webhook.id}"
        detail = {"why": "the receiver answered 410 Gone"}
        session.add(
            AuditEntry(
                project_id=webhook.project_id,
                actor="steerboard",
                action="webhook.deactivate",
                target=target,
                detail=detail,
            )
        )


def wait_seconds(tries: int) -> float:
    """How long after that many failed tries. Jittered, so that a receiver that comes back is not overrun."""
    wait = min(_FIRST_WAIT * _FACTOR ** (tries - 1), _LONGEST_WAIT)
    return wait * random.uniform(1 - _JITTER, 1 + _JITTER)


def deliver_next(sessions: sessionmaker[Session], settings: Settings, secrets: Secrets) -> bool:
    """Send one delivery that is due. Returns whether there was one."""
    with transaction(sessions) as session:
        parcel = claim_next(session)
    if parcel is None:
        return False
    outcome = send(settings, secrets, parcel)
    if outcome.error is not None:
        log.warning("webhook delivery %s, attempt %d: %s", parcel.id, parcel.attempt, outcome.error)
    with transaction(sessions) as session:
        note(session, parcel, outcome)
    return True


def forget_old(session: Session) -> None:
    """Deliveries that ended a month ago."""
    old = WebhookDelivery.created_at < func.clock_timestamp() - KEPT
    session.execute(delete(WebhookDelivery).where(WebhookDelivery.state != "pending", old))


class Senders:
    """Threads that send due deliveries, in the API process."""

    def __init__(self, sessions: sessionmaker[Session], settings: Settings, secrets: Secrets) -> None:
        self._stopping = threading.Event()
        self._given = (sessions, settings, secrets)
        self._threads = [
            threading.Thread(target=self._work, name=f"webhooks-{number}", daemon=True) for number in range(_SENDERS)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, wait_seconds: float = 3.0) -> None:
        """What is on its way longer than that is sent again after its lease."""
        self._stopping.set()
        until = time.monotonic() + wait_seconds
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                found = deliver_next(*self._given)
            except Exception:
                log.exception("sending webhooks failed and will be retried")
                found = False
            if not found:
                self._stopping.wait(_POLL_SECONDS)
