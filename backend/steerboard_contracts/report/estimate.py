"""A figure of a report with its interval."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import BaseModel


class Estimate(BaseModel):
    """A figure with its 95% interval. `n`: what was counted (items, prompts or verdicts). Null where n is too small."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int

    def in_words(self, shown: Callable[[float], str], unit: str = "", none: str = "") -> str:
        """`0.62 [0.51, 0.72]`; `none` where there is no value."""
        return none if self.value is None else f"{shown(self.value)}{unit}{self.ends(shown)}"

    def ends(self, shown: Callable[[float], str]) -> str:
        """` [0.51, 0.72]`, or nothing where there is no interval."""
        return "" if self.low is None or self.high is None else f" [{shown(self.low)}, {shown(self.high)}]"
