"""What names a thing in a URL, a recipe or on the command line: its id, its name, or the end of its id. What is a
valid name."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection
from itertools import count
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator
from sqlalchemy import ColumnElement, Select, Text, cast, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from steerboard.platform.http.errors import Conflict
from steerboard_contracts.errors import BadInput, ErrorLocation

Row = TypeVar("Row")

# UUIDv7 ids of one moment begin alike; the 12 digits behind the last dash are random.
_ID_END = re.compile(r"[0-9a-fA-F]{6,12}")
_MOST_CANDIDATES = 10
# The most names of a project among which the nearest to a misspelled one is looked for.
MOST_SUGGESTED = 1000
# What of a name is left where a number follows: together they are at most 128 characters.
_BASE = 118


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


_ADDRESS = re.compile(r"[!#-'*+\-./0-9=?A-Z^-~]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")


def _address(given: str) -> str:
    if len(given) > 254 or not _ADDRESS.fullmatch(given):
        raise ValueError("this is no e-mail address, such as anna@example.com")
    return given


EmailAddress = Annotated[str, AfterValidator(_address)]


def check_name(name: str) -> str:
    """The name itself. Raises `BadInput` (`invalid_name`)."""
    if not NAME.fullmatch(name):
        raise BadInput(
            f"{name!r} cannot be a name",
            code="invalid_name",
            hint="Use letters, digits, '.', '_' and '-', starting with a letter or digit; at most 128 characters.",
        )
    return name


def valid_name(text: str) -> str:
    """The name that is nearest to what a file calls something: `bard:20230327` is bard-20230327."""
    if NAME.fullmatch(text):
        return text
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:128] or "imported"


class AmbiguousReference(Conflict):
    """Several ids end with what was given; `errors` lists them."""

    code = "ambiguous_reference"
    title = "The reference is ambiguous"


def as_id(ref: str | uuid.UUID) -> uuid.UUID | None:
    """The id that a reference is, if it is one."""
    if isinstance(ref, uuid.UUID):
        return ref
    try:
        return uuid.UUID(ref) if len(ref) == 36 else None
    except ValueError:
        return None


def find(
    session: Session,
    query: Select[Row],
    id_column: InstrumentedAttribute[uuid.UUID],
    name_column: InstrumentedAttribute[str] | None,
    ref: str | uuid.UUID,
) -> Row | None:
    """The row of `query` (one entity) with this id, with this name, or else the one whose id ends with `ref`.

    `query` keeps to what the caller may see. Raises `AmbiguousReference`.
    """
    id_, name = as_id(ref), str(ref)
    row = session.scalar(query.where(id_column == id_)) if id_ is not None else None
    if row is None and name_column is not None:
        row = session.scalar(query.where(name_column == name))
    return row if row is not None else find_by_id_end(session, query, id_column, name)


def find_by_id_end(
    session: Session, query: Select[Row], id_column: InstrumentedAttribute[uuid.UUID], ref: str
) -> Row | None:
    """The row of `query` whose id ends with 6 to 12 hex digits. Raises `AmbiguousReference`."""
    if not _ID_END.fullmatch(ref):
        return None
    ends_so = func.right(cast(id_column, Text), len(ref)) == ref.lower()
    rows = session.scalars(query.where(ends_so).order_by(id_column.desc()).limit(_MOST_CANDIDATES)).all()
    if len(rows) > 1:
        raise AmbiguousReference(
            f"`{ref}` is the end of {'at least ' if len(rows) == _MOST_CANDIDATES else ''}{len(rows)} ids",
            hint="Give more of the id, the whole id, or a name.",
            errors=[_candidate(row) for row in rows],
        )
    return rows[0] if rows else None


def _candidate(row: Any) -> ErrorLocation:
    made = getattr(row, "created_at", None)
    words = [getattr(row, "name", None) or type(row).__name__.lower(), made and f"made {made:%Y-%m-%d %H:%M}"]
    return ErrorLocation(location=str(row.id), message=", ".join(word for word in words if word))


def names_like(
    session: Session, column: InstrumentedAttribute[str], base: str, *where: ColumnElement[bool]
) -> set[str]:
    """The names that begin like `base`, of the rows of `where`."""
    return set(session.scalars(select(column).where(*where, column.startswith(base[:_BASE], autoescape=True))))


def free_name(base: str, taken: Collection[str]) -> str:
    """`base`, or else the first of base-2, base-3, ... that is not taken."""
    return base if base not in taken else next(n for k in count(2) if (n := f"{base[:_BASE]}-{k}") not in taken)


def next_name_of_all(
    session: Session, project: uuid.UUID, column: InstrumentedAttribute[str], base: str, *where: ColumnElement[bool]
) -> str:
    """`next_name` over the rows of `where`, chosen by one transaction of the project at a time: the others wait for its
    end, or two would choose the same number."""
    session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"{project}:{base}", 0))))
    return next_name(base, names_like(session, column, f"{base}-", *where))


def next_name(base: str, taken: Collection[str]) -> str:
    """`base-N`, with one more than the highest N that is taken: numbers of what was deleted do not come back early."""
    numbers = [tail for name in taken if (tail := name.removeprefix(f"{base}-")) != name]
    return f"{base}-{max((int(tail) for tail in numbers if re.fullmatch('[0-9]{1,9}', tail)), default=0) + 1}"
