"""When a run in training saves what it needs to continue, and how it resumes from that bit for bit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch

from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.batches.batch_source import BatchSource, check_state
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.best_weights import BestWeights
from steerboard_workers.stages.training.checkpoints import Checkpoints
from steerboard_workers.stages.training.clock import RunClock
from steerboard_workers.stages.training.from_main import from_main, tensors_from_main
from steerboard_workers.stages.training.randomness import gathered_states, random_states, restore_random_states
from steerboard_workers.stages.training.steps import Progress
from steerboard_workers.stages.training.watching.observer import Observer
from steerboard_workers.stages.training.watching.run_control import RunControl


class Resumption:
    """The resumption of one run, on each of its processes."""

    def __init__(
        self,
        stage: Stage,
        sharing: Strategy,
        source: BatchSource,
        checkpoints: Checkpoints,
        observers: Mapping[str, Observer],
        control: RunControl,
        best: BestWeights | None,
        clock: RunClock,
    ) -> None:
        self._stage = stage
        self._phases = stage.phases
        self._sharing = sharing
        self._accelerator = sharing.accelerator
        self._processes: int = self._accelerator.num_processes
        self._source = source
        self._checkpoints = checkpoints
        self._observers = observers
        self._control = control
        self._best = best
        self._clock = clock
        self._saved_at = time.monotonic()

    def is_due(self, step: int, config: TrainingConfig) -> bool:
        every, seconds = config.checkpoint_every, config.checkpoint_seconds
        by_time = bool(seconds) and time.monotonic() - self._saved_at >= seconds
        if seconds and self._processes > 1:
            # Ranks' clocks differ, and all must save at the same step.
            flag = torch.tensor(float(by_time and self._accelerator.is_main_process), device=self._accelerator.device)
            by_time = bool(self._accelerator.reduce(flag, "sum") > 0)
        return by_time or bool(every and step % every == 0)

    def save(self, progress: Progress) -> None:
        """Every process takes part; the main one writes."""
        with self._phases.measure("checkpoint"):
            states = gathered_states(self._processes, random_states())
            source = self._source.state()
            check_state(source)
            tensors = self._sharing.state()
            if self._accelerator.is_main_process:
                state = {"random": states, "source": source}
                record: dict[str, Any] = {"history": progress.history, "changes": self._control.state()}
                record |= {"skipped": progress.skipped} if progress.skipped else {}
                record |= {"began": self._clock.began}
                record |= {name: observer.state() for name, observer in self._observers.items()}
                best = self._best.files if self._best is not None else {}
                path = self._checkpoints.save(progress.step, tensors, state, record, best)
                self._stage.checkpointed(progress.step, path)
            else:
                for _ in tensors:
                    pass  # gathering takes every process
            self._accelerator.wait_for_everyone()
            self._saved_at = time.monotonic()

    def resume(self) -> Progress | None:
        """Restores the newest checkpoint, if there is one: weights, optimiser, source, random states, observers, and
        the settings that were in force. Only the main process reads it: on other machines there is none."""
        restored = self._checkpoints.load() if self._accelerator.is_main_process else None
        record = restored.record if restored else {}
        # Older checkpoints lack changes, skipped steps and the time at which the run began.
        of_run = (record.get("history"), record.get("changes", []), record.get("skipped", 0), record.get("began"))
        known = from_main(
            self._accelerator, (restored.step, restored.keys, restored.state, *of_run) if restored else None
        )
        if known is None:
            return None
        step, keys, state, history, changes, skipped, began = known
        random_of = state["random"]
        self._source.restore(state.get("source", {}))  # which older checkpoints lack
        tensors = tensors_from_main(self._accelerator, restored.tensors() if restored is not None else ())
        self._sharing.restore(tensors, set(keys), step - skipped)
        if len(random_of) == self._processes:
            restore_random_states(random_of[self._accelerator.process_index])
        if restored is not None:
            for name, observer in self._observers.items():
                observer.restore(restored.record.get(name))
            self._stage.log(f"resumed from step {step} ({restored.path.name})")
        if len(random_of) != self._processes:
            self._stage.log(
                f"the checkpoint is of {len(random_of)} processes, these are {self._processes}: "
                "the same batches, and other draws of dropout if there is any"
            )
        self._control.restore(changes)
        progress = Progress(step, history, skipped)
        self._clock.resume(began, history[-1]["values"] if history else {})
        if self._best is not None:
            self._best.resume(progress.held_out_losses, restored)
        return progress
