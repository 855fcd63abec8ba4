"""Items of a benchmark that are won or lost, over all and by where they are from."""

from __future__ import annotations

import hashlib
import heapq
import json

from steerboard_contracts.report.benchmark import BenchmarkItems, SourceAccuracy
from steerboard_statistics.proportions import proportion_interval

# Limits for a dataset whose sources are as many as its rows, and as long as they like.
MOST_SOURCES = 100
LONGEST_NAME = 200
# More items hardly narrow the interval of a difference, and each is kept with the result.
MOST_ITEMS = 10_000
_HASH, _DIGEST = 16, 32


class WinCounts:
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
        self.every = WinCounts()
        self._sources: dict[str | None, WinCounts] = {}
        self._items: dict[str, tuple[float, str | None]] = {}

    def add(self, source: str | None, won: float, tied: bool, item: str | None = None) -> None:
        """`item`: as from `item_hash`, None for one that is not compared with another model's."""
        self.every.add(won, tied)
        self._sources.setdefault(source, WinCounts()).add(won, tied)
        if item is not None:
            self._items[item] = (won, source)

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

    def items(self) -> BenchmarkItems | None:
        """Returns None where no item has a hash."""
        if not self._items:
            return None
        listed = self._ordered()[:MOST_SOURCES]
        places = {source: place for place, (source, _) in enumerate(listed)}
        kept = heapq.nsmallest(MOST_ITEMS, self._items)
        return BenchmarkItems(
            n=len(self._items),
            digest=_digest("".join(sorted(self._items)), _DIGEST),
            hashes=kept,
            right=[self._items[item][0] for item in kept],
            sources=[places.get(self._items[item][1], -1) for item in kept],
        )

    def shares(self) -> dict[str, float]:
        """The share of the items that is won, by source that is named."""
        return {source: of.won / of.n for source, of in self._ordered() if source is not None}

    def _ordered(self) -> list[tuple[str | None, WinCounts]]:
        if all(source is None for source in self._sources):
            return []
        return sorted(self._sources.items(), key=lambda item: (-item[1].n, item[0] is None, item[0] or ""))


def item_hash(*parts: object) -> str:
    """The identity of an item with these parts, which are JSON: its source, prompt and answers."""
    return _digest(json.dumps(parts, sort_keys=True), _HASH)


def shown(name: str) -> str:
    """A source's name, cut where it is long."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def _digest(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
