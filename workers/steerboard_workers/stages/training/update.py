"""One optimiser step: a global batch cut into passes whose gradients add up, and the rehearsal of the largest ones."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from steerboard_workers.alignment.batches.batch_source import BatchSource, Besides
from steerboard_workers.alignment.batches.batching import Batcher, MicroBatch
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import JointModule
from steerboard_workers.alignment.objectives import (
    BatchObjective,
    ComparingObjective,
    LanguageObjective,
    Objective,
)
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.training.experts import Experts, RoutedStep
from steerboard_workers.stages.training.passes import ForwardPasses


class Update:
    """The update of one run. `source` is asked for batches to rehearse, at once."""

    def __init__(
        self,
        sharing: Strategy,
        objective: Objective,
        batcher: Batcher,
        source: BatchSource,
        passes: ForwardPasses,
        experts: Experts,
    ) -> None:
        self._sharing = sharing
        self._accelerator = sharing.accelerator
        self._processes: int = self._accelerator.num_processes
        self._objective = objective
        self._likelihood = LanguageObjective()
        self._batcher = batcher
        self._passes = passes
        self._experts = experts
        self._rehearsed = source.rehearsal()
        self._besides = source.rehearsed_besides()

    @property
    def longest_first(self) -> Sequence[Example]:
        """The global batch with the longest examples."""
        return self._rehearsed[0]

    @property
    def rehearsed(self) -> Sequence[Example]:
        """These, and the longest of what is learned besides."""
        return [*self.longest_first, *(self._besides.examples if self._besides is not None else ())]

    def make(
        self, examples: Sequence[Example], lr: float, besides: Besides | None = None, holds_main: bool = False
    ) -> tuple[dict[str, float], float]:
        """One optimiser step on a global batch. Returns the objective's figures, with the loss of what is learned
        besides and the loads of experts, and the gradient norm before clipping. `holds_main`: of the models, the main
        one stays as it is."""
        extra: dict[str, float] = {}
        prepared = self.prepared(examples)
        with self._sharing.forwards():
            if besides is not None:
                # First: the last backward, after which processes exchange gradients, is of all models that learn.
                sums = self._accumulate(besides.examples, self._likelihood, besides.weight, of_besides=True)
                extra[f"{besides.name}_loss"] = self._likelihood.metrics(sums)["loss"]
            mine = self._mine(examples)
            routed = self._experts.step(examples, mine, self._batcher)
            sums = self._accumulate(examples, self._objective, prepared=prepared, routed=routed)
        extra |= routed.figures() if routed is not None else {}
        norm = self._sharing.step(lr, {JointModule.MAIN} if holds_main else ())
        return self._objective.metrics(sums) | extra, norm

    def rehearse(self, batcher: Batcher) -> None:
        """Forward and backward of the largest passes and one update, all of which change nothing."""
        passes = self._largest(batcher)
        sharing, besides = self._sharing, self._besides
        sharing.module.train()
        prepared = self.prepared(passes[0])
        try:
            with sharing.forwards():
                if besides is not None:
                    longest = batcher.collate(batcher.cut(besides.examples)[0][0])
                    self._add(longest, self._likelihood, 0.0, last=False, of_besides=True)
                routed = self._experts.step([e for part in passes for e in part], passes, batcher)
                for place, part in enumerate(passes):
                    batch = self.collated(part, self._objective, prepared, batcher)
                    self._add(batch, self._objective, 0.0, last=place == len(passes) - 1, routed=routed)
            sharing.step(0.0)
        finally:
            sharing.forget_gradients()
        sharing.set_steps(0)

    def prepared(self, examples: Sequence[Example]) -> Mapping[str, Tensor]:
        """What the objective needs to know of a global batch before its first forward. Outside of `forwards`: weights
        that it casts without gradient would be those of the step."""
        objective = self._objective
        return objective.prepare(examples, self._passes) if isinstance(objective, BatchObjective) else {}

    def collated(
        self,
        examples: Sequence[Example],
        objective: Objective,
        prepared: Mapping[str, Tensor],
        batcher: Batcher | None = None,
    ) -> MicroBatch:
        """A micro-batch with what its objective needs for its forward pass."""
        comparison = None
        if isinstance(objective, ComparingObjective):
            comparison = objective.comparison(examples, self._passes)
        batch = (batcher or self._batcher).collate(examples)
        return replace(batch, prepared=prepared, comparison=comparison)

    def named(self, sums: Tensor, objective: Objective) -> dict[str, float]:
        """The sums (len(objective.measures),) of all processes, by name."""
        if self._processes > 1:
            sums, *others = self._accelerator.gather(sums[None])
            for other in others:
                sums = added(sums, other, objective)
        return dict(zip(objective.measures, sums.tolist(), strict=True))

    def _accumulate(
        self,
        examples: Sequence[Example],
        objective: Objective,
        weight: float = 1.0,
        *,
        prepared: Mapping[str, Tensor] | None = None,
        of_besides: bool = False,
        routed: RoutedStep | None = None,
    ) -> dict[str, float]:
        """Add the gradients of `weight` times the loss, and those of `routed`. Returns its sums."""
        ranks, device = self._processes, self._accelerator.device
        mine = self._mine(examples)
        # Gradients are averaged over ranks, while the loss is a sum over all of them.
        scale = weight * ranks / objective.count(examples)
        sums = torch.zeros(len(objective.measures), dtype=torch.float64, device=device)
        for place, part in enumerate(mine):
            # A rank with fewer micro-batches runs one of zero weight, so that collectives find everyone.
            batch = self.collated(part or examples[:1], objective, prepared or {})
            last = place == len(mine) - 1 and not of_besides
            share = scale if part else 0.0
            measured = self._add(batch, objective, share, last=last, of_besides=of_besides, routed=routed)
            if part:
                sums = added(sums, measured, objective)
        return self.named(sums, objective)

    def _mine(self, examples: Sequence[Example]) -> list[list[Example]]:
        """The passes of this process over a global batch."""
        return self._batcher.cut(examples, self._processes)[self._accelerator.process_index]

    def _add(
        self,
        batch: MicroBatch,
        objective: Objective,
        scale: float,
        *,
        last: bool,
        of_besides: bool = False,
        routed: RoutedStep | None = None,
    ) -> Tensor:
        """The gradients of one pass. Returns its sums."""
        batch = batch.to(self._accelerator.device)
        inputs: dict[str, Any] = batch.model_inputs()
        if of_besides:
            part = self._passes.learner.part
            inputs |= {"temperature": 1.0} | ({} if part is None else {"part": part})
        with self._sharing.accumulating(last):
            with self._experts.recording() as routes:
                output = self._sharing.module(**inputs)
            loss, measured = objective.forward(output, batch)
            loss = loss * scale
            balance = routed.loss(routes, batch, share=1.0 if scale else 0.0) if routed is not None else None
            self._sharing.backward(loss if balance is None else loss + balance, last)
        return measured

    def _largest(self, batcher: Batcher) -> list[list[Example]]:
        """The pass with the longest examples and, where another has more positions, the fullest one; the same on every
        process."""
        longest = batcher.cut(self.longest_first)[0][0]
        drawn = (batcher.cut(examples)[0] for examples in self._rehearsed)
        fullest = max(itertools.chain.from_iterable(drawn), key=batcher.positions)
        return [longest, fullest] if batcher.positions(fullest) > batcher.positions(longest) else [longest]


def added(sums: Tensor, measured: Tensor, objective: Objective) -> Tensor:
    """Sums (len(objective.measures),) with those of another pass, and the larger of two maxima."""
    maxima = torch.tensor([name.endswith("_max") for name in objective.measures], device=sums.device)
    return torch.where(maxima, torch.maximum(sums, measured), sums + measured)
