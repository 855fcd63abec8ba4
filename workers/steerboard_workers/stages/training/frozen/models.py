"""Models that no step changes: opened, checked, read once for all examples or kept for a method.

Where a frozen model has the weights that training starts from, its log-probs are read from the model in training
before its first step: no second copy is loaded, and the first step finds differences of exactly nothing.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods import needed_method
from steerboard_contracts.specs.method import BadMethod, Frozen
from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.batches.batch_source import BatchSource
from steerboard_workers.alignment.examples import Example, with_companions
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.alignment.step_rewards import StepRewards
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.models.adapters import is_adapter
from steerboard_workers.stages.models.model_io import load_tokenizer, read_info, renderer_of
from steerboard_workers.stages.models.tokens import check_tokenizer, reads_otherwise
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.data import TrainingData
from steerboard_workers.stages.training.frozen.log_prob_cache import LogProbCache, LogProbCost, weights_hash
from steerboard_workers.stages.training.frozen.model import FrozenModel, open_reader
from steerboard_workers.stages.training.frozen.reference_check import check_equal, tolerance
from steerboard_workers.stages.training.passes import ForwardPasses, Reader, by_example
from steerboard_workers.stages.training.setup import Setup

T = TypeVar("T")

START = "model"
# Where a run draws only a part of the rows, so many are laid out together, in the order in which they are drawn: runs
# that stop after different numbers of steps have passes in common.
BLOCK = 512
# Rows of each split that are read twice where the reference is the start model, besides those of the first step.
CHECKED = 64


class Apart(Protocol):
    """Frozen models that have devices of their own; every process makes the same calls."""

    def places(self, frozen: Frozen) -> bool: ...

    def open(self, frozen: Frozen, model: FrozenModel, examples: list[Example], share: bool) -> Reader: ...


class FrozenModels:
    """The frozen models of one run. `passes` is where the ones that stay can be asked."""

    def __init__(
        self,
        stage: Stage,
        config: TrainingConfig,
        start: Setup,
        sharing: Strategy,
        passes: ForwardPasses,
        temperature: float,
        apart: Apart | None = None,
    ) -> None:
        """`apart`: where models are that have devices of their own."""
        self._stage = stage
        self._config = config
        self._start = start
        self._sharing = sharing
        self._main: bool = sharing.accelerator.is_main_process
        self._passes = passes
        self._temperature = temperature
        self._apart = apart
        self._hashes: dict[Path, str] = {}
        self._costs: list[LogProbCost] = []

    def prepare(self, data: TrainingData, batches: BatchSource, answered: list[Example]) -> None:
        """Put log-probs on the examples of `data` that are held out or that `batches` draws, and open what stays.
        Before the first step, by every process. `answered`: examples with responses, to find out how each model may be
        read."""
        for frozen in needed_method(self._config.method).frozen:
            source = self._source(frozen) if frozen.used_by(self._config) else None
            if source is None:
                continue
            own, renderer = (None, None) if source == START else self._renderers(frozen, source)
            reader = None
            if "log_probs" in frozen.uses:
                reader = self._fill(frozen, source, data, batches)
            if frozen.stays:
                reader = reader or self._open(frozen, source, answered, renderer)
                closing = own.closing_ids if own and not renderer else ()
                steps = StepRewards(own, own.process) if own and own.process else None
                self._passes.add(frozen.name, reader, renderer, closing, steps)
            del reader
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()

    def per_label(self, examples: list[Example]) -> tuple[str, list[list[NDArray[np.float32]]]]:
        """Log-probs (labels,) of each response of each example, before the first step: of the frozen model that the
        method reads log-probs of, or of the model that training starts from. With the name of that one, "start" for
        the latter."""
        frozen = next(
            (frozen for frozen in needed_method(self._config.method).frozen if "log_probs" in frozen.uses), None
        )
        source = self._source(frozen) if frozen is not None else START
        name = "start" if frozen is None else frozen.name
        folder = self._stage.model_path(source or START)
        if frozen is None or source is None or self._weights(folder) == self._weights(self._stage.model_path(START)):
            return name, self._passes.per_label(examples)
        reader = self._open(frozen, source, examples)
        return name, self._passes.per_label_of(reader, examples)

    @property
    def costs(self) -> dict[str, float]:
        """Device-seconds of all log-probs, and of those that other runs computed, for the run's summary."""
        if not self._costs:
            return {}
        shared = sum(cost.shared for cost in self._costs)
        return {"log_prob_seconds": sum(cost.seconds for cost in self._costs), "log_prob_seconds_shared": shared}

    def _renderers(self, frozen: Frozen, source: str) -> tuple[Renderer | None, Renderer | None]:
        """Its own, where it reads answers; and the same again where it reads other tokens than the model to train.

        Raises `BadInput` (`tokenizer_differs`).
        """
        try:
            check_tokenizer(self._stage, source, self._start.tokenizer)
            differs = None
        except BadInput as error:
            if error.code == "tokenizer_differs" and frozen.instead:
                error.hint = f"{error.hint} {frozen.instead}."
            if not frozen.by_text or error.code != "tokenizer_differs":
                raise
            differs = error.detail
        folder = self._stage.model_path(source)
        info = read_info(folder)
        own = renderer_of(load_tokenizer(folder), info)
        if not frozen.by_text:
            how = reads_otherwise(own, self._start.renderer)
            if how is not None:
                self._stage.log(
                    f"{self._stage.model(source).name}, the input {source}, {how}: it reads what the latter reads, "
                    "which it may not have learned",
                    "warning",
                )
            return None, None
        if differs is None:
            how = reads_otherwise(own, self._start.renderer)
            differs = how and f"{self._stage.model(source).name}, the input {source}, {how}"
        if differs is None:
            return own, None
        self._stage.log(f"{differs}: it is given each answer as text, and read at the end of that", "warning")
        return own, own

    def _source(self, frozen: Frozen) -> str | None:
        """The input that it is; None for one that is left out."""
        if self._stage.has_input(frozen.name):
            return frozen.name
        if frozen.required:
            self._stage.model(frozen.name)  # raises
        return START if frozen.reads == "labels" else None

    def _fill(self, frozen: Frozen, source: str, data: TrainingData, batches: BatchSource) -> Reader | None:
        """Returns the model where it had to be opened for it: not when another attempt or run has read it already."""
        folder = self._stage.model_path(source)
        is_start = self._weights(folder) == self._weights(self._stage.model_path(START))
        drawn = batches.drawn()
        blocks = [*_blocks(data.train, drawn), data.held_out]
        examples = list(with_companions(itertools.chain.from_iterable(blocks)))
        if not all(example.responses for example in examples):
            raise BadMethod(
                f"{self._config.method} asks for log-probs of {frozen.name} of rows without responses: use `forward`"
            )
        opened: Reader | None = None
        parts = [part for block in blocks for part in self._passes.learner.cut(list(with_companions(block)))]
        with self._cache(frozen.name, folder, is_start) as cache:
            cached = cache.known(parts, self._sharing)
            missing = [place for place, values in enumerate(cached) if values is None]
            self._stage.log(f"log-probs of {frozen.name}: {len(parts) - len(missing)} of {len(parts)} passes are known")
            clock = time.perf_counter()
            if missing and not is_start:
                opened = self._open(frozen, source, examples)
            read = self._passes.run(opened or self._passes.learner, [parts[place] for place in missing])
            with self._stage.phases.measure("reference") as phase:
                for done, (turn, values) in enumerate(read, len(parts) - len(missing) + 1):
                    cached[missing[turn]] = values
                    phase.tokens += sum(example.tokens for example in parts[missing[turn]])
                    if self._main:
                        before, clock = clock, time.perf_counter()
                        cache.add(
                            parts[missing[turn]], values, (clock - before) * self._sharing.accelerator.num_processes
                        )
                    self._stage.progress(done, len(parts), "passes", f"log-probs of {frozen.name}")
            self._costs.append(cache.cost(parts))
        of_all = by_example(examples, parts, [values for values in cached if values is not None])
        known = {id(example): values for example, values in zip(examples, of_all, strict=True)}
        # In place: a batch source has these lists already.
        for part in (data.train, data.held_out):
            part[:] = [_filled(example, frozen.name, known) if id(example) in known else example for example in part]
        if is_start:
            first = batches.drawn(1)
            every = range(len(data.train)) if drawn is None else drawn
            places = dict.fromkeys([*(every[: self._config.batch] if first is None else first)])
            places |= dict.fromkeys(_spread(every, CHECKED))
            self._check(frozen.name, [*(data.train[place] for place in places), *_spread(data.held_out, CHECKED)])
        return opened

    def _check(self, name: str, examples: list[Example]) -> None:
        """Checks that policy and reference, which are one model, agree before the first step: h = 0. They are read once
        more, in passes that are cut otherwise.

        Covered are the rows of the first step, whose loss is known then, and `CHECKED` rows of each split, evenly over
        all that will be read, with their companions: not every row, since that would be the whole pass a second time.
        What breaks single rows, a changed number in a cache's file, never comes here: an entry's digest is of its
        values, too (`LogProbCache`).
        """
        examples = list(with_companions(examples))
        bound = tolerance(self._sharing.mixed, quantised=self._quantised)
        with self._stage.phases.measure("reference") as phase:
            check_equal(self._passes.per_sequence(examples), examples, name, bound)
            phase.tokens += sum(example.tokens for example in examples)

    @property
    def _quantised(self) -> bool:
        return self._config.lora is not None and self._config.lora.quantise != "none"

    def _cache(self, name: str, folder: Path, is_start: bool) -> LogProbCache:
        dtype = str(self._sharing.dtype if is_start else self._dtype)
        if is_start and self._quantised:
            dtype += " nf4"
        if is_start and self._start.kept_bf16:
            dtype += " over bf16"
        if self._sharing.mixed:
            dtype += " autocast" if self._config.strategy == "ddp" else " bf16"
        if self._temperature != 1.0:
            dtype += f" temperature {self._temperature}"
        spec = self._stage.spec
        shared = spec.caches.get(name)
        place = self._stage.path(shared) if shared else self._stage.checkpoints / "log-probs" / name
        return LogProbCache(
            place,
            attempt=spec.attempt,
            writer=spec.run_id,
            main=self._main,
            weights=self._weights(folder),
            dtype=dtype,
            device=self._sharing.accelerator.device.type,
            template=f"{self._start.info.template} {self._start.tokenizer.chat_template}",
            batcher=self._passes.learner.batcher,
        )

    def _weights(self, folder: Path) -> str:
        if folder not in self._hashes:
            shared = [weights_hash(folder) if self._main else ""]
            if self._sharing.accelerator.num_processes > 1:
                torch.distributed.broadcast_object_list(shared, src=0)
            self._hashes[folder] = shared[0]
        return self._hashes[folder]

    @property
    def _dtype(self) -> torch.dtype:
        return torch.bfloat16 if self._sharing.mixed else torch.float32

    def _open(self, frozen: Frozen, source: str, examples: list[Example], renderer: Renderer | None = None) -> Reader:
        if self._config.strategy == "zero3" and is_adapter(self._stage.model_path(source)):
            raise BadInput(
                f"{frozen.name} is an adapter, which is merged before it is used: zero3 does not allow it",
                code="bad_config",
                hint="Use a merged model, or strategy zero2.",
            )
        model = FrozenModel(
            name=frozen.name,
            source=source,
            scalar=frozen.reads == "ends",
            dtype=self._dtype,
            temperature=self._temperature,
            pad=int((renderer or self._start).tokenizer.pad_token_id),
            window=None if renderer is None else renderer.max_length,
        )
        share = self._passes.learner.batcher.share
        self._stage.progress(0, 1, "models", f"loading {frozen.name}")
        with self._stage.phases.measure("load"):
            if frozen.stays and self._apart is not None and self._apart.places(frozen):
                reader = self._apart.open(frozen, model, examples, share)
            else:
                reader = open_reader(self._stage, self._config, model, self._sharing, examples, share)
        self._stage.progress(1, 1, "models", f"loading {frozen.name}")
        return reader


def _blocks(train: list[Example], drawn: Sequence[int] | None) -> list[list[Example]]:
    """The training rows whose log-probs are read, as they are laid out together."""
    if drawn is None or len(drawn) == len(train):
        return [train]
    return [[train[place] for place in drawn[at : at + BLOCK]] for at in range(0, len(drawn), BLOCK)]


def _spread(items: Sequence[T], number: int) -> list[T]:
    """A selection of at most so many, evenly from the first to the last."""
    count = min(number, len(items))
    return [items[place * (len(items) - 1) // max(1, count - 1)] for place in range(count)]


def _filled(example: Example, name: str, known: Mapping[int, NDArray[np.float32]]) -> Example:
    """The example with its log-probs of the frozen model `name`, and its companion with those of its own."""
    companion = None if example.companion is None else _filled(example.companion, name, known)
    log_probs = {**example.frozen_log_probs, name: known[id(example)]}
    return replace(example, frozen_log_probs=log_probs, companion=companion)
