"""What a recipe's report reports of how its policies were trained."""

from __future__ import annotations

from collections.abc import Iterable

from steerboard_contracts.report.sections.entrants import EntrantRow


def training_lines(entrants: Iterable[EntrantRow]) -> list[str]:
    """A model that is asked for several scores is one policy."""
    policies = {row.model: row for row in entrants if row.model is not None}
    lines = []
    for name, row in policies.items():
        if row.kept is not None:
            lines.append(f"{name} has the weights that were the {row.kept}.")
        if row.condition_gain is not None:
            lines.append(f"{name}: {_gain(row)}.")
    return lines


def _gain(row: EntrantRow) -> str:
    gain = row.condition_gain
    assert gain is not None
    words = f"held-out answers gain {gain.value:.3g} nats by their own condition over another row's"
    if gain.low is not None and gain.high is not None:
        words += f", 95% interval {gain.low:.3g} to {gain.high:.3g}"
    return words + ("" if row.condition_gain_step is None else f", at step {row.condition_gain_step:,}")
