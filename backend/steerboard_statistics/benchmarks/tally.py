"""Items of a benchmark that are won or lost, over all and by where they are from."""

from __future__ import annotations

from steerboard_contracts.report.benchmark import SourceAccuracy
from steerboard_statistics.proportions import proportion_interval

# Limits for a dataset whose sources are as many as its rows, and as long as they like.
MOST_SOURCES = 100
LONGEST_NAME = 200


class Tally:
    """Counts of some items; `won` may have parts of one."""

    __slots__ = ("n", "ties", "won")

    def __init__(self) -> None:
        self.n = self.ties = 0
        self.won = 0.0

    def add(self, won: float, tied: bool) -> None:
        self.n += 1
        self.won += won
        self.ties += tied


class BySource:
    """The counts of all items, and of those of each source."""

    def __init__(self) -> None:
        self.every = Tally()
        self._sources: dict[str | None, Tally] = {}

    def add(self, source: str | None, won: float, tied: bool) -> None:
        self.every.add(won, tied)
        self._sources.setdefault(source, Tally()).add(won, tied)

    def rows(self) -> list[SourceAccuracy]:
        """The largest first, at most `MOST_SOURCES`; none where no item names a source."""
        return [
            SourceAccuracy(
                source=None if source is None else shown(source),
                accuracy=proportion_interval(of.won, of.n),
                ties=of.ties,
            )
            for source, of in self._ordered()[:MOST_SOURCES]
        ]

    def more(self) -> int:
        """Sources that are not in `rows`."""
        return max(0, len(self._ordered()) - MOST_SOURCES)

    def shares(self) -> dict[str, float]:
        """By source that is named, the share of its items that is won."""
        return {source: of.won / of.n for source, of in self._ordered() if source is not None}

    def _ordered(self) -> list[tuple[str | None, Tally]]:
        if all(source is None for source in self._sources):
            return []
        return sorted(self._sources.items(), key=lambda one: (-one[1].n, one[0] is None, one[0] or ""))


def shown(name: str) -> str:
    """A source's name, cut where it is long."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
