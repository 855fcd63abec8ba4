"""AlpacaEval's length-controlled win rate of one model, under the name of what it was computed from.

One file has several of them. `length_controlled` is the published one: with the difficulties of the benchmark's prompts
and the rows of gamed baselines, or with weights that were fitted so. Without the gamed rows it is
`length_controlled_no_regularisation`, and without difficulties as well `length_controlled_minimal`.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from steerboard_contracts.errors import BadInput
from steerboard_statistics.benchmarks import length_controlled
from steerboard_statistics.benchmarks.length_controlled import CannotFit, Gamed, Weights

Variant = Literal["full", "no_regularisation", "minimal"]

KEYS: dict[Variant, str] = {
    "full": "length_controlled",
    "no_regularisation": "length_controlled_no_regularisation",
    "minimal": "length_controlled_minimal",
}
FIGURES = (*KEYS.values(), "lc_standard_error")
# The data sets of the benchmark's prompts in its order, as annotations name them.
_DATASETS = ("helpful_base", "koala", "oasst", "selfinstruct", "vicuna")
# SHA-256 of the lengths in characters of AlpacaEval 2's baseline (gpt4_1106_preview) on the 805 prompts in their order,
# with commas between them. Rows in this order are proven to be in the benchmark's: its data sets alone prove nothing,
# for a file may have been shuffled within each of them.
_BASELINE_LENGTHS = "eb58f1e0c66beb54e25cf34a49a36ed0997f19ed35d5a1468e991d636b2328ff"
_UNPENALISED = (
    "cross-validation would shrink the model's weight to nothing, and the rate to 50, so it is fitted without a "
    "penalty; --c sets one"
)
# What AlpacaEval calls the outputs of someone who has not named them.
_UNNAMED = ("example",)


@dataclass(frozen=True, slots=True)
class Published:
    """Weights of a file. `variant`: of the fit that they are from."""

    weights: Weights
    variant: Variant = "full"


@dataclass(frozen=True)
class LengthControl:
    """What length control needs besides the judgments. `difficulty`: of each of the benchmark's prompts by place, NaN
    where there is none; `prompts`: their texts; `weights`: published ones by model, taken instead of a fit; `c`:
    instead of cross-validation; `in_order`: the rows are in the benchmark's order, although they do not tell.
    """

    difficulty: list[float] | None = None
    prompts: list[str] | None = None
    gamed: Gamed | None = None
    weights: Mapping[str, Published] = field(default_factory=dict)
    c: float | None = None
    in_order: bool = False

    @property
    def fitted(self) -> Variant:
        if self.difficulty is None:
            return "minimal"
        return "no_regularisation" if self.gamed is None else "full"

    def check_weights(self, models: Sequence[str]) -> None:
        """Raises `BadInput` where there are weights, and of none of these models."""
        if self.weights and models and not any(name in self.weights for name in models):
            raise BadInput(
                f"there are no weights of {', '.join(map(repr, models[:20]))}; there are those of "
                + ", ".join(list(self.weights)[:20]),
                code="missing_input",
                hint="Give the weights of these models, or none to fit them.",
            )

    def weights_of(self, model: str) -> Published | None:
        """Returns None where they are to be fitted. Raises `CannotFit` for a model that has none and others have."""
        if not self.weights:
            return None
        if model in _UNNAMED:
            raise CannotFit(
                f"{model!r} is what AlpacaEval calls unnamed outputs, so it is unknown whose weights those of "
                f"{model!r} are: give it a name of its own in `generator_2`, and in the weights"
            )
        if model not in self.weights:
            raise CannotFit(f"there are no weights of {model!r} among those given")
        return self.weights[model]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a row has of its prompt: its place in the benchmark, its text, and the data set it is from."""

    place: int | None
    text: str | None
    dataset: str | None


def places(
    prompts: Sequence[Prompt | None],
    baseline_lengths: Sequence[float | None],
    control: LengthControl,
    lost: str | None,
) -> tuple[list[int | None], str | None]:
    """(the place of each prompt in the benchmark, a note on how far to trust them); `prompts`, and the lengths of the
    baseline's answers to them, in the order of the file, None for what cannot be read; `lost`: a row before some of
    them that no one can read at all.

    Never by the order of the rows alone: a file may have been shuffled. Raises `CannotFit`.
    """
    known = [prompt for prompt in prompts if prompt is not None]
    # Texts first: a number that a shuffled file gives its rows is not their place in the benchmark.
    if control.prompts is not None and all(prompt.text is not None for prompt in known):
        return _by_text(prompts, control.prompts), None
    if all(prompt.place is not None for prompt in known):
        given = [None if prompt is None else prompt.place for prompt in prompts]
        return given, _trusted(given, prompts, baseline_lengths)
    if lost is not None:
        raise CannotFit(f"{lost} cannot be read, so the prompts of the rows after it are unknown")
    if _in_order(baseline_lengths):
        return list(range(len(prompts))), None
    if not control.in_order:
        raise CannotFit(
            "the rows do not say which of the benchmark's prompts they are about: give their texts with --prompts, a "
            "column `index` from 0, or --in-order if the file is in the benchmark's order"
        )
    if not _benchmark_order(known):
        raise CannotFit("the rows are not in the benchmark's order, as --in-order claims: their data sets are mixed")
    total = len(control.difficulty or ())
    first = f"first {len(prompts)} of the {total}" if len(prompts) < total else f"{total}"
    return list(range(len(prompts))), f"the rows are taken for the {first} prompts in their order, as --in-order claims"


def _trusted(
    places: Sequence[int | None], prompts: Sequence[Prompt | None], baseline_lengths: Sequence[float | None]
) -> str | None:
    """A note on places that the rows have themselves; None where the baseline's answers prove them. Raises `CannotFit`
    where the rows' data sets prove them wrong."""
    order = sorted((row for row in range(len(places)) if places[row] is not None), key=lambda row: places[row] or 0)
    every = [places[row] for row in order] == list(range(len(places)))
    if every and _in_order([baseline_lengths[row] for row in order]):
        return None
    ordered = [prompt for row in order if (prompt := prompts[row]) is not None]
    if not _benchmark_order(ordered):
        raise CannotFit("the numbers of the rows are not the benchmark's: by these, their data sets are mixed")
    return "the rows' own numbers are taken for the benchmark's prompts"


def _benchmark_order(prompts: Sequence[Prompt]) -> bool:
    blocks = [_DATASETS.index(prompt.dataset) for prompt in prompts if prompt.dataset in _DATASETS]
    return blocks == sorted(blocks)


def _in_order(baseline_lengths: Sequence[float | None]) -> bool:
    if any(length is None or not length.is_integer() for length in baseline_lengths):
        return False
    written = ",".join(f"{length:.0f}" for length in baseline_lengths)
    return hashlib.sha256(written.encode()).hexdigest() == _BASELINE_LENGTHS


def _by_text(prompts: Sequence[Prompt | None], texts: Sequence[str]) -> list[int | None]:
    """A text that the benchmark has twice means each of them in turn. Raises `CannotFit` for a text that it does not
    have."""
    free: dict[str, list[int]] = defaultdict(list)
    for place, text in enumerate(texts):
        free[text.strip()].append(place)
    places: list[int | None] = []
    for prompt in prompts:
        if prompt is None or prompt.text is None:
            places.append(None)
            continue
        same = free.get(prompt.text.strip(), [])
        if not same:
            raise CannotFit(f"none of the {len(texts)} prompts is {prompt.text[:80]!r}")
        places.append(same.pop(0) if len(same) > 1 else same[0])
    return places


def controlled(
    name: str,
    p: Sequence[float | None],
    lengths: Sequence[tuple[float | None, float | None]],
    difficulty: Sequence[float] | None,
    control: LengthControl,
) -> dict[str, Any]:
    """The rate and its standard error under the key of its variant. `lengths`: of the baseline's and the model's
    answers. Raises `CannotFit`."""
    if not p:
        raise CannotFit("there is no row")
    given = control.weights_of(name)
    hard = [0.0] * len(p) if difficulty is None else list(difficulty)
    if given is not None:
        if difficulty is None and given.weights.difficulty:
            raise CannotFit("the published weights need the difficulties of the prompts")
        return {**_rate(given.weights, hard, given.variant), "c": None, "fitted": False}
    known = [(first, second) for first, second in lengths if first is not None and second is not None]
    if len(known) < len(p):
        raise CannotFit(f"{len(p) - len(known)} of {len(p)} rows have no lengths and no outputs")
    fit = length_controlled.fit(
        p, [length for length, _ in known], [other for _, other in known], difficulty, control.gamed, c=control.c
    )
    figures = {**_rate(fit.weights, hard, control.fitted), "c": fit.c, "fitted": True}
    return figures if fit.c is not None else {**figures, "note": _UNPENALISED}


def _rate(weights: Weights, difficulty: Sequence[float], variant: Variant) -> dict[str, Any]:
    return {
        "length_controlled": None,
        KEYS[variant]: length_controlled.win_rate(weights, difficulty),
        "lc_standard_error": length_controlled.standard_error(weights, difficulty),
        "variant": variant,
        "weights": asdict(weights),
    }


def rate_of(figures: Mapping[str, Any]) -> float | None:
    """The length-controlled rate of a model, whatever its variant."""
    return next((figures[key] for key in KEYS.values() if figures.get(key) is not None), None)


def fitted_weights(models: Sequence[Mapping[str, Any]]) -> dict[str, Published]:
    """The weights of the valid models that were fitted. Raises `BadInput` where there is none, or two of one model."""
    _one_of_each(models)
    weights = {
        model["model"]: Published(Weights(**model["weights"]), model["variant"])
        for model in models
        if model.get("valid") and model.get("fitted")
    }
    if not weights:
        raise BadInput(
            "there are no fitted weights to save",
            code="missing_input",
            hint="Weights are those of AlpacaEval's length control, of one judge.",
        )
    return weights


def _one_of_each(models: Sequence[Mapping[str, Any]]) -> None:
    names = [model["model"] for model in models]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(
            f"{twice} was judged against several baselines, and so has weights of each",
            code="invalid_request",
            hint="Give the rows against one baseline alone.",
        )


def against(
    models: Sequence[Mapping[str, Any]], baseline: str, control: LengthControl
) -> dict[str, dict[str, float | None]]:
    """The length-controlled win rate of each model against another one than it was judged with, from the weights of
    both (AlpacaEval's `predict_winrate`): 100 mean sigma of the difference of what they predict for the benchmark's
    prompts.

    Raises `BadInput` where nothing has the weights of `baseline`, or something has two of one model.
    """
    _one_of_each(models)
    fitted = {
        model["model"]: Published(Weights(**model["weights"]), model["variant"])
        for model in models
        if model["valid"] and model.get("weights")
    }
    rival = fitted.get(baseline) or control.weights.get(baseline)
    if rival is None:
        raise BadInput(
            f"there are no weights of {baseline!r}, neither fitted to its rows nor given",
            code="missing_input",
            hint="Give rows of this model, or --weights that have it.",
        )
    judged_with = {model["baseline"] for model in models if model["model"] in fitted and model["baseline"] is not None}
    if len(judged_with) > 1:
        raise BadInput(
            f"the models were judged against {', '.join(sorted(judged_with))}: weights against one say nothing about "
            "another",
            code="invalid_request",
            hint="Give rows against one baseline alone.",
        )
    other = next((name for name, ours in fitted.items() if ours.variant != rival.variant), None)
    if other is not None:
        raise BadInput(
            f"the weights of {other} are of the variant {fitted[other].variant}, those of {baseline} of the variant "
            f"{rival.variant}",
            code="invalid_request",
            hint="Give weights of one variant.",
        )
    difficulty = [value for value in control.difficulty or [0.0] if not math.isnan(value)]
    return {
        name: {
            KEYS[ours.variant]: length_controlled.win_rate(
                Weights(
                    0.0, ours.weights.difficulty - rival.weights.difficulty, ours.weights.model - rival.weights.model
                ),
                difficulty,
            )
        }
        for name, ours in fitted.items()
    }
