"""The source of the global batches of a training run: a source is asked for them step by step.

The simplest source is a finished list, drawn in an order that is a function of (seed, step). Others make a batch when
it is asked for, also from the weights as they are at that step (rollouts.py).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.batches.order import Order, Together
from steerboard_workers.alignment.examples import Example

BY_ROW: Callable[[Example], Hashable] = attrgetter("row")
# Among the passes of so many steps a rehearsal looks for the fullest.
REHEARSED_STEPS = 8


class BadSource(SteerboardError):
    """A method's batch source broke its contract; the message names how."""

    code = "bad_batch_source"
    title = "The method's batches cannot be trained on"


@dataclass(frozen=True)
class Besides:
    """Other examples that a step learns by their likelihood, at temperature 1: `weight` times -log pi, the mean over
    their labels, is added to the loss of the batch, and reported as `NAME_loss`. Only the model that training is for
    learns them."""

    name: str
    examples: Sequence[Example]
    weight: float


@dataclass(frozen=True)
class Batch:
    """The global batch of one step, or what to evaluate on. `metrics` are emitted with the step. `skipped`: there is
    nothing to learn, no examples, and the step leaves the weights as they are. `holds_main`: those of the model that
    training is for stay, weight decay included, and only the ones that learn with it change."""

    examples: Sequence[Example]
    metrics: Mapping[str, float] = field(default_factory=dict)
    besides: Besides | None = None
    skipped: bool = False
    holds_main: bool = False


class BatchSource:
    """Every process of a run has one, asks it for the same steps in the same order, and must get equal batches.

    A batch may depend on the step, the live weights and the source's own state, and on nothing else: then a run that
    resumes continues bit for bit. `steps`: how many there are when nothing stops the run earlier.
    """

    steps: int

    def batch(self, step: int) -> Batch:
        """The global batch of step `step`, counted from 0. At least one example, unless it is `skipped`."""
        raise NotImplementedError

    def held_out(self, step: int) -> Batch:
        """What to evaluate on after `step` steps. Without examples only its metrics are reported."""
        return Batch([])

    def drawn(self, steps: int | None = None) -> list[int] | None:
        """Places, among the training rows, of those that the first `steps` steps draw, or all steps; frozen models
        read no others. None: it may be any."""
        return None

    def rehearsal(self) -> list[Sequence[Example]]:
        """Global batches as large as any that will come, to find out before the first step whether they fit into
        memory; the first has the longest examples, longest first. Changes no state."""
        raise NotImplementedError

    def rehearsed_besides(self) -> Besides | None:
        """What batches have besides, the longest of it, where they have that."""
        return None

    def state(self) -> dict[str, Any]:
        """What `batch` depends on besides step and weights: tensors, numbers, text, lists and dicts of them. Equal on
        every process. It becomes part of each checkpoint."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned, on resuming; the number of processes may be another."""


class ListSource(BatchSource):
    """A finished list: every example once an epoch, in an order that needs no state.

    Examples of one row, such as the two sides of a pair, come in the same step wherever it does not end between them:
    they can share their prompt then. `together`: what examples have in common that come so, where it is not their row.
    """

    def __init__(
        self,
        train: Sequence[Example],
        held_out: Sequence[Example],
        config: TrainingConfig,
        together: Callable[[Example], Hashable] = BY_ROW,
    ) -> None:
        self._train = train
        self._held_out = held_out
        self._batch = config.batch
        self._order = order_of(train, config, together)
        self.steps = min(self._order.steps, config.max_steps or self._order.steps)

    def batch(self, step: int) -> Batch:
        return Batch([self._train[i] for i in self._order.step(step)])

    def held_out(self, step: int) -> Batch:
        return Batch(self._held_out)

    def drawn(self, steps: int | None = None) -> list[int]:
        return self._order.first(self.steps if steps is None else steps)

    def rehearsal(self) -> list[Sequence[Example]]:
        longest = sorted((self._train[i] for i in self._order.first(self.steps)), key=lambda e: -max(e.lengths))[
            : self._batch
        ]
        return [longest, *(self.batch(step).examples for step in range(min(self.steps, REHEARSED_STEPS)))]


def order_of(
    train: Sequence[Example], config: TrainingConfig, together: Callable[[Example], Hashable] = BY_ROW
) -> Order:
    """The order in which a finished list is drawn."""
    return Order(len(train), config.batch, config.epochs, config.seed, Together.by(together(row) for row in train))


# -- what a source keeps, and whether processes agree ------------------------------------------------------------------


def check_state(value: Any, place: str = "state") -> None:
    """Raises `BadSource` for what a checkpoint could not give back."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            if not isinstance(key, str | int):
                raise BadSource(f"the key {key!r} in {place} of the batch source is neither text nor a whole number")
            check_state(part, f"{place}[{key!r}]")
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            check_state(part, f"{place}[{number}]")
    elif not (value is None or type(value) in (bool, int, float, str, Tensor)):
        raise BadSource(
            f"{place} of the batch source is a {type(value).__name__}, which no checkpoint keeps",
            hint="Keep tensors, numbers, text, lists and dicts; pack_examples turns examples into these.",
        )


def pack_examples(examples: Sequence[Example]) -> list[dict[str, Any]]:
    """Examples as part of a source's state. `unpack_examples` undoes it."""
    return [{each.name: _packed(getattr(example, each.name)) for each in fields(example)} for example in examples]


def unpack_examples(packed: Sequence[dict[str, Any]]) -> list[Example]:
    return [_example(tensors) for tensors in packed]


def _example(packed: Mapping[str, Any]) -> Example:
    companion = packed.get("companion")
    parts = {name: _unpacked(value) for name, value in packed.items() if name != "companion"}
    return Example(**parts, companion=None if companion is None else _example(companion))


def _packed(value: Any) -> Any:
    if isinstance(value, Example):
        return pack_examples([value])[0]
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, Mapping):
        return {name: _packed(part) for name, part in value.items()}
    return [_packed(part) for part in value] if isinstance(value, tuple) else value


def _unpacked(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, Mapping):
        return {name: _unpacked(part) for name, part in value.items()}
    return tuple(_unpacked(part) for part in value) if isinstance(value, list) else value


def digest(value: Any) -> int:
    """32 bits of examples, equal where they are: processes compare their global batches by it."""
    return _digest(value, 0)


def _digest(value: Any, before: int) -> int:
    if isinstance(value, np.ndarray):
        return zlib.crc32(np.ascontiguousarray(value).tobytes(), before)
    if isinstance(value, tuple | list):
        for part in value:
            before = _digest(part, before)
        return zlib.crc32(str(len(value)).encode(), before)
    if isinstance(value, Mapping):
        return _digest([list(item) for item in sorted(value.items())], before)
    if is_dataclass(value):
        return _digest([getattr(value, each.name) for each in fields(value)], before)
    return zlib.crc32(repr(value).encode(), before)
