"""Members of a project whom a comment names with an @."""

from __future__ import annotations

import re
import uuid

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access
from steerboard.accounts.tables import Membership, User
from steerboard.marks import hooks

# No address of e-mail, where the @ follows a letter.
_NAME = re.compile(r"(?<![\w@.])@([A-Za-z0-9][A-Za-z0-9._-]{0,127})")


def named_in(session: Session, access: Access, text: str) -> list[str]:
    """The members of the project among the names, each once; others are only text. A full stop may end a sentence."""
    words = {word for match in _NAME.findall(text) for word in (match, match.rstrip(".-_"))}
    if not words:
        return []
    members = (
        select(User.name)
        .join(Membership, Membership.user_id == User.id)
        .where(Membership.project_id == access.project.id, User.name.in_(words))
        .order_by(User.name)
    )
    return list(session.scalars(members))


def tell(
    session: Session, access: Access, comment_id: uuid.UUID, about: str, path: str, text: str, before: str = ""
) -> None:
    """A notice of those whom the text names and `before`, the text that it replaces, did not."""
    known = set(named_in(session, access, before)) if before else set()
    names = [name for name in named_in(session, access, text) if name not in known]
    if names:
        hooks.mentioned(
            session,
            hooks.Mention(
                project_id=access.project.id,
                comment_id=comment_id,
                about=about,
                path=path,
                author=access.actor.removeprefix("user:"),
                names=names,
                text=text,
            ),
        )
