"""Sampling by vLLM, in a process next to the one that trains, with its current weights."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from steerboard_contracts.errors import EngineMissing
from steerboard_contracts.training import OnlineConfig
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import PolicyModule
from steerboard_workers.engines.live.messages import Draw, Start
from steerboard_workers.engines.live.process import LiveEngine, write_config
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.models.adapters import merged_weights
from steerboard_workers.stages.models.model_io import pick_dtype
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.live_policy import Drawing, ends_of
from steerboard_workers.stages.training.setup import Setup

# vLLM wants the seed of a request to stay a signed 64-bit integer, and not negative.
_SEED_BITS = (1 << 63) - 1


class VllmSampler:
    """Starts vLLM when it is first needed, and gives it the weights before each sampling: none of its answers is of
    others. Every process that trains has its own, on its own device."""

    def __init__(
        self, stage: Stage, config: OnlineConfig, start: Setup, module: PolicyModule, sharing: Strategy
    ) -> None:
        self._stage = stage
        self._config = config
        self._start = start
        self._module = module
        self._sharing = sharing
        self._ends = sorted(ends_of(module, start.renderer))
        self._engine: LiveEngine | None = None
        self._answers: Sequence[Drawing] = ()

    def take_weights(self) -> None:
        if self._engine is None:
            self._engine = self._started()
        with self._stage.phases.measure("sync"):
            self._engine.update(self._weights)

    def begin(self, answers: Sequence[Drawing], prompts: Sequence[Example], temperature: float) -> None:
        assert self._engine is not None
        self._answers = answers
        self._engine.begin(
            Draw(
                prompts=[prompts[one.prompt].prompt.tolist() for one in answers],
                limits=[one.limit for one in answers],
                seeds=[one.key & _SEED_BITS for one in answers],
                temperature=temperature,
                ends=self._ends,
            )
        )

    def finish(self) -> None:
        assert self._engine is not None
        drawn = self._engine.drawn()
        for one, ids, log_probs in zip(self._answers, drawn.ids, drawn.log_probs, strict=True):
            one.ids, one.log_probs = list(ids), list(log_probs)
            one.finished = one.ids[-1] in self._ends

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()

    def _started(self) -> LiveEngine:
        process = self._stage.spec.vllm
        if process is None:
            raise EngineMissing(
                "vLLM is not installed on this machine", hint="Let the worker find it: `make setup-vllm`."
            )
        device = self._sharing.accelerator.device
        dtype = pick_dtype(self._config.precision, device)
        start = Start(
            folder=str(self._config_folder()),
            dtype="bfloat16" if dtype == torch.bfloat16 else "float32",
            window=self._start.renderer.max_length,
            sequences=self._config.sample_batch,
            options=self._config.vllm.model_dump(),
            device="cuda" if device.type == "cuda" else "cpu",
        )
        with self._stage.phases.measure("load"):
            return LiveEngine(process, start, _visible(device))

    def _config_folder(self) -> Path:
        """What vLLM reads of the model in training besides its weights."""
        folder = self._stage.directory / f"sampled-{self._sharing.accelerator.process_index}"
        folder.mkdir(exist_ok=True)
        write_config(folder, self._module.model.config.to_dict())
        return folder

    def _weights(self) -> Iterable[tuple[str, Tensor]]:
        weights, lora = self._sharing.forward_weights(self._module.model), self._config.lora
        return weights if lora is None else merged_weights(dict(weights), lora).items()


def _visible(device: torch.device) -> str | None:
    """The device of this process by the name that another one knows it by."""
    if device.type != "cuda":
        return None
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    known = given.split(",") if given else [str(one) for one in range(torch.cuda.device_count())]
    return known[device.index or 0]
