"""How often a password may be guessed: failures of a name from an address, from an address, and of a name.

The first two count the last minutes. A name is also guessed from many addresses, so its failures from all of them are
counted over a longer time; that limit does not hold where the person has signed in before. So no one locks another out.

An attempt is noted before its password is checked, in a transaction of its own. So a failure, which rolls back the
request, stays noted, and attempts that arrive together are counted one after the other. `limits` cannot count in
Postgres, and Redis may lose what it has.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import ipaddress
import math
import uuid

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import KnownAddress, SignInAttempt, User
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import TooManyAttempts

WINDOW = dt.timedelta(minutes=15)
FAILURES_OF_A_NAME_FROM_AN_ADDRESS = 10
FAILURES_FROM_AN_ADDRESS = 50
NAME_WINDOW = dt.timedelta(hours=1)
FAILURES_OF_A_NAME = 100
KNOWN_FOR = dt.timedelta(days=90)


def begin(sessions: sessionmaker[Session], name: str, address: str, *, signed_in: bool = False) -> None:
    """Note an attempt. Raises `TooManyAttempts`, which has the time to wait and is not counted itself.

    `signed_in`: by someone whom a session shows to be this person, at `address`, whatever that is.
    """
    of_name, from_address = SignInAttempt.user_name == name, SignInAttempt.address == address
    with transaction(sessions) as session:
        keys = sorted(_lock_key(kind, value) for kind, value in (("name", name), ("address", address)))
        for key in keys:
            session.execute(select(func.pg_advisory_xact_lock(key)))
        wait = max(
            _wait(session, of_name & from_address, FAILURES_OF_A_NAME_FROM_AN_ADDRESS, WINDOW),
            _wait(session, from_address, FAILURES_FROM_AN_ADDRESS, WINDOW),
        )
        if not (signed_in or _is_known(session, name, address)):
            wait = max(wait, _wait(session, of_name, FAILURES_OF_A_NAME, NAME_WINDOW))
        if wait > 0:
            raise TooManyAttempts(
                f"Too many attempts with a wrong password. Try again in {_in_words(wait)}.",
                hint="Wait for the number of seconds in the Retry-After header. A sign-in link works meanwhile.",
                extra={"retry_after_seconds": wait},
            )
        session.add(SignInAttempt(user_name=name, address=address))


def forgive(session: Session, name: str, address: str) -> None:
    """The password was right: only failures count. Those of the name from other addresses stay."""
    session.execute(
        delete(SignInAttempt).where(SignInAttempt.user_name == name, SignInAttempt.address == address),
        execution_options={"synchronize_session": False},
    )


def remember(session: Session, user_id: uuid.UUID, address: str) -> None:
    """The person has just signed in from there."""
    now = func.clock_timestamp()
    seen = insert(KnownAddress).values(user_id=user_id, address=address, seen_at=now)
    session.execute(seen.on_conflict_do_update(index_elements=["user_id", "address"], set_={"seen_at": now}))


def forget_old(session: Session) -> None:
    now = func.clock_timestamp()
    session.execute(delete(SignInAttempt).where(SignInAttempt.created_at < now - NAME_WINDOW))
    session.execute(delete(KnownAddress).where(KnownAddress.seen_at < now - KNOWN_FOR))


def counted_address(host: str | None) -> str:
    """An IPv6 address counts as its /64, which one person has whole."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return host or "unknown"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(getattr(address, "ipv4_mapped", None) or address)


def _wait(session: Session, which: ColumnElement[bool], limit: int, window: dt.timedelta) -> int:
    """Whole seconds until fewer than `limit` of these failures are younger than the window."""
    now = func.clock_timestamp()
    age = select(now - SignInAttempt.created_at).where(which, SignInAttempt.created_at > now - window)
    oldest = session.scalar(age.order_by(SignInAttempt.created_at.desc()).offset(limit - 1).limit(1))
    return 0 if oldest is None else max(1, math.ceil((window - oldest).total_seconds()))


def _is_known(session: Session, name: str, address: str) -> bool:
    seen = select(KnownAddress.user_id).join(User, User.id == KnownAddress.user_id)
    return session.scalar(seen.where(User.name == name, KnownAddress.address == address)) is not None


def _in_words(seconds: int) -> str:
    minutes = math.ceil(seconds / 60)
    return f"{seconds} seconds" if seconds < 60 else f"{minutes} minute{'s' if minutes > 1 else ''}"


def _lock_key(kind: str, value: str) -> int:
    digest = hashlib.sha256(f"sign-in {kind}\x00{value}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
