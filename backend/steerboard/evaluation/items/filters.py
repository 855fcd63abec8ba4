"""What the items of an evaluation are filtered and sorted by."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from steerboard.evaluation.items.schemas import Length, Order, Outcome
from steerboard.platform.http.errors import InvalidRequest
from steerboard_contracts.errors import ErrorLocation


class ItemFilters:
    """A dependency. Raises `InvalidRequest` (`incomplete_filter`) where one filter needs another."""

    def __init__(
        self,
        a: Annotated[str | None, Query(max_length=200, description="Entrant whose outcomes are listed.")] = None,
        b: Annotated[str | None, Query(max_length=200, description="The other entrant; any by default.")] = None,
        source: Annotated[
            str | None,
            Query(
                max_length=400,
                description="Who compares: `human:CAMPAIGN`, `human:CAMPAIGN: CRITERION`, `judge:NAME`, `jury:NAME` or "
                "`reward:NAME`. Items on which it compares nothing are left out.",
            ),
        ] = None,
        other: Annotated[
            str | None, Query(max_length=400, description="With `outcome=disagree`: the source to disagree with.")
        ] = None,
        outcome: Annotated[
            Outcome | None,
            Query(
                description="`win`, `tie` and `loss` of `a` by the source; `disagree`: two sources prefer different "
                "answers; `flip`: a judge's two orders differ."
            ),
        ] = None,
        category: Annotated[str | None, Query(max_length=1000)] = None,
        length: Annotated[
            Length | None,
            Query(
                description="Characters of the answer of `a` against that of `b`; `similar`: neither has more than 1.5 "
                "times those of the other."
            ),
        ] = None,
        sort: Annotated[
            Order,
            Query(
                description="`score`: of `a` by the source, lowest first; `difference`: that score less the one of "
                "`b`; `-score` and `-difference`: highest first. Items without one come last."
            ),
        ] = "position",
    ) -> None:
        self.a, self.b, self.source, self.other = a, b, source, other
        self.outcome, self.category, self.length, self.sort = outcome, category, length, sort
        if b is not None and a is None:
            raise _incomplete("b", "a", "a rival needs the entrant that it is compared with")
        if a is not None and a == b:
            raise _incomplete("b", "b", f"{a!r} cannot be compared with itself")
        if length is not None and b is None:
            raise _incomplete("length", "a" if a is None else "b", "lengths of answers need two entrants")
        if outcome in ("win", "tie", "loss") and a is None:
            raise _incomplete("outcome", "a", f"a {outcome} needs an entrant")
        if outcome in ("win", "tie", "loss", "flip") and source is None:
            raise _incomplete("outcome", "source", f"a {outcome} needs a source")
        if sort != "position" and (a is None or source is None):
            raise _incomplete("sort", "a" if a is None else "source", "a score needs an entrant and a source")
        if sort.endswith("difference") and b is None:
            raise _incomplete("sort", "b", "a difference of scores needs two entrants")
        if other is not None and (source is None or outcome != "disagree"):
            raise _incomplete(
                "other",
                "source" if source is None else "outcome",
                "a second source needs a first one, and outcome=disagree",
            )

    @property
    def pair(self) -> tuple[str, str] | None:
        """Both entrants, if two were named."""
        return None if self.a is None or self.b is None else (self.a, self.b)


def _incomplete(given: str, needed: str, why: str) -> InvalidRequest:
    todo = f"name another `{needed}`" if given == needed else f"give `{needed}` too"
    return InvalidRequest(
        why,
        code="incomplete_filter",
        errors=[ErrorLocation(location=given, message=todo)],
        hint="GET items lists the sources; the evaluation lists its entrants.",
    )
