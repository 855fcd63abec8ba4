"""What may be done with notice rules. Callers commit."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import httpx
from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import NameTaken
from steerboard.notices import mail, outbox
from steerboard.notices.channels import new_secret
from steerboard.notices.delivery import Claimed, grant
from steerboard.notices.schedule import Schedule
from steerboard.notices.schemas import NoticeRuleChange, NoticeRuleCreate
from steerboard.notices.tables import NoticeDelivery, NoticeRule
from steerboard.platform.http.errors import Conflict, NotFound
from steerboard.platform.names import check_name, find
from steerboard.platform.security.safe_http import check_url, refuse_private
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard_contracts.errors import BadInput, ErrorLocation

# Each ending of a run writes a row for each of them.
MOST_RULES = 50
TEST_EVENT = "test"
_CHANNELS = {"webhook": "webhook", "slack": "Slack", "email": "e-mail"}


def rules_of(session: Session, project: Project) -> list[NoticeRule]:
    """The rules by name."""
    return list(
        session.scalars(select(NoticeRule).where(NoticeRule.project_id == project.id).order_by(NoticeRule.name))
    )


def get_notice_rule(session: Session, project: Project, ref: str) -> NoticeRule:
    """The rule by id or name. Raises `NotFound`, also for another project's."""
    rule = find(
        session, select(NoticeRule).where(NoticeRule.project_id == project.id), NoticeRule.id, NoticeRule.name, ref
    )
    if rule is None:
        raise NotFound(f"there is no notice rule {ref!r}")
    return rule


def create(
    session: Session, settings: Settings, secrets: Secrets, project: Project, given: NoticeRuleCreate
) -> tuple[NoticeRule, str | None]:
    """The rule, and the signing secret of a webhook. Raises `BadInput` (`invalid_name`, `notice_rule_mismatch`),
    `BadUrl`, `AddressRefused`, `NameTaken`, `Conflict`."""
    check_name(given.name)
    if session.scalar(select(NoticeRule.id).where(NoticeRule.project_id == project.id, NoticeRule.name == given.name)):
        raise NameTaken(f"there is already a notice rule {given.name!r}", hint="Choose another name.")
    count = select(func.count()).select_from(NoticeRule).where(NoticeRule.project_id == project.id)
    if (session.scalar(count) or 0) >= MOST_RULES:
        raise Conflict(
            f"a project has at most {MOST_RULES} notice rules",
            code="too_many_notice_rules",
            hint="Delete another first.",
        )
    secret = new_secret() if given.channel == "webhook" else None
    rule = NoticeRule(
        project_id=project.id,
        name=given.name,
        channel=given.channel,
        url=None,
        recipients=[],
        events=list(given.events),
        schedule=given.schedule.model_dump(mode="json"),
        secret_sealed=secrets.seal(secret) if secret else None,
        active=True,
    )
    receiver = {"url": given.url, "recipients": given.recipients or None}
    needed = "recipients" if given.channel == "email" else "url"
    if receiver[needed] is None:
        raise _mismatch(f"a rule by {_CHANNELS[given.channel]} needs `{needed}`", needed)
    _direct(settings, secrets, rule, given.url, given.recipients or None, given.schedule)
    session.add(rule)
    session.flush()
    session.refresh(rule)
    return rule, secret


def change(session: Session, settings: Settings, secrets: Secrets, rule: NoticeRule, given: NoticeRuleChange) -> None:
    """Changes only what was given. Raises `BadUrl`, `AddressRefused`, `BadInput` (`notice_rule_mismatch`),
    `Conflict`."""
    _direct(settings, secrets, rule, given.url, given.recipients, given.schedule)
    if given.events is not None:
        rule.events = list(given.events)
    if given.active is not None:
        rule.active = given.active
    if given.schedule is not None:
        rule.schedule = given.schedule.model_dump(mode="json")
        waiting = NoticeDelivery.state == "pending", NoticeDelivery.attempt == 0
        at = outbox.due_at(session, given.schedule) or func.clock_timestamp()
        session.execute(
            update(NoticeDelivery).where(NoticeDelivery.rule_id == rule.id, *waiting).values(next_attempt_at=at)
        )
    session.flush()


def _direct(
    settings: Settings,
    secrets: Secrets,
    rule: NoticeRule,
    url: str | None,
    recipients: list[str] | None,
    schedule: Schedule | None,
) -> None:
    """Set where a rule's notices go, as far as it is given."""
    name = _CHANNELS[rule.channel]
    if schedule is not None and not schedule.is_plain and rule.channel == "webhook":
        raise _mismatch(
            "a webhook is sent each event when it happens; digests and quiet hours are for people", "schedule"
        )
    if recipients is not None and rule.channel != "email":
        raise _mismatch(f"a rule by {name} has no recipients; it goes to its `url`", "recipients")
    if url is not None and rule.channel == "email":
        raise _mismatch("a rule by e-mail has no URL; it goes to its `recipients`", "url")
    if recipients is not None:
        if not recipients:
            raise _mismatch("a rule by e-mail needs a recipient", "recipients")
        if not mail.is_set_up(settings):
            raise Conflict(
                "this server sends no e-mail",
                code="mail_not_set_up",
                hint="Its operator sets STEERBOARD_SMTP_HOST and STEERBOARD_MAIL_FROM.",
            )
        rule.recipients = list(dict.fromkeys(recipients))
    if url is not None:
        url = check_url(url)
        refuse_private(settings, url)
        if rule.channel == "slack":
            rule.secret_sealed = secrets.seal(url)
        rule.url = f"{httpx.URL(url).copy_with(raw_path=b'/')}…" if rule.channel == "slack" else url


def _mismatch(detail: str, field: str) -> BadInput:
    return BadInput(
        detail, code="notice_rule_mismatch", errors=[ErrorLocation(location=field, message="does not fit the channel")]
    )


def remove(session: Session, rule: NoticeRule) -> None:
    """Remove a rule with all of its deliveries."""
    session.execute(delete(NoticeRule).where(NoticeRule.id == rule.id))


def last_deliveries(session: Session, rules: Sequence[NoticeRule]) -> dict[uuid.UUID, NoticeDelivery]:
    """The newest of each rule that has one."""
    query = (
        select(NoticeDelivery)
        .ext(distinct_on(NoticeDelivery.rule_id))
        .where(NoticeDelivery.rule_id.in_([rule.id for rule in rules]))
        .order_by(NoticeDelivery.rule_id, NoticeDelivery.id.desc())
    )
    return {delivery.rule_id: delivery for delivery in session.scalars(query)}


def deliveries_of(rule: NoticeRule) -> Select[NoticeDelivery]:
    return select(NoticeDelivery).where(NoticeDelivery.rule_id == rule.id)


def make_test(session: Session, project: Project, rule: NoticeRule) -> Claimed:
    """A `test` delivery, leased to the caller, who sends it now. It is tried once."""
    delivery = outbox.delivery(
        rule,
        TEST_EVENT,
        {
            "id": str(rule.id),
            "name": rule.name,
            "project": project.name,
            "state": None,
            "reason": "someone tests this notice rule",
            "url": outbox.link(project),
        },
    )
    delivery.tries_left = 1
    session.add(delivery)
    session.flush()
    return grant(session, [delivery], rule)


def redeliver(session: Session, rule: NoticeRule, id_: uuid.UUID) -> NoticeDelivery:
    """Send a delivery again, with the same id and all tries. Raises `NotFound`, `Conflict` (`notice_rule_inactive`)."""
    delivery = session.scalar(
        deliveries_of(rule).where(NoticeDelivery.id == id_).with_for_update().execution_options(populate_existing=True)
    )
    if delivery is None:
        raise NotFound(f"notice rule {rule.name!r} has no delivery {id_}")
    if not rule.active:
        raise Conflict(
            f"notice rule {rule.name!r} is not active",
            code="notice_rule_inactive",
            hint="Make it active, then try again.",
        )
    delivery.state, delivery.tries_left, delivery.delivered_at = "pending", outbox.TRIES, None
    delivery.next_attempt_at = func.clock_timestamp()
    session.flush()
    session.refresh(delivery)
    return delivery
