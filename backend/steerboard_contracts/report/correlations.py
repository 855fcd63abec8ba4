"""How several rewards of the same answers go together."""

from __future__ import annotations

from pydantic import BaseModel

Matrix = list[list[float | None]]


class Correlations(BaseModel):
    """Pearson's r and Spearman's rho between every two of `names` over the same `n` answers; null where one is
    constant, or n below 2."""

    names: list[str]
    n: int
    pearson: Matrix
    spearman: Matrix
