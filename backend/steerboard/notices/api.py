"""Notice rules over HTTP: which events of a project are reported, by webhook, Slack or e-mail."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import Depends, Query, Request
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Db, audit, let_go
from steerboard.accounts.http.routes import Router, UnkeptRoute
from steerboard.notices import channels, delivery, service
from steerboard.notices.schemas import (
    DeliveryOut,
    DeliveryState,
    NoticeRuleChange,
    NoticeRuleCreate,
    NoticeRuleCreated,
    NoticeRuleOut,
)
from steerboard.notices.tables import NoticeDelivery, NoticeRule
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import NotFound, problems
from steerboard.platform.http.paging import Page, paginate

router = Router(prefix="/notice-rules", tags=["notices"])
_live = Router(route_class=UnkeptRoute)

Admin = Annotated[Access, Depends(AccessTo("admin"))]


@router.get("", responses=problems(404))
def list_notice_rules(session: Db, access: Admin) -> list[NoticeRuleOut]:
    """All of them, by name."""
    return _all_out(session, service.rules_of(session, access.project))


@router.post("", status_code=201, responses=problems(404, 409))
def create_notice_rule(request: Request, body: NoticeRuleCreate, session: Db, access: Admin) -> NoticeRuleCreated:
    """The secret of a webhook is shown in this answer and never again."""
    state = request.app.state
    made, secret = service.create(session, state.settings, state.secrets, access.project, body)
    audit(session, access, "notice_rule.create", f"notice rule {made.name} {made.id}", {"events": made.events})
    return NoticeRuleCreated(**_all_out(session, [made])[0].model_dump(), secret=secret)


@router.patch("/{rule}", responses=problems(404, 409))
def change_notice_rule(
    request: Request, rule: str, body: NoticeRuleChange, session: Db, access: Admin
) -> NoticeRuleOut:
    """Change the given fields only. The secret stays the same."""
    row = service.get_notice_rule(session, access.project, rule)
    state = request.app.state
    service.change(session, state.settings, state.secrets, row, body)
    # A URL may carry a token of its receiver, so the log records only that it changed.
    detail = {**body.model_dump(mode="json", exclude={"url"}, exclude_unset=True), "new_url": body.url is not None}
    audit(session, access, "notice_rule.change", f"notice rule {row.name} {row.id}", detail)
    return _all_out(session, [row])[0]


@router.delete("/{rule}", status_code=204, responses=problems(404))
def delete_notice_rule(rule: str, session: Db, access: Admin) -> None:
    """Delete a notice rule with all of its deliveries, including pending ones."""
    row = service.get_notice_rule(session, access.project, rule)
    service.remove(session, row)
    audit(session, access, "notice_rule.delete", f"notice rule {row.name} {row.id}")


@router.get("/{rule}/deliveries", responses=problems(404))
def list_deliveries(
    rule: str,
    session: Db,
    access: Admin,
    state: DeliveryState | None = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Page[DeliveryOut]:
    """The newest first. They are kept for a month."""
    query = service.deliveries_of(service.get_notice_rule(session, access.project, rule))
    if state:
        query = query.where(NoticeDelivery.state == state)
    return paginate(session, query, NoticeDelivery.id, DeliveryOut.model_validate, cursor=cursor, limit=limit)


@router.post("/{rule}/deliveries/{delivery}/redeliver", responses=problems(404, 409))
def redeliver_notice(rule: str, delivery: uuid.UUID, session: Db, access: Admin) -> DeliveryOut:
    """Send a delivery again within seconds, with the same id and ten tries, as at first."""
    row = service.get_notice_rule(session, access.project, rule)
    again = service.redeliver(session, row, delivery)
    audit(session, access, "notice_rule.redeliver", f"notice rule {row.name} {row.id}", {"delivery": str(delivery)})
    return DeliveryOut.model_validate(again)


@_live.post("/{rule}/test", responses=problems(404))
def test_notice_rule(request: Request, rule: str, session: Db, access: Admin) -> DeliveryOut:
    """Send an event `test` now, once, also by an inactive rule. A failure is an answer: `last_error` explains it."""
    state = request.app.state
    row = service.get_notice_rule(session, access.project, rule)
    claimed = service.make_test(session, access.project, row)
    audit(session, access, "notice_rule.test", f"notice rule {row.name} {row.id}")
    let_go(session)
    outcome = channels.send(state.settings, state.secrets, claimed.parcel)
    with transaction(state.sessions) as own:
        delivery.note(own, claimed, outcome)
        sent = own.get(NoticeDelivery, claimed.parcel.id)
        if sent is None:
            raise NotFound("the notice rule was deleted meanwhile")
        return DeliveryOut.model_validate(sent)


router.include_router(_live)


def _all_out(session: Session, rules: list[NoticeRule]) -> list[NoticeRuleOut]:
    last = service.last_deliveries(session, rules)
    return [
        NoticeRuleOut.model_validate(
            {
                "id": rule.id,
                "name": rule.name,
                "channel": rule.channel,
                "url": rule.url,
                "recipients": rule.recipients,
                "events": rule.events,
                "schedule": rule.schedule,
                "active": rule.active,
                "created_at": rule.created_at,
                "last_delivery": DeliveryOut.model_validate(last[rule.id]) if rule.id in last else None,
            }
        )
        for rule in rules
    ]
