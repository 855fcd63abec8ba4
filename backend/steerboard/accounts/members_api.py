"""Members of a project over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, Query

from steerboard.accounts import members, service
from steerboard.accounts.access import Access, AccessTo, Db, SignedIn, audit
from steerboard.accounts.http.routes import Router
from steerboard.accounts.schemas import MemberAdd, MemberAdded, MemberChange, MemberOut, SignInLinkOut
from steerboard.accounts.tables import Membership
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, paginate

router = Router(prefix="/members", tags=["members"])

Reader = Annotated[Access, Depends(AccessTo("read"))]
Owner = Annotated[Access, Depends(AccessTo("admin"))]


@router.get("", responses=problems(404))
def list_members(
    session: Db, access: Reader, cursor: str | None = None, limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> Page[MemberOut]:
    """The members, in the order in which their accounts were created."""

    def convert(page: Sequence[Membership]) -> list[MemberOut]:
        names = members.names_of(session, list(page))
        return [_member(names[member.user_id], member) for member in page]

    return paginate(
        session,
        members.members_of(access.project),
        Membership.user_id,
        lambda member: convert([member])[0],
        cursor=cursor,
        limit=limit,
        newest_first=False,
        convert_all=convert,
    )


@router.post("", status_code=201, responses=problems(404, 409))
def add_member(body: MemberAdd, session: Db, access: Owner) -> MemberAdded:
    """Add a member. An unknown name becomes an account, with a sign-in link that only this response shows."""
    member, user, created = members.add(session, access.project, body.user, body.role, body.email)
    link = None
    if created:
        code, expires_at = service.create_sign_in_link(session, user.id, members.INVITATION_LIFE)
        link = SignInLinkOut(path=f"/sign-in/{code}", expires_at=expires_at)
    audit(session, access, "member.add", f"user {user.name}", {"role": member.role, "new_account": created})
    return MemberAdded(**_member(user.name, member).model_dump(), sign_in=link)


@router.patch("/{user}", responses=problems(404, 409))
def change_member(user: str, body: MemberChange, session: Db, access: Owner) -> MemberOut:
    """Change a member's role from the next request on. Tokens that exceed it are revoked. The last owner stays one.
    Groups of the OpenID provider do not change it any more."""
    member, before, ended = members.change_role(session, access.project, user, body.role)
    member.by_groups = False  # an owner's decision stays
    audit(session, access, "member.change", f"user {user}", {"from": before, "to": member.role} | _tokens(ended))
    return _member(user, member)


@router.delete("/{user}", status_code=204, responses=problems(404, 409))
def remove_member(user: str, session: Db, access: Owner) -> None:
    """Remove a member. They have no access from the next request on; their tokens and shared links are revoked."""
    removed = members.remove(session, access.project, user)
    links = {"links_ended": removed.links} if removed.links else {}
    audit(session, access, "member.remove", f"user {user}", {"role": removed.role} | _tokens(removed.tokens) | links)


@router.post("/{user}/sign-in-link", status_code=201, responses=problems(404))
def create_member_link(user: str, session: Db, access: Owner, caller: SignedIn) -> SignInLinkOut:
    """Create a sign-in link for a member who cannot sign in. Their password is removed, and all of their sessions
    end."""
    code, expires_at = members.new_link(session, caller, access.project, user)
    audit(session, access, "sign_in_link.create", f"user {user}")
    return SignInLinkOut(path=f"/sign-in/{code}", expires_at=expires_at)


def _tokens(ended: list[str]) -> dict[str, Any]:
    return {"tokens_ended": ended} if ended else {}


def _member(name: str, member: Membership) -> MemberOut:
    about = {"role": member.role, "by_groups": member.by_groups, "added_at": member.created_at}
    return MemberOut.model_validate({"user": name, **about})
