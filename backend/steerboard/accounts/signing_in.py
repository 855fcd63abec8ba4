"""Signing in with a password, and setting your own."""

from __future__ import annotations

import uuid

from sqlalchemy import delete, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import attempts, passwords
from steerboard.accounts.tables import AuditEntry, BrowserSession, SignInLink, User
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import Forbidden, Unauthenticated

NOBODY = "nobody"
"""The actor where it is not known who acts."""


def check_password(
    session: Session, sessions: sessionmaker[Session], *, name: str, password: str, address: str
) -> User:
    """The person of this name and password. An unknown name, a wrong password and a person without one look alike.

    `sessions` counts the attempt and notes its failure.
    Raises `Unauthenticated` (`wrong_credentials`), `TooManyAttempts`.
    """
    attempts.begin(sessions, name, address)
    # Locked, so that a password that changes meanwhile also ends the session that follows.
    user = session.scalar(select(User).where(User.name == name).with_for_update(read=True))
    if not passwords.matches(user.password_hash if user else None, password) or user is None:
        _note_failure(sessions, user, address)
        raise Unauthenticated(
            "There is no such user with this password.",
            code="wrong_credentials",
            hint="Without a password, ask an owner of your project for a sign-in link.",
        )
    attempts.forgive(session, name, address)
    return user


def _note_failure(sessions: sessionmaker[Session], user: User | None, address: str) -> None:
    """Note it in a transaction of its own: the request's rolls back. The attempts' limit also bounds these entries.

    An unknown name is not kept, since people also type passwords there.
    """
    target = f"user {user.name}" if user else "an unknown user"
    with transaction(sessions) as session:
        session.add(AuditEntry(actor=NOBODY, action="session.refuse", target=target, detail={"address": address}))


def set_password(
    session: Session,
    sessions: sessionmaker[Session],
    user_id: uuid.UUID,
    *,
    current: str | None,
    new: str,
    keep: BrowserSession,
) -> User:
    """Every session of the person but `keep` ends, and so do unused links. Raises `Forbidden`, `TooManyAttempts`."""
    user = session.get_one(User, user_id)
    # Attempts count for this session alone, so that guesses from elsewhere do not lock its user out.
    place = f"session {keep.session_hash[:16]}"
    if user.password_hash is not None:
        attempts.begin(sessions, user.name, place, signed_in=True)
    # Locked only after the attempt is counted, so that one request never waits for itself.
    session.refresh(user, with_for_update={"key_share": True})
    if user.password_hash is not None:
        if not passwords.matches(user.password_hash, current or ""):
            raise Forbidden(
                "`current` is not your current password.",
                code="wrong_password",
                hint="If you forgot it, ask an owner of your project for a new sign-in link.",
            )
        attempts.forgive(session, user.name, place)
    user.password_hash = passwords.hashed(new)
    end_access(session, user.id, keep=keep)
    return user


def forget_password(session: Session, user: User) -> None:
    """The person is out until they use a new link."""
    user.password_hash = None
    end_access(session, user.id)


def end_access(session: Session, user_id: uuid.UUID, keep: BrowserSession | None = None) -> None:
    """All links, then all sessions: a link that is just being used has its session when the second step looks."""
    session.flush()
    session.execute(delete(SignInLink).where(SignInLink.user_id == user_id))
    ended = delete(BrowserSession).where(BrowserSession.user_id == user_id)
    if keep is not None:
        ended = ended.where(BrowserSession.session_hash != keep.session_hash)
    session.execute(ended)
