"""AlpacaEval's figures from its annotations, or from tables of preferences without texts."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from steerboard_figures.benchmark_files import length_control
from steerboard_figures.benchmark_files.length_control import LengthControl, Prompt
from steerboard_figures.benchmark_files.reading import Fields, Figures, Findings, judge_of, models_of
from steerboard_figures.benchmark_files.repeats import UNORDERED, settled
from steerboard_figures.benchmark_files.tables import place_of
from steerboard_figures.formats.alpaca_eval import annotation, instruction_of
from steerboard_figures.formats.records import Unreadable, named, number
from steerboard_files.records import Problem
from steerboard_statistics.benchmarks import alpaca_eval
from steerboard_statistics.benchmarks.length_controlled import CannotFit, extreme_change

_FIGURES = (
    "win_rate",
    "standard_error",
    "discrete_win_rate",
    "avg_length",
    *length_control.FIGURES,
    "weights",
    "against",
)

FileRows = tuple[Path, Sequence[tuple[int, Fields | Problem]]]
"""A file and its (line, row)"""


@dataclass(frozen=True, slots=True)
class Preference:
    """Lengths in characters, None where unknown: `len_1` of output_1, the baseline's, `len_2` of output_2."""

    prompt: Prompt
    p: float | None
    len_1: float | None
    len_2: float | None

    def turned(self) -> Preference:
        p = None if self.p is None else 1 - self.p
        return replace(self, p=p, len_1=self.len_2, len_2=self.len_1)


@dataclass
class Model:
    """One model against one baseline. `by_order`: its rows by prompt and order of the two answers; `rows`: by prompt,
    the mean of both orders; `unordered`: prompts with several preferences in no order. `order`: of its prompts in the
    files, also of those whose row cannot be read; `misplaced`: rows whose place another one has, with another answer of
    the baseline; `lost`: a row before some of these that no one can read at all; `turned`: prompts whose rows all
    have the two the other way round."""

    name: str
    baseline: str | None
    order: dict[Hashable, int] = field(default_factory=dict)
    rows: dict[Hashable, Preference] = field(default_factory=dict)
    by_order: dict[Hashable, dict[bool, list[Preference]]] = field(default_factory=dict)
    superseded: int = 0
    unordered: int = 0
    misplaced: int = 0
    lost: str | None = None
    turned: set[Hashable] = field(default_factory=set)

    def as_most_rows_have_it(self) -> Model:
        """A few rows the other way round, be they the first ones, do not make the baseline the model."""
        if self.baseline is None or 2 * len(self.turned) <= len(self.rows):
            return self
        rows = {prompt: row.turned() for prompt, row in self.rows.items()}
        return replace(self, name=self.baseline, baseline=self.name, rows=rows)


def figures(files: Sequence[FileRows], control: LengthControl, baseline: str | None, findings: Findings) -> Figures:
    """The figures of one judge's rows, best first. `baseline`: another one than the rows compare with, for length
    control."""
    annotations = Annotations(findings)
    for rows in files:
        annotations.read(rows)
    for model in annotations.models.values():
        _settle(model, findings)
    models = [model.as_most_rows_have_it() for model in annotations.models.values() if model.order]
    control.check_weights([model.name for model in models])
    rated = [_figures(model, _prompts(model, models), control, findings) for model in models]
    if baseline is not None:
        rates = length_control.against(rated, baseline, control)
        for row in rated:
            row["against"] = {"baseline": baseline, **rates[row["model"]]} if row["model"] in rates else None
    rated += findings.unread(rated, _FIGURES)
    return {"models": sorted(rated, key=lambda row: -(row["win_rate"] if row["win_rate"] is not None else -1.0))}


class Annotations:
    """The models of all files, in the order in which they are met."""

    def __init__(self, findings: Findings) -> None:
        self.models: dict[tuple[str, str | None], Model] = {}
        self._findings = findings
        self._lost: str | None = None

    def read(self, file: FileRows) -> None:
        path, rows = file
        self._lost = None
        for line, row in rows:
            where = f"{path.name}, line {line}"
            if isinstance(row, Problem):
                # The places of the prompts after it are not known.
                self._lost = where
                continue
            try:
                self._add(row, where)
            except Unreadable as error:
                self._findings.unreadable(path, line, str(error), models_of(path, row), judge_of(row))

    def _add(self, row: Fields, where: str) -> None:
        """Raises `Unreadable`."""
        try:
            if "generator_2" not in row and "model" not in row:
                raise Unreadable("has neither `model` nor `generator_2`")
            name, baseline = self._key(row)
            if name == baseline:
                raise Unreadable("compares a model with itself")
        except Unreadable:
            self._lost = where
            raise
        # The same two the other way round are the same comparison.
        turned = baseline is not None and (baseline, name) in self.models
        model = self.models.setdefault((baseline or "", name) if turned else (name, baseline), Model(name, baseline))
        model.lost = model.lost or self._lost
        prompt = self._prompt(row, model, "output_2" if turned else "output_1")
        model.order.setdefault(prompt, len(model.order))
        preference = _preference(row)
        if turned:
            preference = preference.turned()
        before = model.rows.get(prompt)
        model.by_order.setdefault(prompt, {}).setdefault(turned, []).append(preference)
        # One prompt has one answer of the baseline: by place alone, these two are of different ones.
        model.misplaced += before is not None and isinstance(prompt, int) and before.len_1 != preference.len_1
        model.rows[prompt] = preference

    @staticmethod
    def _key(row: Fields) -> tuple[str, str | None]:
        baseline = row.get("generator_1")
        return named(row, "generator_2", "model"), named(row, "generator_1") if baseline is not None else None

    @staticmethod
    def _prompt(row: Fields, model: Model, baseline_output: str) -> Hashable:
        """The instruction with the baseline's output, for the benchmark may ask one thing twice; else the place."""
        if str(row.get("instruction") or "").strip():
            return instruction_of(row).strip(), str(row.get(baseline_output))
        place = place_of(row)
        return len(model.order) if place is None else place


def _preference(row: Fields) -> Preference:
    """Raises `Unreadable`."""
    text, dataset = row.get("instruction"), row.get("dataset")
    prompt = Prompt(
        place_of(row),
        text if isinstance(text, str) else None,
        dataset if isinstance(dataset, str) else None,
    )
    if text is not None:
        judgment = annotation(row)[0]
        output_length, baselines = (None if output is None else float(len(output)) for output in judgment.outputs)
        return Preference(prompt, judgment.value, baselines, output_length)
    if "preference" not in row:
        raise Unreadable("has no `preference`")
    preference = number(row, "preference")
    try:
        p = alpaca_eval.probability(preference)
    except ValueError as error:
        raise Unreadable(f"has {preference:g} in `preference`: {error}") from error
    return Preference(prompt, p, _length(row, "len_1"), _length(row, "len_2"))


def _length(row: Fields, name: str) -> float | None:
    value = number(row, name)
    if value is not None and value < 0:
        raise Unreadable(f"has {value:g} in `{name}`, which no text can have")
    return value


def _settle(model: Model, findings: Findings) -> None:
    """Averages both orders of a prompt. Annotations have no time: of several of one order the last counts."""
    model.turned = {prompt for prompt, orders in model.by_order.items() if set(orders) == {True}}
    for prompt, orders in model.by_order.items():
        by_order = [
            settled(rows, lambda _: None, lambda _: None, lambda row: row.p, findings.repeats)
            for rows in orders.values()
        ]
        model.superseded += sum(order.superseded for order in by_order)
        same_baseline = len({row.len_1 for rows in orders.values() for row in rows}) == 1
        model.unordered += same_baseline and any(order.unordered for order in by_order)
        chosen = [order.kept[0] for order in by_order]
        parsed = [row.p for row in chosen if row.p is not None]
        p = sum(parsed) / len(parsed) if len(parsed) == len(chosen) else None
        model.rows[prompt] = replace(model.rows[prompt] if len(chosen) > 1 else chosen[0], p=p)


def _prompts(model: Model, models: Sequence[Model]) -> set[Hashable]:
    """The prompts of all models that were compared with the same baseline."""
    return {prompt for other in models if other.baseline == model.baseline for prompt in other.order}


def _figures(model: Model, prompts: set[Hashable], control: LengthControl, findings: Findings) -> Figures:
    rows = list(model.rows.values())
    missing = len(prompts - model.order.keys())
    findings.repeated(model.name, model.superseded, len(rows) + model.superseded)
    findings.lacking(model.name, missing, len(prompts), "prompts")
    lengths = [row.len_2 for row in rows if row.len_2 is not None]
    rate = alpaca_eval.of_probabilities([row.p for row in rows])
    if {row.p for row in rows if row.p is not None} == {0.0, 0.5}:
        findings.warn(
            f"{model.name}: all preferences are 0 or 1, a draw and a win of the baseline; on a scale from 0 to 1 add 1 "
            "to each"
        )
    figures: Figures = {
        "model": model.name,
        "baseline": model.baseline,
        **asdict(rate),
        "avg_length": math.fsum(lengths) / len(lengths) if lengths else None,
        "superseded": model.superseded,
        "missing": missing,
        "length_controlled": None,
    }
    try:
        figures |= _controlled(model, control)
    except CannotFit as error:
        figures["why"] = str(error)
        if control.weights:
            findings.warn(f"{model.name} has no length-controlled rate: {error}")
    now = length_control.rate_of(figures)
    if now is not None and rate.win_rate is not None and extreme_change(rate.win_rate, now):
        figures["note"] = "; ".join(
            [
                *filter(None, [figures.get("note")]),
                f"length control moves {rate.win_rate:.1f} to {now:.1f}: look at the fit",
            ]
        )
    if "note" in figures:
        findings.warn(f"{model.name}: {figures['note']}")
    unusable = {"null": rate.nulls, "with the place of others": model.misplaced, UNORDERED: model.unordered}
    return findings.marked(figures, _FIGURES, rate.n - model.unordered, unusable, what="preferences")


def _controlled(model: Model, control: LengthControl) -> Figures:
    """Raises `CannotFit`."""
    prompts = [model.rows[key].prompt if key in model.rows else None for key in model.order]
    rows = [model.rows[key] for key in model.order if key in model.rows]
    difficulty, note = None, None
    if control.difficulty is not None:
        lengths = [model.rows[key].len_1 if key in model.rows else None for key in model.order]
        places, note = length_control.places(prompts, lengths, control, model.lost)
        placed = [place for place, prompt in zip(places, prompts, strict=True) if place is not None and prompt]
        # In the benchmark's order: it decides the folds of the cross-validation.
        order = sorted(range(len(rows)), key=lambda row: placed[row])
        rows, difficulty = [rows[row] for row in order], _difficulty(sorted(placed), control.difficulty)
    figures = length_control.controlled(
        model.name, [row.p for row in rows], [(row.len_1, row.len_2) for row in rows], difficulty, control
    )
    notes = [text for text in (note, figures.get("note")) if text is not None]
    return {**figures, "note": "; ".join(notes)} if notes else figures


def _difficulty(places: Sequence[int], difficulty: Sequence[float]) -> list[float]:
    """The difficulty of each place. Raises `CannotFit` where one has none."""
    for place in places:
        if place >= len(difficulty) or math.isnan(difficulty[place]):
            raise CannotFit(f"there is no difficulty for the prompt at {place}, counted from 0")
    return [difficulty[place] for place in places]
