"""The training loop: ask for a global batch, learn it, evaluate, save. Everything else is a part it is given.

A step is a function of (weights, optimiser state, the source's state, random states, step number) alone, so a run that
resumes from a checkpoint continues bit for bit as the undisturbed one would have, given the same machine, threads and
world size.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import torch

from steerboard_contracts.stage.events import HealthFound, Paused
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.health import Finding
from steerboard_contracts.watching.kept import Kept, kept_best
from steerboard_workers.alignment.batches.batch_source import BatchSource
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.objectives import Objective
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.best_weights import BestWeights
from steerboard_workers.stages.training.checkpoints import Checkpoints
from steerboard_workers.stages.training.clock import RunClock, devices_of
from steerboard_workers.stages.training.condition_gain import ConditionGain
from steerboard_workers.stages.training.data import TrainingData
from steerboard_workers.stages.training.evaluation import Evaluation, evaluations_every
from steerboard_workers.stages.training.experts import Experts
from steerboard_workers.stages.training.from_main import from_main
from steerboard_workers.stages.training.passes import ForwardPasses
from steerboard_workers.stages.training.randomness import (
    seed_everything,
)
from steerboard_workers.stages.training.resumption import Resumption
from steerboard_workers.stages.training.steps import Progress, Steps, steps_of
from steerboard_workers.stages.training.update import Update
from steerboard_workers.stages.training.watching.health import HealthWatch, StoppedByHealthRule
from steerboard_workers.stages.training.watching.observer import Observer
from steerboard_workers.stages.training.watching.run_control import RunControl


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
        experts: Experts,
        observers: Mapping[str, Observer],
        control: RunControl,
    ) -> None:
        self._stage = stage
        self._observers = observers
        self._control = control
        self._health = HealthWatch(config.health)
        self.stopped_by: Finding | None = None
        self.kept: Kept | None = None
        self._config = config
        self._sharing = sharing
        self._data = data
        self._phases = stage.phases
        self.total = steps_of(config, source)
        self._gain = ConditionGain(data.variants, passes, config.seed) if data.variants is not None else None
        self.evaluates_every = evaluations_every(config, self.total, data.evaluated)
        self.progress = Progress()
        self.processes: int = sharing.accelerator.num_processes
        self.device: torch.device = sharing.accelerator.device
        self.mixed = sharing.mixed
        self.update = Update(sharing, objective, batcher, source, passes, experts)
        self._steps = Steps(stage, self.total, sharing, objective, data, source, self.update)
        self._evaluation = Evaluation(stage, sharing, objective, batcher, source, self.update)
        self._best = BestWeights(stage, sharing) if config.keep == "best" else None
        self._clock = RunClock(devices_of(self.processes, stage.spec.roles), stage.started)
        self._resumption = Resumption(stage, sharing, source, checkpoints, observers, control, self._best, self._clock)

    def change(self, config: TrainingConfig) -> None:
        """Another config from the next step on. Of what differs, the loop itself follows the learning rate."""
        self._config = config

    def run(self) -> dict[str, float] | Paused:
        """Train to the end, or until the run is to pause. Returns the last evaluation's figures (none without held-out
        rows), or those of the best one where the run keeps that. Raises `StoppedByHealthRule`, which as a pause leaves
        a checkpoint of the step, and `FewerSteps`."""
        seed_everything(self._config.seed)
        with self._phases.measure("load"):
            self._resume()
        self._sharing.module.train()
        share = functools.partial(from_main, self._sharing.accelerator)
        evaluated: dict[str, float] = {}
        while self.progress.step < self.total and self.stopped_by is None:
            if self._control.before(self.progress.step + 1, share):
                return self._paused(Paused(step=self.progress.step))
            values = self._steps.take(self.progress, self._config)
            self.progress.step += 1
            step = self.progress.step
            if step == 1:
                values |= self._data.metrics
            last = step == self.total
            if last or (self.evaluates_every and step % self.evaluates_every == 0):
                evaluated = self._look(step, values, last=last)
            self._record(step, values)
            if "eval_loss" in values:
                self._keep_if_best()
            self._stage.progress(step, self.total, "steps", "training")
            acts = self._check_health(step, values)
            if acts is not None and acts.action == "pause":
                return self._paused(Paused(step=step, by_rule=acts.kind, reason=acts.reason))
            if acts is not None and self._health.rules[acts.rule].succeed:
                self.stopped_by = acts
                if self._gain is not None or not evaluated or self.progress.evaluated(step) != evaluated:
                    evaluated = self._look(step, values, last=True)
                    self._stage.metrics(step, values)
                    self._keep_if_best()
            elif acts is not None:
                self._resumption.save(self.progress)
                raise StoppedByHealthRule(
                    f"stopped after step {step} by the rule {acts.kind}: {acts.reason}",
                    hint="Resume the run to continue from this step, or clone it with other settings.",
                )
            else:
                self._steps.check_skipped(self.progress, self._config)
                if not last and self._resumption.is_due(step, self._config):
                    self._resumption.save(self.progress)
        # A run that was complete when it resumed has only the figures.
        return self._put_back_best() or evaluated or self.progress.evaluated(self.progress.step)

    def _resume(self) -> None:
        progress = self._resumption.resume()
        if progress is None:
            return
        self.progress = progress
        for line in progress.history:
            self._stage.metrics(line["step"], line["values"])
            self._check_health(line["step"], line["values"])

    def _look(self, step: int, values: dict[str, float], *, last: bool) -> dict[str, float]:
        """Evaluate, and add the figures to those of the step."""
        with self._phases.measure("evaluate") as phase:
            evaluated = self._evaluation.evaluate(step, phase)
            if self._gain is not None:
                evaluated |= self._gain.measure(phase, last=last)
            for observer in self._observers.values():
                observer.look(step)
        values |= {f"eval_{name}": value for name, value in evaluated.items()}
        return evaluated

    def _keep_if_best(self) -> None:
        if self._best is not None:
            with self._phases.measure("checkpoint"):
                self._best.look(self.progress.held_out_losses)

    def _put_back_best(self) -> dict[str, float]:
        """The best evaluation's figures, with its weights in the model; empty where the last weights are kept."""
        self.kept = kept_best(self.progress.held_out_losses) if self._best is not None else None
        if self._best is None or self.kept is None:
            return {}
        self._stage.log(f"kept the {self.kept.in_words()}")
        evaluated = self.progress.evaluated(self.kept.step)
        if self.kept.step < self.progress.step:
            with self._phases.measure("checkpoint"):
                self._best.put_back(self.kept.step)
            if self._gain is not None:
                with self._phases.measure("evaluate") as phase:
                    evaluated |= self._gain.measure(phase, last=True)
        return evaluated

    def _record(self, step: int, values: dict[str, float]) -> None:
        values |= self._clock.times()
        self.progress.history.append({"step": step, "values": values})
        self._stage.metrics(step, values)

    def _check_health(self, step: int, values: dict[str, float]) -> Finding | None:
        """Tell of the rules that hold. Returns the one to act on: one that stops before one that pauses. Every process
        has the same figures, and so comes to the same."""
        findings = self._health.add(step, values)
        for finding in findings:
            self._stage.emit(HealthFound(**finding.model_dump()))
        acting = sorted(
            (finding for finding in findings if finding.action != "note"), key=lambda finding: finding.action == "pause"
        )
        return next(iter(acting), None)

    def _paused(self, how: Paused) -> Paused:
        if self.progress.step:
            self._resumption.save(self.progress)
        return how
