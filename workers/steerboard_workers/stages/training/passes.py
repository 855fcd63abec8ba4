"""Forward passes without gradient, over examples of any number, shared out over the processes of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.batches.batching import Batcher, MicroBatch
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.losses import sequence_sums
from steerboard_workers.alignment.modules import JointModule, PolicyModule
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.alignment.step_rewards import StepRewards
from steerboard_workers.stages.distributed.strategies import Strategy

Values = NDArray[np.float32]
Read = Callable[[Any, MicroBatch], torch.Tensor]
# Positions of one pass. Fixed, so that what a pass gives, to the last bit, does not depend on how a run is cut up.
PASS_TOKENS = 2048


class Elsewhere(Protocol):
    """A model that other processes than those of the training hold."""

    def read(self, parts: Sequence[list[Example]], labels: bool) -> Iterator[Values]:
        """float32 values of the sequences of each part, or of all `labels`; on every process, in order."""
        ...


@dataclass(frozen=True)
class Reader:
    """A model to read from: what its forwards go through, and how its examples are laid out. `part`: which one, of
    several that are trained together; None of one alone. `elsewhere`: what reads instead, without a module here.
    `temperature`: of the softmax, where it is not the module's own."""

    module: nn.Module | None
    batcher: Batcher
    part: str | None = None
    elsewhere: Elsewhere | None = None
    temperature: float | None = None

    @classmethod
    def of(cls, module: nn.Module, batcher: Batcher, part: str | None = None) -> Reader:
        return cls(module, replace(batcher, micro_tokens=PASS_TOKENS, micro_batch=None), part)

    def cut(self, examples: Sequence[Example]) -> list[list[Example]]:
        return self.batcher.cut(examples)[0] if examples else []


class ForwardPasses:
    """`Passes` of an objective: the model that learns, `parts` that learn with it, and frozen ones that were added."""

    learner: Reader

    def __init__(self, sharing: Strategy, parts: Collection[str] = ()) -> None:
        self._sharing = sharing
        self._parts = frozenset(parts)
        self._frozen: dict[str, Reader] = {}
        self._renderers: dict[str, Renderer] = {}
        self._closing: dict[str, list[int]] = {}
        self._steps: dict[str, StepRewards] = {}

    def read_from(self, batcher: Batcher) -> None:
        """How examples are laid out, once it is known."""
        self.learner = Reader.of(self._sharing.module, batcher, JointModule.MAIN if self._parts else None)

    def add(
        self,
        name: str,
        reader: Reader,
        renderer: Renderer | None = None,
        closing_ids: Sequence[int] = (),
        steps: StepRewards | None = None,
    ) -> None:
        """`steps`: of a process reward model, which is read at the end of each step."""
        self._frozen[name] = reader
        if steps is not None:
            self._steps[name] = steps
        self._closing[name] = list(closing_ids)
        if renderer is not None:
            self._renderers[name] = renderer

    def renderer(self, model: str) -> Renderer | None:
        return self._renderers.get(model)

    def closing_ids(self, model: str) -> list[int]:
        return self._closing.get(model, [])

    def has(self, model: str) -> bool:
        return model in self._frozen or model in self._parts

    def per_sequence(self, examples: Sequence[Example], model: str | None = None) -> list[Values]:
        reader = self._reader(model)
        steps = self._steps.get(model) if model is not None else None
        if steps is not None:
            of_all = self.per_label_of(reader, [steps.divided(example) for example in examples])
            return [np.array([steps.reward(logits) for logits in answers], np.float32) for answers in of_all]
        parts = reader.cut(examples)
        return by_example(examples, parts, [values for _, values in self.run(reader, parts)])

    def per_label(
        self, examples: Sequence[Example], model: str | None = None, *, temperature: float | None = None
    ) -> list[list[Values]]:
        reader = self._reader(model)
        if temperature is not None:
            reader = replace(reader, temperature=temperature)
        if reader.batcher.reads != "labels":
            raise BadInput(f"frozen model {model} reads ends, and has no log-probs", code="missing_input")
        return self.per_label_of(reader, examples)

    def per_label_of(self, reader: Reader, examples: Sequence[Example]) -> list[list[Values]]:
        """`per_label` of any model."""
        parts = reader.cut(examples)
        of_all: list[Values] = [values for _, values in self.run(reader, parts, labels=True)]
        known: dict[int, list[Values]] = {}
        for part, values in zip(parts, of_all, strict=True):
            counts = [n for example in part for n in example.label_counts]
            pieces = iter(np.split(values, np.cumsum(counts)[:-1]))
            known |= {id(example): [next(pieces) for _ in example.responses] for example in part}
        return [known[id(example)] for example in examples]

    @torch.no_grad()
    def states(
        self, examples: Sequence[Example], model: str
    ) -> tuple[torch.Tensor, Callable[[torch.Tensor], torch.Tensor]]:
        reader = self._reader(model)
        module = reader.module
        if not isinstance(module, PolicyModule):
            raise BadInput(
                f"frozen model {model} has its weights elsewhere, and gives no distributions here", code="bad_config"
            )
        batch = reader.batcher.collate(examples).to(self._sharing.accelerator.device)
        with _evaluating(module), self._sharing.forwards():
            states: torch.Tensor = module(**batch.model_inputs(), probe="states")
        return states, module.logits

    def _reader(self, model: str | None) -> Reader:
        if model is None:
            return self.learner
        if model in self._parts:
            return replace(self.learner, part=model)
        if model not in self._frozen:
            raise BadInput(
                f"the method declares no frozen model {model} that is used for `forward`",
                code="missing_input",
            )
        return self._frozen[model]

    def run(
        self,
        reader: Reader,
        parts: Sequence[list[Example]],
        *,
        labels: bool = False,
    ) -> Iterator[tuple[int, Values]]:
        """(its place, float32 values of its sequences, or of their labels) of each part, in order, on every process. By
        turns: a process takes every n-th part, and results are exchanged after each round."""
        if reader.elsewhere is not None:
            yield from enumerate(reader.elsewhere.read(parts, labels))
            return
        read = _labels if labels else _per_sequence
        accelerator = self._sharing.accelerator
        ranks, mine = accelerator.num_processes, accelerator.process_index
        for start in range(0, len(parts), ranks):
            turn = list(range(start, min(start + ranks, len(parts))))
            # Under ZeRO-3 all take part in every forward: one without work does someone else's again.
            values = self._forward(reader, parts[turn[min(mine, len(turn) - 1)]], read)
            gathered: list[Any] = [values] * ranks
            if ranks > 1:
                torch.distributed.all_gather_object(gathered, values)
            yield from zip(turn, gathered, strict=False)

    @torch.no_grad()
    def _forward(self, reader: Reader, part: list[Example], read: Read) -> Values:
        assert reader.module is not None
        batch = reader.batcher.collate(part).to(self._sharing.accelerator.device)
        with _evaluating(reader.module), self._sharing.forwards():
            asked = {"part": reader.part, "temperature": reader.temperature}
            given = {name: value for name, value in asked.items() if value is not None}
            output = reader.module(**batch.model_inputs(), **given)
            values: Values = read(output, batch).float().cpu().numpy()
        return values


def by_example(examples: Sequence[Example], parts: Sequence[list[Example]], results: Sequence[Values]) -> list[Values]:
    """(responses,) of each example, from the values of the sequences of parts."""
    known: dict[int, Values] = {}
    for part, values in zip(parts, results, strict=True):
        ends = np.cumsum([len(example.responses) for example in part])
        known |= {id(example): piece for example, piece in zip(part, np.split(values, ends[:-1]), strict=True)}
    return [known[id(example)] for example in examples]


def _per_sequence(output: Any, batch: MicroBatch) -> torch.Tensor:
    if isinstance(output, tuple):
        return sequence_sums(output[0], batch.label_counts)
    # What a critic has at the last place that is read of each sequence.
    values: torch.Tensor = output
    return values if len(values) == len(batch.lengths) else values[batch.label_counts.long().cumsum(0) - 1]


def _labels(output: Any, batch: MicroBatch) -> torch.Tensor:
    values: torch.Tensor = output[0] if isinstance(output, tuple) else output
    return values


@contextlib.contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    was_training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(was_training)
