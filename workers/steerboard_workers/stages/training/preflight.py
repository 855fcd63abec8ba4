"""One step of the largest passes before training begins: what does not fit fails now, and suggests what would.

The step learns nothing: its loss counts zero times, its learning rate is 0, and AdamW's step counts are put back. It
needs the memory of a real one all the same.
"""

from __future__ import annotations

import gc
import resource
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from pydantic import ValidationError

from steerboard_contracts.errors import OutOfMemory
from steerboard_contracts.methods import needed_method
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.planning.memory import ModelShape, TrainingLoad, training_memory
from steerboard_contracts.planning.placement_plan import beyond
from steerboard_contracts.stage.events import Fix
from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.stages.models.adapters import is_adapter
from steerboard_workers.stages.models.model_io import read_info
from steerboard_workers.stages.oom import first_line, ran_out_of_memory
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.loop import Trainer
from steerboard_workers.stages.training.setup import Setup, checkpoint_activations

# What an estimate may take of a device before it counts as too much.
_SHARE = 0.9


@dataclass(frozen=True)
class Way:
    """One way to do the same work; none of its fields changes a result by more than rounding."""

    micro_tokens: int
    gradient_checkpointing: bool
    strategy: str
    offload: str

    @classmethod
    def of(cls, config: TrainingConfig) -> Way:
        return cls(config.micro_tokens, config.gradient_checkpointing, config.strategy, config.offload)


class Preflight:
    """The preflight of one trainer, before its first step."""

    def __init__(self, stage: Stage, config: TrainingConfig, trainer: Trainer, batcher: Batcher, start: Setup) -> None:
        self._stage = stage
        self._config = config
        self._trainer = trainer
        self._batcher = batcher
        self._start = start
        self._processes = trainer.processes
        self._longest = max(max(example.lengths) for example in trainer.update.rehearsed)
        # Positions of one sample, below which no pass gets.
        self._least = max(batcher.positions([example]) for example in trainer.update.rehearsed)
        self._quantised = config.lora is not None and config.lora.quantise != "none"
        self._merges = is_adapter(stage.model_path("model"))
        shape = ModelShape.of(start.model.config.to_dict(), start.parameters)
        self._shape = None if shape is None else shape.model_copy(update={"bf16": start.kept_bf16})
        frozen = [model.name for model in needed_method(config.method).frozen if stage.has_input(model.name)]
        self._sizes = {name: read_info(stage.model_path(name)).parameters for name in frozen}

    def check(self) -> dict[str, float]:
        """Returns bytes: `memory_estimated` and `memory_measured` at the peak of the step.

        Raises `OutOfMemory` with what would fit, where that is known.
        """
        self._stage.progress(0, 1, "steps", "checking memory")
        problem = self._problem_with(Way.of(self._config))
        if problem is not None:
            raise self.error(problem)
        self._stage.progress(1, 1, "steps", "checking memory")
        estimated = self._estimate(Way.of(self._config))
        memory = {"memory_measured": float(_peak(self._trainer.device))}
        return memory if estimated is None else {"memory_estimated": float(estimated), **memory}

    def error(self, problem: str) -> OutOfMemory:
        """`OutOfMemory` for a step that did not fit, with the first way found that does."""
        fix = self._fix(Way.of(self._config))
        # A single process has tried all smaller passes.
        lower = "max_length" if self._processes == 1 else "micro_tokens or max_length"
        hint = f"Try {fix.says}." if fix else f"No smaller step is known to fit: lower {lower}, or use more devices."
        return OutOfMemory(
            f"A training step at {self._longest} tokens does not fit into the memory of its device: {problem}",
            hint=hint,
            extra={"fix": fix} if fix else None,
        )

    def _problem_with(self, way: Way) -> str | None:
        """Returns None when a step done in this way fits."""
        try:
            self._trainer.update.rehearse(replace(self._batcher, micro_tokens=way.micro_tokens))
        except Exception as error:
            if not ran_out_of_memory(error):
                raise
            return first_line(error)
        return None

    def _fix(self, tried: Way) -> Fix | None:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        fits = self._really_fits if self._processes == 1 else self._should_fit
        ways = (way for way in smaller(tried, self._least, self._processes) if self._is_possible(way))
        way = next((way for way in ways if fits(way)), None)
        return None if way is None else self._described(tried, way)

    def _is_possible(self, way: Way) -> bool:
        """4-bit weights cannot be spread, an adapter not before it is merged, and what samples in training not over
        processes."""
        if way.strategy == self._config.strategy:
            return True
        config = self._config
        if not _goes_together(config, way):
            return False
        if way.strategy == "zero3" and isinstance(config, OnlineConfig) and (not config.samples_apart or config.lora):
            return False
        return not self._quantised and not (way.strategy == "zero3" and self._merges)

    def _really_fits(self, way: Way) -> bool:
        """Tried out, where no one else has to take part in it; other strategies need other processes."""
        if (way.strategy, way.offload) != (self._config.strategy, self._config.offload):
            return self._should_fit(way)
        if way.gradient_checkpointing and not self._config.gradient_checkpointing:
            checkpoint_activations(self._start.model)
        return self._problem_with(way) is None

    def _should_fit(self, way: Way) -> bool:
        estimated, room = self._estimate(way), _room(self._trainer.device)
        return estimated is not None and room is not None and estimated <= _SHARE * room

    def _estimate(self, way: Way) -> int | None:
        if self._shape is None:
            return None
        method, config = needed_method(self._config.method), self._config
        samples = isinstance(config, OnlineConfig) and not config.samples_apart
        load = TrainingLoad(
            processes=self._processes,
            positions=max(way.micro_tokens, self._least),
            mixed=self._trainer.mixed,
            strategy=way.strategy,
            offload=way.offload,
            gradient_checkpointing=way.gradient_checkpointing,
            trained=self._start.trained,
            quantised=self._quantised,
            adapts_experts=config.lora is not None and config.lora.targets == "experts",
            on_gpu=self._trainer.device.type == "cuda",
            reads_logits=not self._start.scalar,
            sampled=config.sample_batch if isinstance(config, OnlineConfig) and samples else 0,
            window=self._start.renderer.max_length,
            further=len(method.also_trains),
            frozen=method.kept(self._config, self._stage.spec.inputs),
            frozen_beyond=beyond(method, self._config, self._sizes, self._shape.parameters),
        )
        return training_memory(self._shape, load).total

    def _described(self, tried: Way, way: Way) -> Fix:
        changes: dict[str, Any] = {name: value for name, value in vars(way).items() if value != getattr(tried, name)}
        batcher = replace(self._batcher, micro_tokens=way.micro_tokens)
        passes = batcher.cut(self._trainer.update.longest_first, self._processes)[0]
        together = max(len(part) for part in passes)
        says = [f"micro-batch {together}, accumulation {len(passes)}"] if "micro_tokens" in changes else []
        says += ["gradient checkpointing"] if "gradient_checkpointing" in changes else []
        says += [f"strategy {way.strategy}"] if "strategy" in changes else []
        says += [f"offload {way.offload}"] if "offload" in changes else []
        return Fix(changes=changes, says=", ".join(says))


def _goes_together(config: TrainingConfig, way: Way) -> bool:
    """Whether the method allows its strategy."""
    try:
        type(config).model_validate(config.model_dump() | {"strategy": way.strategy, "offload": way.offload})
    except ValidationError:
        return False
    return True


def smaller(tried: Way, least: int, processes: int) -> Iterator[Way]:
    """Ways that need less memory, the ones that cost least time first. `least`: positions of the largest sample."""
    budgets = list(_halves(tried.micro_tokens, least))
    yield from (replace(tried, micro_tokens=budget) for budget in budgets)
    saving = replace(tried, gradient_checkpointing=True)
    if not tried.gradient_checkpointing:
        yield from (replace(saving, micro_tokens=budget) for budget in (tried.micro_tokens, *budgets))
    leanest = replace(saving, micro_tokens=budgets[-1] if budgets else tried.micro_tokens)
    ways = [("zero2", "none"), ("zero3", "none")] if processes > 1 else []
    ways += [("zero2", "optimiser"), ("zero3", "all")]
    here = (tried.strategy, tried.offload)
    for strategy, offload in ways[ways.index(here) + 1 :] if here in ways else ways:
        yield replace(leanest, strategy=strategy, offload=offload)


def _halves(budget: int, least: int) -> Iterator[int]:
    """Down to one sample at a time, which is as small as a pass gets."""
    while budget > least:
        budget = max(budget // 2, least)
        yield budget


def _room(device: torch.device) -> int | None:
    """Bytes of the device in all; None where a process does not own its memory."""
    return torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else None


def _peak(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
