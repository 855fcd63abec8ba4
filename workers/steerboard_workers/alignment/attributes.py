"""Attributes of labelled rows as a policy learns to be asked for them: SteerLM, arXiv 2310.05344, step 3."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from steerboard_contracts.conditions.format import Attribute
from steerboard_contracts.errors import BadInput

# Values that are not whole numbers are written in 100 to 1,000 steps.
_STEPS = 100
_MOST_DECIMALS = 6


def grade(row: Mapping[str, Any], name: str) -> float | None:
    """A row's value of an attribute; None where no one gave it one."""
    value = (row.get("attributes") or {}).get(name)
    return None if value is None else float(value)


def fit_attribute(name: str, rows: Sequence[Mapping[str, Any]], dataset: str, default: float | None) -> Attribute:
    """The range of an attribute's values among the training rows, in steps of 1 where all are whole numbers.

    Values of other rows, and those asked for, are clamped to that range. Raises `BadInput` (`unknown_attribute`,
    `constant_attribute`).
    """
    values = [value for row in rows if row["split"] == "train" and (value := grade(row, name)) is not None]
    if not values:
        raise _unknown(name, rows, dataset)
    low, high = min(values), max(values)
    step, decimals = _step(values)
    # Ends that are written as they are.
    low, high = (
        round(math.floor(low / step + 1e-9) * step, decimals) + 0.0,
        round(math.ceil(high / step - 1e-9) * step, decimals) + 0.0,
    )
    if not low < high:
        raise BadInput(
            f"{name} is {values[0]:g} in all {len(values):,} training rows of {dataset} that have it; nothing can be "
            "learned from it",
            code="constant_attribute",
            hint="Leave it out of `attributes`.",
        )
    attribute = Attribute(name=name, low=low, high=high, step=step, decimals=decimals)
    return attribute if default is None else attribute.model_copy(update={"default": attribute.value(default)})


def described(attribute: Attribute, rows: Sequence[Mapping[str, Any]]) -> str:
    """The words for a run's log: `verbosity: 0 to 4 in steps of 1; 1,180 of 1,482 rows have it`."""
    having = sum(grade(row, attribute.name) is not None for row in rows)
    return (
        f"{attribute.name}: {attribute.low:g} to {attribute.high:g} in steps of {attribute.step:g}; "
        f"{having:,} of {len(rows):,} rows have it"
    )


def _step(values: Sequence[float]) -> tuple[float, int]:
    """(step, decimals) in which values are written."""
    width = max(values) - min(values)
    if all(value.is_integer() for value in values) or width == 0:
        return 1.0, 0
    exponent = max(math.floor(math.log10(width / _STEPS)), -_MOST_DECIMALS)
    return 10.0**exponent, max(0, -exponent)


def _unknown(name: str, rows: Sequence[Mapping[str, Any]], dataset: str) -> BadInput:
    known = sorted({attribute for row in rows if row["split"] == "train" for attribute in row.get("attributes") or {}})
    if not known:
        return BadInput(
            f"no training row of {dataset} has attributes, and {name} is to be learned",
            code="unknown_attribute",
            hint="Import the file with a column for each: --map attributes.verbosity=COLUMN.",
        )
    close = get_close_matches(name, known, n=1)
    return BadInput(
        f"no training row of {dataset} has the attribute {name}" + (f"; did you mean {close[0]}?" if close else ""),
        code="unknown_attribute",
        hint=f"Its rows have {', '.join(known)}.",
    )
