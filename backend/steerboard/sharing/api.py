"""Every link of a project over HTTP, whatever it shows: who may write sees and revokes them."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import Depends, Query

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.platform.http.errors import problems
from steerboard.sharing import links
from steerboard.sharing.schemas import ShareKind, ShareLinkOut

router = Router(prefix="/share-links", tags=["projects"])


@router.get("", responses=problems(404, 422))
def list_share_links(
    session: Db,
    access: Annotated[Access, Depends(AccessTo("read"))],
    kind: Annotated[ShareKind | None, Query(description="Only links that show this.")] = None,
) -> list[ShareLinkOut]:
    """The links that work, the newest first."""
    return [ShareLinkOut.model_validate(link) for link in links.links_of(session, access.project, kind)]


@router.delete("/{link}", status_code=204, responses=problems(404))
def revoke_share_link(link: uuid.UUID, session: Db, access: Annotated[Access, Depends(AccessTo("write"))]) -> None:
    """It stops working with this answer."""
    links.revoke(session, access, link)
