"""AlpacaEval's figures from its annotations, or from tables of preferences without texts."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from steerboard.evaluation.benchmark_files.tables import place_of
from steerboard.evaluation.formats.alpaca_eval import annotation
from steerboard.evaluation.formats.records import Unreadable, named, number
from steerboard_statistics.benchmarks import alpaca_eval, length_controlled
from steerboard_statistics.benchmarks.length_controlled import CannotFit, Gamed, Weights


@dataclass(frozen=True)
class LengthControl:
    """What length control needs besides the judgments. `difficulty`: of each of the benchmark's prompts by place, NaN
    where there is none; `weights`: published ones by model, taken instead of a fit; `c`: instead of cross-validation.
    """

    difficulty: list[float] | None = None
    gamed: Gamed | None = None
    weights: Mapping[str, Weights] = field(default_factory=dict)
    c: float | None = None


@dataclass(frozen=True, slots=True)
class Preference:
    """`prompt`: equal of equal prompts; `place`: of the prompt in the benchmark, None where the row does not say.

    Lengths in characters, None where unknown: `len_1` of output_1, the baseline's, `len_2` of output_2, the model's.
    """

    prompt: Hashable
    place: int | None
    p: float | None
    len_1: float | None
    len_2: float | None


@dataclass
class Model:
    """One model against one baseline. `order`: of its prompts in the files, also of those whose row cannot be read;
    `rows`: by prompt, the newest of each; `lost`: a row before some of these that nobody can read at all."""

    name: str
    baseline: str | None
    order: dict[Hashable, int] = field(default_factory=dict)
    rows: dict[Hashable, Preference] = field(default_factory=dict)
    superseded: int = 0
    lost: str | None = None


class Annotations:
    """The models of all files, in the order in which they are met."""

    def __init__(self) -> None:
        self.models: dict[tuple[str, str | None], Model] = {}
        self.judges: dict[str, int] = {}
        self._lost: str | None = None

    def next_file(self) -> None:
        self._lost = None

    def lost(self, where: str) -> None:
        """A line of this file that cannot be read at all: the places of the prompts after it are not known."""
        self._lost = where

    def add(self, row: Mapping[str, Any], where: str) -> None:
        """Raises `Unreadable`."""
        if "generator_2" not in row and "model" not in row:
            self.lost(where)
            raise Unreadable("has neither `model` nor `generator_2`")
        try:
            key = self._key(row)
        except Unreadable:
            self.lost(where)
            raise
        model = self.models.setdefault(key, Model(*key))
        model.lost = model.lost or self._lost
        prompt = self._prompt(row, model)
        model.order.setdefault(prompt, len(model.order))
        made = _preference(row, prompt)
        model.superseded += prompt in model.rows
        model.rows[prompt] = made
        if isinstance(judge := row.get("annotator"), str):
            self.judges[judge] = self.judges.get(judge, 0) + 1

    @staticmethod
    def _key(row: Mapping[str, Any]) -> tuple[str, str | None]:
        baseline = row.get("generator_1")
        return named(row, "generator_2", "model"), named(row, "generator_1") if baseline is not None else None

    @staticmethod
    def _prompt(row: Mapping[str, Any], model: Model) -> Hashable:
        """The instruction with the baseline's output, for the benchmark may ask one thing twice; else the place."""
        if row.get("instruction") is not None:
            return str(row["instruction"]).strip(), str(row.get("output_1"))
        place = place_of(row)
        return len(model.order) if place is None else place

    def figures(self, control: LengthControl) -> list[dict[str, Any]]:
        """Best first."""
        found = [_figures(model, control) for model in self.models.values() if model.rows]
        return sorted(found, key=lambda one: -(one["win_rate"] if one["win_rate"] is not None else -1.0))


def _preference(row: Mapping[str, Any], prompt: Hashable) -> Preference:
    """Raises `Unreadable`."""
    if row.get("instruction") is not None:
        made = annotation(row)[0]
        theirs, baselines = (None if text is None else float(len(text)) for text in made.outputs)
        return Preference(prompt, place_of(row), made.value, baselines, theirs)
    if "preference" not in row:
        raise Unreadable("has no `preference`")
    preference = number(row, "preference")
    try:
        p = alpaca_eval.probability(preference)
    except ValueError as error:
        raise Unreadable(f"has {preference:g} in `preference`: {error}") from error
    return Preference(prompt, place_of(row), p, number(row, "len_1"), number(row, "len_2"))


def _figures(model: Model, control: LengthControl) -> dict[str, Any]:
    given = all(row.place is not None for row in model.rows.values())
    placed = [(row.place or 0 if given else model.order[prompt], row) for prompt, row in model.rows.items()]
    # In the benchmark's order: it decides the folds of the cross-validation.
    placed.sort(key=lambda pair: pair[0])
    rows, places = [row for _, row in placed], [place for place, _ in placed]
    found = {
        "model": model.name,
        "baseline": model.baseline,
        **asdict(alpaca_eval.of_probabilities([row.p for row in rows])),
        "superseded": model.superseded,
    }
    try:
        difficulty = _difficulty(model, places, given, control)
        found |= _controlled(model, rows, difficulty, control)
    except CannotFit as error:
        return found | {"length_controlled": None, "why": str(error)}
    if difficulty is not None and not given and len(model.order) < len(control.difficulty or ()):
        found["note"] = (
            f"the rows do not say which of the {len(control.difficulty or ())} prompts they are about: taken for the "
            f"first {len(model.order)}, in their order"
        )
    return found


def _difficulty(model: Model, places: Sequence[int], given: bool, control: LengthControl) -> list[float] | None:
    """Of each row's prompt; None without a table of them. Raises `CannotFit` where a prompt has none."""
    if control.difficulty is None:
        return None
    if model.lost is not None and not given:
        raise CannotFit(f"{model.lost} cannot be read, so nobody knows which prompts the rows after it are about")
    known = control.difficulty
    for place in places:
        if place >= len(known) or math.isnan(known[place]):
            raise CannotFit(f"there is no difficulty for the prompt at {place}, counted from 0")
    return [known[place] for place in places]


def _controlled(
    model: Model, rows: Sequence[Preference], difficulty: list[float] | None, control: LengthControl
) -> dict[str, Any]:
    """Raises `CannotFit`."""
    weights = control.weights.get(model.name)
    if weights is not None:
        if difficulty is None and weights.difficulty:
            raise CannotFit("the published weights need the difficulties of the prompts")
        rate = length_controlled.win_rate(weights, difficulty if difficulty is not None else [0.0] * len(rows))
        return {"length_controlled": rate, "weights": asdict(weights), "c": None, "fitted": False}
    len_1, len_2 = [row.len_1 for row in rows], [row.len_2 for row in rows]
    known_1, known_2 = [n for n in len_1 if n is not None], [n for n in len_2 if n is not None]
    if len(known_1) < len(rows) or len(known_2) < len(rows):
        missing = sum(one is None or other is None for one, other in zip(len_1, len_2, strict=True))
        raise CannotFit(f"{missing} of {len(rows)} rows have no lengths and no outputs")
    fit = length_controlled.fit([row.p for row in rows], known_1, known_2, difficulty, control.gamed, c=control.c)
    return {"length_controlled": fit.win_rate, "weights": asdict(fit.weights), "c": fit.c, "fitted": True}
