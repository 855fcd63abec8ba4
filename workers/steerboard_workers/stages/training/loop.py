"""The training loop: draw a global batch, cut it, accumulate, step. Everything else is a part it is given.

A step is a function of (weights, optimiser state, random states, step number) alone, so a run that resumes from a
checkpoint goes on bit for bit as the undisturbed one would have, given the same machine, threads and world size.
"""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from steerboard_contracts.configs import TrainingConfig
from steerboard_contracts.errors import SteerboardError
from steerboard_workers.alignment.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.objectives import Objective
from steerboard_workers.alignment.order import Order, cosine_with_warmup
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.checkpoints import Checkpoints, Restored
from steerboard_workers.stages.training.data import TrainingData


class TrainingDiverged(SteerboardError):
    """The loss or its gradient is not finite."""

    code = "training_diverged"
    status = 422
    title = "Training diverged"


@dataclass
class Progress:
    """What is known after `step` optimiser steps; `history` is every metric line so far."""

    step: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)


class Trainer:
    """Trains `module` on `data.train`. Under torchrun each rank holds one; all see the same global batches."""

    def __init__(
        self,
        stage: Stage,
        config: TrainingConfig,
        accelerator: Accelerator,
        module: nn.Module,
        objective: Objective,
        batcher: Batcher,
        data: TrainingData,
        checkpoints: Checkpoints,
    ) -> None:
        self._stage = stage
        self._config = config
        self._accelerator = accelerator
        self._objective = objective
        self._batcher = batcher
        self._data = data
        self._checkpoints = checkpoints
        self.order = Order(len(data.train), config.batch, config.epochs, config.seed)
        self.total = min(self.order.steps, config.max_steps or self.order.steps)
        self.bare = module
        optimiser = adamw(module, config, accelerator.device)
        self.module, self._optimiser = accelerator.prepare(module, optimiser)
        self._parameters = [p for p in self.module.parameters() if p.requires_grad]
        self.progress = Progress()
        self._saved_at = time.monotonic()

    # -- the run --------------------------------------------------------------------------------------------------

    def run(self) -> dict[str, float]:
        """Train to the end. Returns the last evaluation's figures (none without held-out rows)."""
        seed_everything(self._config.seed)
        self._resume()
        self.module.train()
        evaluated: dict[str, float] = {}
        while self.progress.step < self.total:
            values = self._step(self.progress.step)
            self.progress.step += 1
            step = self.progress.step
            if step == 1:
                values |= self._data.metrics
            last = step == self.total
            if last or (self._config.evaluate_every and step % self._config.evaluate_every == 0):
                evaluated = self.evaluate()
                values |= {f"eval_{name}": value for name, value in evaluated.items()}
            self._record(step, values)
            self._stage.progress(step, self.total, "steps", "training")
            if not last and self._checkpoint_is_due(step):
                self._save(step)
        return evaluated or self._last_evaluation()

    def _record(self, step: int, values: dict[str, float]) -> None:
        self.progress.history.append({"step": step, "values": values})
        self._stage.metrics(step, values)

    def _last_evaluation(self) -> dict[str, float]:
        """Of a run that was complete when it resumed."""
        values = self.progress.history[-1]["values"] if self.progress.history else {}
        return {name.removeprefix("eval_"): v for name, v in values.items() if name.startswith("eval_")}

    # -- one step -------------------------------------------------------------------------------------------------

    def _step(self, number: int) -> dict[str, float]:
        started = time.perf_counter()
        examples = [self._data.train[i] for i in self.order.step(number)]
        lr = self._config.lr * cosine_with_warmup(
            number, self.total, self._config.warmup_ratio, self._config.min_lr_ratio
        )
        sums, norm = self.optimise(examples, lr)
        metrics = self._objective.metrics(sums)
        if not (math.isfinite(metrics["loss"]) and math.isfinite(norm)):
            raise TrainingDiverged(
                f"loss {metrics['loss']:g}, gradient norm {norm:g} at step {number + 1}",
                hint="Lower the learning rate, or look for odd rows in the data.",
            )
        seconds = time.perf_counter() - started
        tokens = sum(e.tokens for e in examples)
        return {
            **metrics,
            **self._objective.batch_metrics(examples),
            "lr": lr,
            "grad_norm": norm,
            "tokens": tokens,
            "tokens_per_second": tokens / seconds,
            "truncated": sum(e.truncated for e in examples) / len(examples),
            "dropped": self._data.dropped,
        }

    def optimise(self, examples: Sequence[Example], lr: float) -> tuple[dict[str, float], float]:
        """One optimiser step on a global batch. Returns its sums and the gradient norm before clipping."""
        accelerator = self._accelerator
        ranks = accelerator.num_processes
        mine = self._batcher.cut(examples, ranks)[accelerator.process_index]
        # DDP averages over ranks, while the loss is a sum over all of them.
        scale = ranks / self._objective.count(examples)
        sums = torch.zeros(len(self._objective.measures), dtype=torch.float64, device=accelerator.device)
        # Outside of the forwards, so that weights are cast once a step and not once a micro-batch.
        with accelerator.autocast():
            for place, part in enumerate(mine):
                # A rank with fewer micro-batches runs one of zero weight, so that collectives find everybody.
                batch = self._batcher.collate(part or examples[:1]).to(accelerator.device)
                accelerator.sync_gradients = place == len(mine) - 1
                with contextlib.nullcontext() if accelerator.sync_gradients else accelerator.no_sync(self.module):
                    loss, measured = self._objective.forward(self.module(**batch.model_inputs()), batch)
                    accelerator.backward(loss * (scale if part else 0.0))
                if part:
                    sums += measured
        norm = accelerator.clip_grad_norm_(self._parameters, self._config.max_grad_norm)
        for group in self._optimiser.param_groups:
            group["lr"] = lr
        self._optimiser.step()
        self._optimiser.zero_grad()
        return self._named(sums), float(norm)

    def _named(self, sums: Tensor) -> dict[str, float]:
        if self._accelerator.num_processes > 1:
            sums = self._accelerator.reduce(sums, "sum")
        return dict(zip(self._objective.measures, sums.tolist(), strict=True))

    # -- evaluation -----------------------------------------------------------------------------------------------

    @torch.no_grad()
    def evaluate(self) -> dict[str, float]:
        """The objective's figures on the held-out examples; empty when there are none."""
        examples = self._data.held_out
        if not examples:
            return {}
        accelerator = self._accelerator
        sums = torch.zeros(len(self._objective.measures), dtype=torch.float64, device=accelerator.device)
        self.module.eval()
        mine = self._batcher.cut(examples, accelerator.num_processes)[accelerator.process_index]
        for place, part in enumerate(mine):
            batch = self._batcher.collate(part or examples[:1]).to(accelerator.device)
            _, measured = self._objective.forward(self.module(**batch.model_inputs()), batch)
            if part:
                sums += measured
            self._stage.progress(place + 1, len(mine), "batches", "evaluating")
        self.module.train()
        return self._objective.metrics(self._named(sums))

    # -- checkpoints ----------------------------------------------------------------------------------------------

    def _checkpoint_is_due(self, step: int) -> bool:
        every, seconds = self._config.checkpoint_every, self._config.checkpoint_seconds
        by_time = bool(seconds) and time.monotonic() - self._saved_at >= seconds
        if seconds and self._accelerator.num_processes > 1:
            # Ranks' clocks differ, and all must save at the same step.
            flag = torch.tensor(float(by_time and self._accelerator.is_main_process), device=self._accelerator.device)
            by_time = bool(self._accelerator.reduce(flag, "sum") > 0)
        return by_time or bool(every and step % every == 0)

    def _save(self, step: int) -> None:
        states = _gather(self._accelerator, random_states())
        if self._accelerator.is_main_process:
            path = self._checkpoints.save(
                step,
                unshared(self.bare),
                {"optimiser": self._optimiser.state_dict(), "random": states},
                {"history": self.progress.history},
            )
            self._stage.checkpointed(step, path)
        self._accelerator.wait_for_everyone()
        self._saved_at = time.monotonic()

    def _resume(self) -> None:
        found = self._checkpoints.load()
        if found is None:
            return
        self._restore(found)
        self._stage.log(f"resumed from step {found.step} ({found.path.name})")
        for line in self.progress.history:
            self._stage.metrics(line["step"], line["values"])

    def _restore(self, found: Restored) -> None:
        own = unshared(self.bare)
        if own.keys() != found.weights.keys():
            raise TrainingDiverged(f"{found.path.name} holds other weights than this model has", code="bad_checkpoint")
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(found.weights[name])
        self._optimiser.load_state_dict(found.state["optimiser"])
        restore_random_states(found.state["random"][self._accelerator.process_index])
        self.progress = Progress(found.step, found.record["history"])


def adamw(module: nn.Module, config: TrainingConfig, device: torch.device) -> torch.optim.AdamW:
    """AdamW in its fused form; norms and biases are not decayed."""
    decayed = [p for p in module.parameters() if p.requires_grad and p.ndim >= 2]
    others = [p for p in module.parameters() if p.requires_grad and p.ndim < 2]
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=config.lr,
        betas=(config.adam_beta1, config.adam_beta2),
        fused=device.type in ("cpu", "cuda"),
    )


def unshared(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, tied ones once. The tensors are the module's own, not copies."""
    seen: set[int] = set()
    tensors = {}
    for name, tensor in module.state_dict().items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            tensors[name] = tensor
    return tensors


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def random_states() -> dict[str, Any]:
    """Of the generators that a model may draw from (dropout). The data order needs none."""
    states: dict[str, Any] = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_random_states(states: dict[str, Any]) -> None:
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def _gather(accelerator: Accelerator, state: dict[str, Any]) -> list[dict[str, Any]]:
    """Each rank's random states, in order of rank."""
    if accelerator.num_processes == 1:
        return [state]
    states: list[Any] = [None] * accelerator.num_processes
    torch.distributed.all_gather_object(states, state)
    return states
