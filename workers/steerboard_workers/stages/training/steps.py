"""A step of training: a batch that every process agrees on, its update, and its figures."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.wording import counted
from steerboard_workers.alignment.batches.batch_source import BadSource, Batch, BatchSource, digest
from steerboard_workers.alignment.batches.order import cosine_with_warmup
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.objectives import Objective
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.data import TrainingData
from steerboard_workers.stages.training.update import Update

# The rounding of a share of steps, such as .29 of 100.
ROUNDING = 1e-6


class TrainingDiverged(SteerboardError):
    """The loss or its gradient is not finite."""

    code = "training_diverged"
    status = 422
    title = "Training diverged"


class FewerSteps(SteerboardError):
    """The run would end with fewer updates of the model than its config asks for."""

    code = "fewer_steps"
    status = 422
    title = "Fewer steps than requested"


def steps_of(config: TrainingConfig, source: BatchSource) -> int:
    """Raises `FewerSteps` where a method that samples finds fewer steps in its prompts than `max_steps`. For others
    that is an upper bound: their rows are what they are to learn."""
    asked = config.max_steps or source.steps
    if isinstance(config, OnlineConfig) and asked > source.steps:
        raise FewerSteps(
            f"max_steps is {asked}, and {counted(config.epochs, 'epoch')} of the prompts give only "
            f"{counted(source.steps, 'step')}",
            hint=f"Set epochs to {math.ceil(config.epochs * asked / source.steps)} or more, or give more prompts.",
        )
    return min(source.steps, asked)


@dataclass
class Progress:
    """What is known after `step` optimiser steps; `history` is every metric line so far. `skipped`: how many of the
    steps had nothing to learn and changed nothing."""

    step: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    skipped: int = 0

    @property
    def held_out_losses(self) -> list[tuple[int, float]]:
        """Step and loss of each evaluation so far, in order."""
        losses = [(line["step"], line["values"].get("eval_loss")) for line in self.history]
        return [(step, loss) for step, loss in losses if loss is not None]

    def evaluated(self, step: int) -> dict[str, float]:
        """The figures of the evaluation after that step; empty without one."""
        values: dict[str, float] = next((line["values"] for line in self.history if line["step"] == step), {})
        return {name.removeprefix("eval_"): v for name, v in values.items() if name.startswith("eval_")}


class Steps:
    """The steps of one run, `total` in all. A step depends on the weights, the optimiser's and the source's state, the
    random states and its number alone."""

    def __init__(
        self,
        stage: Stage,
        total: int,
        sharing: Strategy,
        objective: Objective,
        data: TrainingData,
        source: BatchSource,
        update: Update,
    ) -> None:
        self.total = total
        self._stage = stage
        self._phases = stage.phases
        self._accelerator = sharing.accelerator
        self._processes: int = self._accelerator.num_processes
        self._objective = objective
        self._data = data
        self._source = source
        self._update = update

    def take(self, progress: Progress, config: TrainingConfig) -> dict[str, float]:
        """The step after those of `progress`. Returns its metric line; a step with nothing to learn counts as skipped.
        Raises `BadSource` and `TrainingDiverged`."""
        number = progress.step
        self._phases.take()  # a step's timings are of the step alone
        started = time.perf_counter()
        batch = self._source.batch(number)
        examples = self._checked(batch, number)
        lr = config.lr * cosine_with_warmup(number, self.total, config.warmup_ratio, config.min_lr_ratio)
        if batch.skipped:
            return self._skipped(batch, lr, progress)
        with self._phases.measure("update") as update:
            metrics, norm = self._update.make(examples, lr, batch.besides, batch.holds_main)
            tokens = sum(e.tokens for e in (*examples, *(batch.besides.examples if batch.besides else ())))
            update.tokens += tokens
        if not (math.isfinite(metrics["loss"]) and math.isfinite(norm)):
            raise TrainingDiverged(
                f"loss {metrics['loss']:g}, gradient norm {norm:g} at step {number + 1}",
                hint="Lower the learning rate, or look for odd rows in the data.",
            )
        seconds = time.perf_counter() - started
        return {
            **batch.metrics,
            **self._timings(),
            **metrics,
            **self._objective.batch_metrics(examples),
            "lr": lr,
            "grad_norm": norm,
            "tokens": tokens,
            "tokens_per_second": tokens / seconds,
            "truncated": sum(e.truncated for e in examples) / len(examples),
            "dropped": self._data.dropped,
            **_skips(progress),
        }

    def check_skipped(self, progress: Progress, config: TrainingConfig) -> None:
        """Raises `FewerSteps` once more steps were skipped than may be: as soon as it is certain, since every further
        step would change nothing."""
        may_skip = config.max_skipped * self.total + ROUNDING if isinstance(config, OnlineConfig) else math.inf
        skipped = progress.skipped
        if skipped <= may_skip:
            return
        raise FewerSteps(
            f"nothing could be learned in step {progress.step}"
            + (f", as in {skipped - 1} before it" if skipped > 1 else "")
            + f": at most {self.total - skipped} of the {self.total} steps could change the model",
            hint="Sample more answers, raise refill, or give prompts on which answers differ. Or allow it with "
            "max_skipped; the health rule tied_groups can then end such a run with its model.",
        )

    def _skipped(self, batch: Batch, lr: float, progress: Progress) -> dict[str, float]:
        """A step that changes neither the weights nor what AdamW remembers."""
        if not progress.skipped:
            self._stage.log(f"nothing to learn at step {progress.step + 1}: its update is skipped", "warning")
        progress.skipped += 1
        return {**batch.metrics, **self._timings(), "lr": lr, "tokens": 0, **_skips(progress)}

    def _checked(self, batch: Batch, number: int) -> Sequence[Example]:
        """Raises `BadSource` for a batch without examples that is not to be skipped, and when the processes got
        different ones: what they would compute together is no one's gradient, or never ends."""
        examples = batch.examples
        if bool(examples) == batch.skipped:
            raise BadSource(
                f"the method has nothing to learn at step {number + 1}",
                hint="Sample until at least one example is left.",
            )
        if self._processes > 1:
            others = batch.besides.examples if batch.besides is not None else ()
            mine = torch.tensor([digest((*examples, *others))], dtype=torch.int64, device=self._accelerator.device)
            if len(self._accelerator.gather(mine).unique()) > 1:
                raise BadSource(
                    f"the processes have different batches at step {number + 1}",
                    hint="A batch may depend on the step, the weights and the source's state only.",
                )
        return examples

    def _timings(self) -> dict[str, float]:
        """The timings of the phases of a step, where it has others than the update."""
        taken = self._phases.take()
        return taken if any(not name.startswith("update_") for name in taken) else {}


def _skips(progress: Progress) -> dict[str, float]:
    return {"skipped_updates": progress.skipped} if progress.skipped else {}
