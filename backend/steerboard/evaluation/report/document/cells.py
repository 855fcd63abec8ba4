"""Figures as cells of a table."""

from __future__ import annotations

from steerboard.evaluation.report.document.blocks import Cell
from steerboard_contracts.report.estimate import Estimate

NONE = "–"


def figure(found: Estimate | None, *, share: bool = False, digits: int = 2) -> Cell:
    """With its interval and its n below it; `share`: in percent."""
    if found is None or found.value is None:
        return Cell(NONE, f"n = {found.n}" if found is not None else "")

    def said(x: float) -> str:
        return f"{x:.1%}" if share else f"{x:,.{digits}f}"

    ends = f"[{said(found.low)}, {said(found.high)}] " if found.low is not None and found.high is not None else ""
    return Cell(said(found.value), f"{ends}n = {found.n}")


def interval(found: Estimate) -> str:
    """`0.50 [0.21, 0.80]`."""
    cell = figure(found)
    ends = cell.detail.partition("n = ")[0].strip()
    return f"{cell.text} {ends}".strip()


def p_value(p: float | None) -> str:
    """Never 0."""
    if p is None:
        return NONE
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
