"""The training loop: ask for a global batch, learn it, evaluate, save. Everything else is a part it is given.

A step is a function of (weights, optimiser state, the source's state, random states, step number) alone, so a run that
resumes from a checkpoint continues bit for bit as the undisturbed one would have, given the same machine, threads and
world size.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Protocol

import torch
from torch import Tensor

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.stage.events import HealthFound, Paused
from steerboard_contracts.training import OnlineConfig, TrainingConfig
from steerboard_contracts.watching.health import Finding
from steerboard_contracts.watching.ledger import PhaseTime
from steerboard_workers.alignment.batches.batch_source import BadSource, Batch, BatchSource, check_state, digest
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.batches.order import cosine_with_warmup
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.objectives import Objective
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.checkpoints import Checkpoints, Restored
from steerboard_workers.stages.training.data import TrainingData
from steerboard_workers.stages.training.passes import ForwardPasses
from steerboard_workers.stages.training.randomness import (
    gathered_states,
    random_states,
    restore_random_states,
    seed_everything,
)
from steerboard_workers.stages.training.update import Update
from steerboard_workers.stages.training.watching.health import HealthWatch, StoppedByHealthRule
from steerboard_workers.stages.training.watching.run_control import RunControl

# Of a share of steps, such as .29 of 100.
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
            f"max_steps is {asked}, and {config.epochs:g} epochs of the prompts have {source.steps} steps",
            hint=f"Set epochs to {math.ceil(config.epochs * asked / source.steps)} or more, or give more prompts.",
        )
    return min(source.steps, asked)


class Observer(Protocol):
    """Looks at the model in training at each evaluation. Every process calls `look`; what the main one keeps travels
    with checkpoints, so that a run that resumes has the steps before."""

    def look(self, step: int) -> None: ...

    def state(self) -> dict[str, Any]:
        """For a checkpoint's record."""
        ...

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """None of a checkpoint without it."""
        ...


@dataclass
class Progress:
    """What is known after `step` optimiser steps; `history` is every metric line so far. `skipped`: how many of the
    steps had nothing to learn and changed nothing."""

    step: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    skipped: int = 0


class Trainer:
    """Trains what `sharing` holds on the batches of `source`. Each process of a run has one; all see the same ones."""

    def __init__(
        self,
        stage: Stage,
        config: TrainingConfig,
        sharing: Strategy,
        objective: Objective,
        batcher: Batcher,
        data: TrainingData,
        source: BatchSource,
        checkpoints: Checkpoints,
        passes: ForwardPasses,
        observers: Mapping[str, Observer],
        control: RunControl,
    ) -> None:
        self._stage = stage
        self._observers = observers
        self._control = control
        self._health = HealthWatch(config.health)
        self.stopped_by: Finding | None = None
        self._config = config
        self._sharing = sharing
        self._accelerator = sharing.accelerator
        self._objective = objective
        self._batcher = batcher
        self._data = data
        self._source = source
        self._phases = stage.phases
        self._checkpoints = checkpoints
        self.total = steps_of(config, source)
        self.progress = Progress()
        self.processes: int = self._accelerator.num_processes
        self.device: torch.device = self._accelerator.device
        self.mixed = sharing.mixed
        self.update = Update(sharing, objective, batcher, source, passes)
        self._saved_at = time.monotonic()

    # -- the run --------------------------------------------------------------------------------------------------

    def change(self, config: TrainingConfig) -> None:
        """Another config from the next step on. Of what differs, the loop itself follows the learning rate."""
        self._config = config

    def run(self) -> dict[str, float] | Paused:
        """Train to the end, or until the run is to pause. Returns the last evaluation's figures (none without held-out
        rows). Raises `StoppedByHealthRule`, which as a pause leaves a checkpoint of the step, and `FewerSteps`."""
        seed_everything(self._config.seed)
        with self._phases.measure("load"):
            self._resume()
        self._sharing.module.train()
        evaluated: dict[str, float] = {}
        while self.progress.step < self.total and self.stopped_by is None:
            if self._control.before(self.progress.step + 1, self._from_main):
                return self._paused(Paused(step=self.progress.step))
            values = self._step(self.progress.step)
            self.progress.step += 1
            step = self.progress.step
            if step == 1:
                values |= self._data.metrics
            last = step == self.total
            if last or (self._config.evaluate_every and step % self._config.evaluate_every == 0):
                evaluated = self._look(step, values)
            self._record(step, values)
            self._stage.progress(step, self.total, "steps", "training")
            acts = self._check_health(step, values)
            if acts is not None and acts.action == "pause":
                return self._paused(Paused(step=step, by_rule=acts.kind, reason=acts.reason))
            if acts is not None and self._health.rules[acts.rule].succeed:
                self.stopped_by = acts
                if not evaluated or self._last_evaluation() != evaluated:
                    evaluated = self._look(step, values)
                    self._stage.metrics(step, values)
            elif acts is not None:
                self._save(step)
                raise StoppedByHealthRule(
                    f"stopped after step {step} by the rule {acts.kind}: {acts.reason}",
                    hint="Resume the run to continue from this step, or clone it with other settings.",
                )
            elif self.progress.skipped > self._may_skip:
                self._fail_by_skips(step)
            elif not last and self._checkpoint_is_due(step):
                self._save(step)
        return evaluated or self._last_evaluation()

    def _look(self, step: int, values: dict[str, float]) -> dict[str, float]:
        """Evaluate, and add the figures to those of the step."""
        with self._phases.measure("evaluate") as phase:
            evaluated = self.evaluate(phase)
            for observer in self._observers.values():
                observer.look(step)
        values |= {f"eval_{name}": value for name, value in evaluated.items()}
        return evaluated

    def _record(self, step: int, values: dict[str, float]) -> None:
        self.progress.history.append({"step": step, "values": values})
        self._stage.metrics(step, values)

    def _check_health(self, step: int, values: dict[str, float]) -> Finding | None:
        """Tell of the rules that hold. Returns the one to act on: one that stops before one that pauses. Every process
        has the same figures, and so comes to the same."""
        found = self._health.add(step, values)
        for one in found:
            self._stage.emit(HealthFound(**one.model_dump()))
        acting = sorted((one for one in found if one.action != "note"), key=lambda one: one.action == "pause")
        return next(iter(acting), None)

    def _paused(self, how: Paused) -> Paused:
        if self.progress.step:
            self._save(self.progress.step)
        return how

    def _last_evaluation(self) -> dict[str, float]:
        """Of a run that was complete when it resumed."""
        values = self.progress.history[-1]["values"] if self.progress.history else {}
        return {name.removeprefix("eval_"): v for name, v in values.items() if name.startswith("eval_")}

    # -- one step -------------------------------------------------------------------------------------------------

    def _step(self, number: int) -> dict[str, float]:
        self._phases.take()  # a step's timings are of the step alone
        started = time.perf_counter()
        batch = self._source.batch(number)
        examples = self._checked(batch, number)
        lr = self._config.lr * cosine_with_warmup(
            number, self.total, self._config.warmup_ratio, self._config.min_lr_ratio
        )
        if batch.skipped:
            return self._skipped(batch, lr)
        with self._phases.measure("update") as update:
            metrics, norm = self.update.make(examples, lr, batch.besides)
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
            **self._skips(),
        }

    def _skipped(self, batch: Batch, lr: float) -> dict[str, float]:
        """A step that changes neither the weights nor what AdamW remembers."""
        if not self.progress.skipped:
            self._stage.log(f"nothing to learn at step {self.progress.step + 1}: its update is skipped", "warning")
        self.progress.skipped += 1
        return {**batch.metrics, **self._timings(), "lr": lr, "tokens": 0, **self._skips()}

    @property
    def _may_skip(self) -> float:
        return self._config.max_skipped * self.total + ROUNDING if isinstance(self._config, OnlineConfig) else math.inf

    def _fail_by_skips(self, step: int) -> NoReturn:
        """As soon as it is certain, since every further step would be in vain."""
        skipped = self.progress.skipped
        raise FewerSteps(
            f"nothing could be learned in step {step}"
            + (f", as in {skipped - 1} before it" if skipped > 1 else "")
            + f": at most {self.total - skipped} of the {self.total} steps could change the model",
            hint="Sample more answers, raise refill, or give prompts on which answers differ. Or allow it with "
            "max_skipped; the health rule tied_groups can then end such a run with its model.",
        )

    def _skips(self) -> dict[str, float]:
        return {"skipped_updates": self.progress.skipped} if self.progress.skipped else {}

    def _checked(self, batch: Batch, number: int) -> Sequence[Example]:
        """Raises `BadSource` for a batch without examples that is not to be skipped, and when the processes got
        different ones: what they would compute together is no one's gradient, or never ends."""
        examples = batch.examples
        if bool(examples) == batch.skipped:
            raise BadSource(
                f"the method has nothing to learn at step {number + 1}", hint="Draw until an example is left."
            )
        if self.processes > 1:
            others = batch.besides.examples if batch.besides is not None else ()
            mine = torch.tensor([digest((*examples, *others))], dtype=torch.int64, device=self.device)
            if len(self._accelerator.gather(mine).unique()) > 1:
                raise BadSource(
                    f"the processes have different batches at step {number + 1}",
                    hint="A batch may depend on the step, the weights and the source's state only.",
                )
        return examples

    def _timings(self) -> dict[str, float]:
        """Of the phases of a step, where it has others than the update."""
        taken = self._phases.take()
        return taken if any(not name.startswith("update_") for name in taken) else {}

    # -- evaluation -----------------------------------------------------------------------------------------------

    @torch.no_grad()
    def evaluate(self, phase: PhaseTime) -> dict[str, float]:
        """The objective's figures on the held-out examples; empty without any. Their tokens are added to `phase`."""
        batch = self._source.held_out(self.progress.step)
        examples = batch.examples
        if not examples:
            return dict(batch.metrics)
        phase.tokens += sum(e.tokens for e in examples)
        accelerator = self._accelerator
        sums = torch.zeros(len(self._objective.measures), dtype=torch.float64, device=accelerator.device)
        prepared = self.update.prepared(examples)
        self._sharing.module.eval()
        mine = self._batcher.cut(examples, self.processes)[accelerator.process_index]
        for place, part in enumerate(mine):
            found = self._batcher.collate(part or examples[:1])
            micro = replace(found, prepared=prepared).to(accelerator.device)
            _, measured = self._objective.forward(self._sharing.module(**micro.model_inputs()), micro)
            if part:
                sums += measured
            self._stage.progress(place + 1, len(mine), "batches", "evaluating")
        self._sharing.module.train()
        return {**batch.metrics, **self._objective.metrics(self.update.named(sums, self._objective))}

    # -- checkpoints ----------------------------------------------------------------------------------------------

    def _checkpoint_is_due(self, step: int) -> bool:
        every, seconds = self._config.checkpoint_every, self._config.checkpoint_seconds
        by_time = bool(seconds) and time.monotonic() - self._saved_at >= seconds
        if seconds and self.processes > 1:
            # Ranks' clocks differ, and all must save at the same step.
            flag = torch.tensor(float(by_time and self._accelerator.is_main_process), device=self._accelerator.device)
            by_time = bool(self._accelerator.reduce(flag, "sum") > 0)
        return by_time or bool(every and step % every == 0)

    def _save(self, step: int) -> None:
        with self._phases.measure("checkpoint"):
            states = gathered_states(self.processes, random_states())
            source = self._source.state()
            check_state(source)
            tensors = self._sharing.state()
            if self._accelerator.is_main_process:
                state = {"random": states, "source": source}
                record: dict[str, Any] = {"history": self.progress.history, "changes": self._control.state()}
                record |= {"skipped": self.progress.skipped} if self.progress.skipped else {}
                record |= {name: observer.state() for name, observer in self._observers.items()}
                path = self._checkpoints.save(step, tensors, state, record)
                self._stage.checkpointed(step, path)
            else:
                for _ in tensors:
                    pass  # gathering takes every process
            self._accelerator.wait_for_everyone()
            self._saved_at = time.monotonic()

    def _resume(self) -> None:
        """Only the main process reads a checkpoint: on other machines there is none."""
        found = self._checkpoints.load() if self._accelerator.is_main_process else None
        record = found.record if found else {}
        # Older checkpoints lack changes and skipped steps.
        of_run = (record.get("history"), record.get("changes", []), record.get("skipped", 0))
        known = self._from_main((found.step, found.keys, found.state, *of_run) if found else None)
        if known is None:
            return
        step, keys, state, history, changes, skipped = known
        random_of = state["random"]
        self._source.restore(state.get("source", {}))  # which older checkpoints lack
        self._sharing.restore(self._tensors_from_main(found), set(keys), step - skipped)
        if len(random_of) == self.processes:
            restore_random_states(random_of[self._accelerator.process_index])
        self.progress = Progress(step, history, skipped)
        if found is not None:
            for name, observer in self._observers.items():
                observer.restore(found.record.get(name))
            self._stage.log(f"resumed from step {step} ({found.path.name})")
        if len(random_of) != self.processes:
            self._stage.log(
                f"the checkpoint is of {len(random_of)} processes, these are {self.processes}: "
                "the same batches, and other draws of dropout if there is any"
            )
        self._control.restore(changes)
        for line in history:
            self._stage.metrics(line["step"], line["values"])
            self._check_health(line["step"], line["values"])

    def _from_main(self, value: Any) -> Any:
        if self.processes == 1:
            return value
        values = [value]
        torch.distributed.broadcast_object_list(values, src=0)
        return values[0]

    def _tensors_from_main(self, found: Restored | None) -> Iterator[tuple[str, Tensor]]:
        """A checkpoint's tensors on every process, one at a time."""
        if self.processes == 1:
            assert found is not None
            yield from found.tensors()
            return
        mine = found.tensors() if found else iter(())
        while described := self._from_main(None if (item := next(mine, None)) is None else (item[0], item[1].shape)):
            name, shape = described
            where = self._accelerator.device
            tensor = torch.empty(shape, device=where) if item is None else item[1].to(where)
            torch.distributed.broadcast(tensor, src=0)
            yield name, tensor
