"""What each role allows: the one table that the API enforces and that sessions send to the dashboard."""

from __future__ import annotations

from typing import Literal

# `rank` and `review` are for people alone: to see the project itself, and to annotate the answers that it asks about,
# or to decide where annotators disagree.
TokenScope = Literal["read", "write", "run", "admin"]
Scope = Literal[TokenScope, "rank", "review"]
Role = Literal["owner", "engineer", "reviewer", "annotator", "viewer"]

# The person whom the first start makes, before there can be any other. The operator signs in as them.
OPERATOR = "owner"
# The project that it makes.
DEFAULT_PROJECT = "default"
EVERYTHING: frozenset[Scope] = frozenset(("read", "write", "run", "rank", "review", "admin"))
_ALLOWS: dict[str, frozenset[Scope]] = {
    "owner": EVERYTHING,
    "engineer": frozenset(("read", "write", "run", "rank", "review")),
    "reviewer": frozenset(("rank", "review")),
    "annotator": frozenset(("rank",)),
    "viewer": frozenset(("read",)),
}


def allowed(role: str | None) -> frozenset[Scope]:
    """The scopes in the project of the role; none without one."""
    return _ALLOWS.get(role or "", frozenset())


def allowed_outside(roles: list[str]) -> frozenset[Scope]:
    """Outside of projects, by the roles in all of them: who owns one does everything, who reads one reads."""
    if "owner" in roles:
        return EVERYTHING
    return frozenset(scope for role in roles for scope in allowed(role) if scope == "read")
