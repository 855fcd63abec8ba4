"""Figures as cells of a table."""

from __future__ import annotations

from steerboard.sharing.blocks import Cell
from steerboard_contracts.report.estimate import Estimate

NONE = "–"


def figure(estimate: Estimate | None, *, share: bool = False, digits: int = 2) -> Cell:
    """A figure with its interval and its n below it; `share`: in percent."""
    if estimate is None or estimate.value is None:
        return Cell(NONE, f"n = {estimate.n}" if estimate is not None else "")

    def shown(x: float) -> str:
        return f"{x:.1%}" if share else f"{x:,.{digits}f}"

    return Cell(shown(estimate.value), f"{estimate.ends(shown)} n = {estimate.n}".strip())


def interval(estimate: Estimate) -> str:
    """`0.50 [0.21, 0.80]`."""
    return estimate.in_words("{:,.2f}".format, none=NONE)


def p_value(p: float | None) -> str:
    """Never 0."""
    if p is None:
        return NONE
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
