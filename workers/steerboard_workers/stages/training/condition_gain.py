"""Whether a conditional policy uses its condition, at each evaluation: `steerboard_statistics.condition_gain` has what
the figures are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.conditional import CONDITION_GAIN_ROWS
from steerboard_contracts.methods import needed_method
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.ledger import PhaseTime
from steerboard_statistics.condition_gain import mean_gain, mixture_log_probs
from steerboard_workers.alignment.condition_variants import ConditionVariants
from steerboard_workers.alignment.examples import Example
from steerboard_workers.stages.training.passes import ForwardPasses


def gain_rows(config: TrainingConfig) -> int:
    """The most held-out rows that it is measured on; 0 for methods whose policies take no condition."""
    if needed_method(config.method).condition is None:
        return 0
    return int(getattr(config, "condition_gain_rows", CONDITION_GAIN_ROWS))


class ConditionGain:
    """The measurement of one run. The processes share the passes, and all have the same figures."""

    def __init__(self, variants: ConditionVariants, passes: ForwardPasses, seed: int) -> None:
        self._variants = variants
        self._passes = passes
        self._seed = seed

    def measure(self, phase: PhaseTime, *, last: bool) -> dict[str, float]:
        """Nats an answer with their intervals; that over the mixture, which takes most passes, of the last evaluation
        only. The tokens are added to `phase`."""
        given = self._variants
        own = self._log_probs(given.own, phase)
        others = {name: self._log_probs(getattr(given, name), phase) for name in ("shuffled", "opposite")}
        if last:
            each = np.column_stack([self._log_probs(part, phase) for part in given.mixture])
            others["mixture"] = mixture_log_probs(each, given.weights)
        figures: dict[str, float] = {}
        for name, other in others.items():
            figures |= _named(f"condition_gain_{name}", mean_gain(own, other, given.prompts, seed=self._seed))
        return figures

    def _log_probs(self, examples: list[Example], phase: PhaseTime) -> NDArray[np.float64]:
        phase.tokens += sum(example.tokens for example in examples)
        return np.array([float(values[0]) for values in self._passes.per_sequence(examples)])


def _named(name: str, estimate: Estimate) -> dict[str, float]:
    values = {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return {key: value for key, value in values.items() if value is not None}
