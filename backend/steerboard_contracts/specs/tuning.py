"""What OpenAI's fine-tuning API calls a method, and which of its hyperparameters the method takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Every method takes them: epochs, batch and a factor of the learning rate.
COMMON = ("n_epochs", "batch_size", "learning_rate_multiplier")


@dataclass(frozen=True)
class TuningName:
    """`name`: the method's `type` there. `fields`: further hyperparameters to fields of the config. `factors`: those
    that multiply the default of a field."""

    name: str
    fields: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, str] = field(default_factory=dict)

    @property
    def hyperparameters(self) -> tuple[str, ...]:
        return (*COMMON, *self.fields, *self.factors)
