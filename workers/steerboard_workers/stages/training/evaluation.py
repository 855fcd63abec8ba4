"""What a model in training makes of the held-out rows."""

from __future__ import annotations

import math

import torch

from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.ledger import PhaseTime
from steerboard_workers.alignment.batches.batch_source import BatchSource
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.objectives import Objective
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.update import Update, added

# By default: how often in a run, and at most which share of its time. A row costs a third of what it costs to learn.
_TIMES, _SHARE, _ROW = 10, 0.1, 1 / 3
# A short run may take more, for one evaluation shows no course.
_FEWEST, _SHORT_SHARE = 3, 0.3


def evaluations_every(config: TrainingConfig, total: int, examples: int) -> int:
    """Steps between the evaluations of a run of `total` steps, each of which reads so many examples; 0: only at the
    end."""
    if config.evaluate_every is not None:
        return config.evaluate_every
    if isinstance(config, OnlineConfig) or not examples:
        return 0
    affordable = total * config.batch / (_ROW * examples)
    times = min(_TIMES, max(int(_SHARE * affordable), min(_FEWEST, int(_SHORT_SHARE * affordable))), total)
    return math.ceil(total / times) if times > 1 else 0


class Evaluation:
    """Each process computes its part of the batches; all have the same figures."""

    def __init__(
        self,
        stage: Stage,
        sharing: Strategy,
        objective: Objective,
        batcher: Batcher,
        source: BatchSource,
        update: Update,
    ) -> None:
        self._stage = stage
        self._sharing = sharing
        self._accelerator = sharing.accelerator
        self._processes: int = self._accelerator.num_processes
        self._objective = objective
        self._batcher = batcher
        self._source = source
        self._update = update

    @torch.no_grad()
    def evaluate(self, step: int, phase: PhaseTime) -> dict[str, float]:
        """The objective's figures on the held-out examples after `step` steps; empty without any. Their tokens are
        added to `phase`."""
        batch = self._source.held_out(step)
        examples = batch.examples
        if not examples:
            return dict(batch.metrics)
        phase.tokens += sum(e.tokens for e in examples)
        accelerator = self._accelerator
        sums = torch.zeros(len(self._objective.measures), dtype=torch.float64, device=accelerator.device)
        prepared = self._update.prepared(examples)
        self._sharing.module.eval()
        mine = self._batcher.cut(examples, self._processes)[accelerator.process_index]
        for place, part in enumerate(mine):
            micro = self._update.collated(part or examples[:1], self._objective, prepared).to(accelerator.device)
            _, measured = self._objective.forward(self._sharing.module(**micro.model_inputs()), micro)
            if part:
                sums = added(sums, measured, self._objective)
            self._stage.progress(place + 1, len(mine), "batches", "evaluating")
        self._sharing.module.train()
        return {**batch.metrics, **self._objective.metrics(self._update.named(sums, self._objective))}
