"""Links to a report over HTTP, made and revoked by those who may write."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import Depends

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.evaluation.lookup import get_evaluation
from steerboard.platform.http.errors import problems
from steerboard.sharing import links
from steerboard.sharing.schemas import ShareLinkCreate, ShareLinkCreated, ShareLinkOut

router = Router(prefix="/evaluations/{evaluation}/report-links", tags=["evaluations"])

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]


@router.get("", responses=problems(404))
def list_report_links(evaluation: str, session: Db, access: Read) -> list[ShareLinkOut]:
    """The links that work, the newest first."""
    stored = get_evaluation(session, access.project, evaluation)
    shared = links.links_of(session, access.project, evaluation_id=stored.id)
    return [ShareLinkOut.model_validate(link) for link in shared]


@router.post("", status_code=201, responses=problems(404, 409))
def create_report_link(evaluation: str, body: ShareLinkCreate, session: Db, access: Write) -> ShareLinkCreated:
    """Everyone who has the link can read the report, without an account. Its address is in this answer and never
    again. While a campaign is not closed, the report that it shows has letters for entrants."""
    stored = get_evaluation(session, access.project, evaluation)
    return links.create_report_link(session, access, stored.id, stored.name, body.expires_in_days)


@router.delete("/{link}", status_code=204, responses=problems(404))
def revoke_report_link(evaluation: str, link: uuid.UUID, session: Db, access: Write) -> None:
    """It stops working with this answer."""
    links.revoke(session, access, link, get_evaluation(session, access.project, evaluation).id)
