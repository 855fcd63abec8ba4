"""A chart of a frozen page as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from steerboard.sharing.frozen import Chart, Line

COLOURS = 8
_WIDTH, _HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 8, 24


def svg_of(chart: Chart) -> str:
    """Lines on common axes, whose ends are written out. Colours are the classes `l0` to `l7`."""
    points = [point for line in chart.lines for point in line.points]
    steps, values = _span([step for step, _ in points]), _span([value for _, value in points])

    def at(step: float, value: float) -> str:
        x = _LEFT + (step - steps[0]) / (steps[1] - steps[0]) * (_WIDTH - _LEFT - _RIGHT)
        y = _HEIGHT - _BOTTOM - (value - values[0]) / (values[1] - values[0]) * (_HEIGHT - _TOP - _BOTTOM)
        return f"{x:.1f} {y:.1f}"

    paths = "".join(
        f'<path class="l{line.place % COLOURS}" stroke-linecap="round" d="M{" L".join(_drawn(line, at))}"/>'
        for line in chart.lines
        if line.points
    )
    bottom = _HEIGHT - _BOTTOM
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(chart.title)}">'
        f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{_WIDTH - _RIGHT}"/>{paths}'
        f'<text x="{_LEFT - 6}" y="{_TOP + 9}" text-anchor="end">{values[1]:.4g}</text>'
        f'<text x="{_LEFT - 6}" y="{bottom}" text-anchor="end">{values[0]:.4g}</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 8}">{steps[0]:.0f}</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 8}" text-anchor="end">step {steps[1]:.0f}</text></svg>'
    )


def _drawn(line: Line, at: Callable[[float, float], str]) -> list[str]:
    """A single point is drawn as the round end of a line that leads to itself."""
    drawn = [at(*point) for point in line.points]
    return drawn if len(drawn) > 1 else drawn * 2


def _span(numbers: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest; a little apart where they are equal."""
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
