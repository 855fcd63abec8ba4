"""Comparisons that survive kills: each is kept under its key as soon as it is made."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

from steerboard_contracts.fields import Precision
from steerboard_workers.alignment.rendering.preference_prompt import Comparison
from steerboard_workers.engines.preferences import Preference
from steerboard_workers.stages.models.comparing import open_comparing_model
from steerboard_workers.stages.rows.cached_scoring import BLOCK
from steerboard_workers.stages.rows.resumable_rows import resumable_rows
from steerboard_workers.stages.runtime import Stage

Key = tuple[Any, ...]


class ComparisonRequest(NamedTuple):
    """One comparison. `name` is what an error calls it."""

    key: Key
    name: str
    comparison: Comparison


class Compared(NamedTuple):
    """`before`: how many of them earlier attempts had made."""

    preferences: dict[Key, Preference]
    before: int


def compared(
    stage: Stage,
    model: str,
    fields: tuple[str, ...],
    asked: Iterable[ComparisonRequest],
    total: int,
    *,
    precision: Precision,
    batch_tokens: int,
    skip_unfit: bool = False,
) -> Compared:
    """What the preference model of input `model` finds, by key; `fields` name its parts. Loads nothing for a `total`
    of 0. Raises `BadInput` (`wrong_role`, `verdict_not_one_token`) and `BadRow` for two responses that do not fit,
    which `skip_unfit` leaves out."""
    if total == 0:
        return Compared({}, 0)
    engine = open_comparing_model(stage, model, precision)
    with resumable_rows(stage, fields) as partial:
        before = len(partial.rows)
        waiting = iter(asked)
        while block := list(islice(waiting, BLOCK)):
            left = [request for request in block if request.key not in partial]
            names = [request.name for request in left]
            with stage.phases.measure("score") as phase:
                for places, preferences in engine.compare(
                    [request.comparison for request in left], batch_tokens, names, skip_unfit, phase
                ):
                    partial.add(
                        {
                            **dict(zip(fields, left[at].key, strict=True)),
                            "forth": preference.forth,
                            "back": preference.back,
                        }
                        for at, preference in zip(places, preferences, strict=True)
                    )
                    stage.progress(len(partial.rows), total, "comparisons", "comparing")
        return Compared({key: Preference(row["forth"], row["back"]) for key, row in partial.rows.items()}, before)
