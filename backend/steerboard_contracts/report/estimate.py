"""A figure of a report with its interval."""

from __future__ import annotations

from pydantic import BaseModel


class Estimate(BaseModel):
    """A figure with its 95% interval. `n`: what was counted (items, prompts or verdicts). Null where n is too small."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int
