"""How often a password may be guessed: failures in the last minutes, by user name and by address.

An attempt is noted before its password is checked, in a transaction of its own. So a failure, which rolls back the
request, stays noted, and attempts that arrive together are counted one after the other.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import ipaddress
import math

from sqlalchemy import delete, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session, sessionmaker

from steerboard.accounts.tables import SignInAttempt
from steerboard.platform.database import transaction
from steerboard.platform.errors import TooManyAttempts

WINDOW = dt.timedelta(minutes=15)
FAILURES_OF_A_NAME = 10
FAILURES_OF_AN_ADDRESS = 50


def begin(sessions: sessionmaker[Session], name: str, address: str) -> None:
    """Note an attempt. Raises `TooManyAttempts`, which says how long to wait and is not counted itself."""
    with transaction(sessions) as session:
        keys = sorted(_lock_key(kind, value) for kind, value in (("name", name), ("address", address)))
        for key in keys:
            session.execute(select(func.pg_advisory_xact_lock(key)))
        wait = max(
            _wait(session, SignInAttempt.user_name, name, FAILURES_OF_A_NAME),
            _wait(session, SignInAttempt.address, address, FAILURES_OF_AN_ADDRESS),
        )
        if wait > 0:
            raise TooManyAttempts(
                f"Too many attempts with a wrong password. Try again in {_in_words(wait)}.",
                hint="The header Retry-After has the seconds. A sign-in link works meanwhile.",
                extra={"retry_after_seconds": wait},
            )
        session.add(SignInAttempt(user_name=name, address=address))


def forgive(session: Session, name: str, address: str) -> None:
    """The password was right: only failures count. Those of the name from other addresses stay."""
    session.execute(
        delete(SignInAttempt).where(SignInAttempt.user_name == name, SignInAttempt.address == address),
        execution_options={"synchronize_session": False},
    )


def forget_old(session: Session) -> None:
    session.execute(delete(SignInAttempt).where(SignInAttempt.created_at < func.clock_timestamp() - WINDOW))


def counted_address(host: str | None) -> str:
    """An IPv6 address stands for its /64, which one person has whole."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return host or "unknown"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(getattr(address, "ipv4_mapped", None) or address)


def _wait(session: Session, column: InstrumentedAttribute[str], value: str, limit: int) -> int:
    """Whole seconds until fewer than `limit` failures are younger than the window."""
    now = func.clock_timestamp()
    age = select(now - SignInAttempt.created_at).where(column == value, SignInAttempt.created_at > now - WINDOW)
    oldest = session.scalar(age.order_by(SignInAttempt.created_at.desc()).offset(limit - 1).limit(1))
    return 0 if oldest is None else max(1, math.ceil((WINDOW - oldest).total_seconds()))


def _in_words(seconds: int) -> str:
    minutes = math.ceil(seconds / 60)
    return f"{seconds} seconds" if seconds < 60 else f"{minutes} minute{'s' if minutes > 1 else ''}"


def _lock_key(kind: str, value: str) -> int:
    digest = hashlib.sha256(f"sign-in {kind}\x00{value}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
