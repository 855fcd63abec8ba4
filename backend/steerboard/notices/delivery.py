"""Sending what is due.

Any number of API processes may run senders: each delivery is claimed with a lease in one short transaction, sent in
none, and its outcome noted in another. A process that is killed in between leaves a lease that expires, and the
delivery is sent again with the same id; so it arrives at least once. The deliveries of a digest are claimed together,
each with a lease of its own.
"""

from __future__ import annotations

import datetime as dt
import logging
import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, exists, func
from sqlalchemy.orm import Session, aliased, sessionmaker

from steerboard.accounts.tables import AuditEntry, Project
from steerboard.notices import feed
from steerboard.notices.channels import DeliveryResult, Parcel, send
from steerboard.notices.outbox import TRIES
from steerboard.notices.schedule import Schedule
from steerboard.notices.tables import NoticeDelivery, NoticeRule
from steerboard.platform.database import transaction
from steerboard.platform.leases import Lease, LeaseLost, Leases, now, take_away
from steerboard.platform.polling import PollingThreads
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings

log = logging.getLogger(__name__)

# Longer than a channel takes at most (`channels`).
LEASE_SECONDS = 60.0
KEPT = dt.timedelta(days=30)
_GONE = 410
# 10 s, 40 s, ... up to six hours: ten tries in about 22 hours.
_FIRST_WAIT, _FACTOR, _LONGEST_WAIT = 10.0, 4.0, 6 * 3600.0
_JITTER = 0.2
_SENDERS = 4
# One message of a digest has at most so many; others follow in the next.
MOST_IN_DIGEST = 100


LEASES = Leases(NoticeDelivery, "notice delivery", open=NoticeDelivery.state == "pending", key_share=False)

_other = aliased(NoticeDelivery)
# Its time has come, its rule is active, and none of that rule's is on its way.
_DUE = (
    NoticeDelivery.next_attempt_at <= now(),
    exists().where(NoticeRule.id == NoticeDelivery.rule_id, NoticeRule.active),
    ~exists().where(
        _other.rule_id == NoticeDelivery.rule_id, _other.state == "pending", _other.lease_expires_at > now()
    ),
)


@dataclass(frozen=True)
class Claimed:
    """A message, and the leases on the deliveries that it carries."""

    parcel: Parcel
    leases: tuple[Lease, ...]


def claim_next(session: Session) -> Claimed | None:
    """The delivery that is due longest, leased to the caller; for a digest, with all others that are due. A rule with
    one on its way waits (except if two senders look at the same moment), so a slow receiver holds up only itself.
    """
    first = LEASES.first(session, LEASES.free(), *_DUE, order_by=(NoticeDelivery.next_attempt_at,))
    if first is None:
        return None
    rule = session.get_one(NoticeRule, first.rule_id)
    if Schedule.model_validate(rule.schedule).digest == "each":
        return grant(session, [first], rule)
    others = LEASES.all(
        session,
        LEASES.free(),
        NoticeDelivery.rule_id == rule.id,
        NoticeDelivery.id != first.id,
        NoticeDelivery.next_attempt_at <= now(),
        order_by=(NoticeDelivery.id,),
        limit=MOST_IN_DIGEST - 1,
    )
    return grant(session, sorted([first, *others], key=lambda delivery: delivery.id), rule)


def grant(session: Session, deliveries: Sequence[NoticeDelivery], rule: NoticeRule) -> Claimed:
    """Lease deliveries, whose rows the caller has locked or just made, for one attempt."""
    owner = uuid.uuid4()
    leases = []
    for delivery in deliveries:
        # Not below zero: a try whose sender was killed is made again.
        delivery.tries_left = max(delivery.tries_left - 1, 0)
        leases.append(LEASES.grant(delivery, owner, LEASE_SECONDS))
    session.flush()
    parcel = Parcel(
        id=leases[0].id,
        project=session.get_one(Project, rule.project_id).name,
        channel=rule.channel,
        url=rule.url,
        recipients=tuple(rule.recipients),
        secret_sealed=rule.secret_sealed,
        payloads=tuple(delivery.payload for delivery in deliveries),
    )
    return Claimed(parcel, tuple(leases))


def note(session: Session, claimed: Claimed, outcome: DeliveryResult) -> None:
    """Write the outcome down for each, unless another attempt was made meanwhile, or the rule is gone."""
    for lease in claimed.leases:
        try:
            _note(session, LEASES.fenced(session, lease), outcome)
        except LeaseLost:
            continue


def _note(session: Session, delivery: NoticeDelivery, outcome: DeliveryResult) -> None:
    take_away(delivery)
    delivery.last_status, delivery.last_error = outcome.status, outcome.error or outcome.refused
    if outcome.error is None:
        delivery.state, delivery.next_attempt_at = "delivered", None
        delivery.delivered_at = func.clock_timestamp()
    elif outcome.status == _GONE or delivery.tries_left == 0:
        delivery.state, delivery.next_attempt_at = "failed", None
    else:
        wait = wait_seconds(TRIES - delivery.tries_left)
        delivery.next_attempt_at = func.clock_timestamp() + dt.timedelta(seconds=wait)
    if outcome.status == _GONE:
        _deactivate(session, delivery.rule_id)
    session.flush()
    session.refresh(delivery)


def _deactivate(session: Session, rule_id: uuid.UUID) -> None:
    rule = session.get_one(NoticeRule, rule_id)
    if rule.active:
        rule.active = False
        target = f"notice rule {rule.name} {rule.id}"
        detail = {"why": "the receiver answered 410 Gone"}
        session.add(
            AuditEntry(
                project_id=rule.project_id,
                actor="steerboard",
                action="notice_rule.deactivate",
                target=target,
                detail=detail,
            )
        )


def wait_seconds(tries: int) -> float:
    """How long after that many failed tries. Jittered, so that a receiver that comes back is not overrun."""
    wait = min(_FIRST_WAIT * _FACTOR ** (tries - 1), _LONGEST_WAIT)
    return wait * random.uniform(1 - _JITTER, 1 + _JITTER)


def deliver_next(sessions: sessionmaker[Session], settings: Settings, secrets: Secrets) -> bool:
    """Send one message that is due. Returns whether there was one."""
    with transaction(sessions) as session:
        claimed = claim_next(session)
    if claimed is None:
        return False
    outcome = send(settings, secrets, claimed.parcel)
    if outcome.error is not None:
        log.warning("notice delivery %s, attempt %d: %s", claimed.parcel.id, claimed.leases[0].attempt, outcome.error)
    with transaction(sessions) as session:
        note(session, claimed, outcome)
    return True


def forget_old(session: Session) -> None:
    """Deliveries that ended a month ago, and notices of that time."""
    old = NoticeDelivery.created_at < func.clock_timestamp() - KEPT
    session.execute(delete(NoticeDelivery).where(NoticeDelivery.state != "pending", old))
    feed.remove_older(session, KEPT)


def senders(sessions: sessionmaker[Session], settings: Settings, secrets: Secrets) -> PollingThreads:
    """Threads that send due deliveries."""
    return PollingThreads("notices", _SENDERS, lambda _: deliver_next(sessions, settings, secrets))
