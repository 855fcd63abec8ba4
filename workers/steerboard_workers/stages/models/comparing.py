"""Comparing responses by a model of role `preference`: what selections, benchmarks and evaluations call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from steerboard_contracts.fields import Precision
from steerboard_workers.alignment.rendering.preference_prompt import Comparison
from steerboard_workers.engines.preferences import Preference, TransformersPreferences
from steerboard_workers.engines.rewards import CPU_BATCH_TOKENS
from steerboard_workers.stages.models.model_io import LoadedModel, load_comparing_model
from steerboard_workers.stages.runtime import Stage


def preference_engine(loaded: LoadedModel) -> TransformersPreferences:
    """A model of `load_comparing_model` as an engine."""
    return TransformersPreferences(loaded.model, loaded.renderer, loaded.device)


def open_comparing_model(stage: Stage, name: str, precision: Precision) -> TransformersPreferences:
    """The preference model of input `name`. Raises what loading it raises."""
    stage.progress(0, 1, "models", "loading")
    with stage.phases.measure("load"), stage.using_model(name, "opening"):
        loaded = load_comparing_model(stage.model_path(name), precision, stage.spec.device)
        engine = preference_engine(loaded)
    loaded.renderer.tokenising = lambda: stage.using_model(name, "tokenising with")
    return engine


def compare(
    engine: TransformersPreferences,
    comparisons: Sequence[Comparison],
    batch_tokens: int = CPU_BATCH_TOKENS,
    on_progress: Callable[[int], None] | None = None,
) -> list[Preference]:
    """One preference for each comparison, in their order. `on_progress` gets the number done. Raises `BadRow`."""
    by_place: dict[int, Preference] = {}
    for places, preferences in engine.compare(comparisons, batch_tokens):
        by_place.update(zip(places, preferences, strict=True))
        if on_progress:
            on_progress(len(by_place))
    return [by_place[place] for place in range(len(comparisons))]
