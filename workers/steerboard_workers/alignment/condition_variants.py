"""Held-out answers under other conditions than their own, drawn once for a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steerboard_contracts.conditions.condition import Condition
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.alignment.training_method import Row, TrainingMethod

# Conditions that stand for the distribution of all, where there are more.
MIXED = 8
_STREAM = 2**62


@dataclass(frozen=True)
class ConditionVariants:
    """n held-out rows: each under its own condition, that of another row, and the opposite one; and under each of the
    k conditions of the mixture, whose weights add up to 1. `prompts` (n,) names a row's prompt."""

    prompts: list[str]
    own: list[Example]
    shuffled: list[Example]
    opposite: list[Example]
    mixture: list[list[Example]]
    weights: list[float]

    @property
    def at_each_evaluation(self) -> int:
        """How many are read then; the last evaluation reads those of the mixture as well."""
        return len(self.own) + len(self.shuffled) + len(self.opposite)

    @property
    def all(self) -> Iterator[Example]:
        for part in (self.own, self.shuffled, self.opposite, *self.mixture):
            yield from part


def variants_of(
    method: TrainingMethod[Any], renderer: Renderer, held_out: Sequence[Row], limit: int, seed: int
) -> ConditionVariants | None:
    """Variants of `limit` held-out rows at most, by the run's seed. Rows that ask for nothing are left out, and those
    whose answer is not the same tokens under every condition, as where it is cut. None: fewer than two are left."""
    form = method.condition_format
    if form is None:
        return None
    given = [(row, asked) for row in held_out if (asked := method.asked(row)) is not None and asked.values]
    random = np.random.Generator(np.random.Philox(key=[seed % 2**64, _STREAM]))
    if len(given) > limit:
        given = [given[place] for place in sorted(random.choice(len(given), limit, replace=False))]
    if len(given) < 2:
        return None
    rows, own = [row for row, _ in given], [asked for _, asked in given]
    by_text = {form.text(condition): condition for condition in own}
    mixed = mixture([form.text(condition) for condition in own])
    conditions = [own, shuffled(own, random), [form.opposite(condition) for condition in own]]
    conditions += [[by_text[text]] * len(rows) for text in mixed]
    rendered = [method.recondition(renderer, rows, part) for part in conditions]
    kept = [
        (row, examples)
        for row, examples in zip(rows, map(_comparable, zip(*rendered, strict=True)), strict=True)
        if examples and (method.config.too_long == "truncate" or not any(example.truncated for example in examples))
    ]
    if len(kept) < 2:
        return None
    first, second, third, *rest = (list(part) for part in zip(*(examples for _, examples in kept), strict=True))
    return ConditionVariants([str(row["prompt"]) for row, _ in kept], first, second, third, rest, list(mixed.values()))


def shuffled(conditions: Sequence[Condition], random: np.random.Generator) -> list[Condition]:
    """Each row gets the condition of another row, and none its own: one random circle through all of them."""
    circle = random.permutation(len(conditions))
    given = np.empty(len(conditions), dtype=np.int64)
    given[circle] = np.roll(circle, 1)
    return [conditions[place] for place in given.tolist()]


def mixture(texts: Sequence[str]) -> dict[str, float]:
    """Conditions with weights for the distribution of `texts`: all of them where there are few, otherwise the middles
    of as many parts of them in order, each as frequent as the others."""
    counts = Counter(texts)
    if len(counts) > MIXED:
        ordered = sorted(texts, key=_values)
        counts = Counter(ordered[int((part + 0.5) * len(ordered) / MIXED)] for part in range(MIXED))
    return {text: counts[text] / counts.total() for text in sorted(counts, key=_values)}


def _values(text: str) -> list[tuple[str, float]]:
    return list(Condition.model_validate(text).root)


def _comparable(examples: Sequence[Example | None]) -> list[Example] | None:
    there = [example for example in examples if example is not None]
    first = there[0] if there else None
    if first is None or len(there) < len(examples):
        return None
    same = all(
        len(example.responses) == 1
        and np.array_equal(example.responses[0], first.responses[0])
        and example.leads == first.leads
        for example in there
    )
    return there if same else None
