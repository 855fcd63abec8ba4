"""Sampling by vLLM, in a process next to the one that trains, with its current weights."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from steerboard_contracts.errors import EngineMissing
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.planning.placement_plan import CONTEXT
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import PolicyModule
from steerboard_workers.engines.live.messages import Draw, Drawn, Start
from steerboard_workers.engines.live.process import LiveEngine, write_config
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.models.adapters import merged_weights
from steerboard_workers.stages.models.checkpoint_names import by_checkpoint_name
from steerboard_workers.stages.models.expert_adapters import expert_adapters
from steerboard_workers.stages.models.model_io import pick_dtype
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.sampling.live_policy import Drawing, ends_of
from steerboard_workers.stages.training.setup import Setup


class VllmSampler:
    """Starts vLLM when it is first needed, and gives it the weights before each sampling: none of its answers is of
    others. Every process that trains has its own, on its own device."""

    central = False

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
            if self._sharing.accelerator.device.type == "cuda":
                torch.cuda.empty_cache()  # of what training needs no more, the engine has its share now
            self._engine.update(lambda: whole_weights(self._config, self._module, self._sharing))

    def begin(self, answers: Sequence[Drawing], prompts: Sequence[Example], temperature: float) -> None:
        assert self._engine is not None
        self._answers = answers
        self._engine.begin(draw_of(answers, prompts, temperature, self._ends, self._start.renderer.silent_ids))

    def finish(self) -> None:
        assert self._engine is not None
        fill(self._answers, self._engine.drawn(), self._ends)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()

    def _started(self) -> LiveEngine:
        device = self._sharing.accelerator.device
        model, window = self._module.model.config.to_dict(), self._start.renderer.max_length
        config = self._config
        with self._stage.phases.measure("load"):
            if device.type == "cuda":
                share = min(config.vllm.memory_fraction, _left(device, at_peak=bool(config.staleness)))
                config = config.model_copy(update={"vllm": config.vllm.model_copy(update={"memory_fraction": share})})
            return live_engine(self._stage, config, model, window, device, _visible(device))


def live_engine(
    stage: Stage,
    config: OnlineConfig,
    model: Mapping[str, Any],
    window: int,
    device: torch.device,
    visible: str | None,
) -> LiveEngine:
    """vLLM without weights. `model`: the config of the model in training, `window` in tokens, `visible`: the devices
    that it may see; as this process by default."""
    process = stage.spec.vllm
    if process is None:
        raise EngineMissing("vLLM is not installed on this machine", hint="Let the worker find it: `make setup-vllm`.")
    folder = stage.directory / f"sampled-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    write_config(folder, model)
    dtype = pick_dtype(config.precision, device)
    start = Start(
        folder=str(folder),
        dtype="bfloat16" if dtype == torch.bfloat16 else "float32",
        window=window,
        sequences=config.sample_batch,
        options=config.vllm.model_dump(),
        device="cuda" if device.type == "cuda" else "cpu",
        routes=config.replays_routes,
    )
    return LiveEngine(process, start, visible)


def whole_weights(config: OnlineConfig, module: PolicyModule, sharing: Strategy) -> Iterable[tuple[str, Tensor]]:
    """All tensors of the model in training, adapters merged, by the names that the engine knows: vLLM those of a
    checkpoint, others their own. Every process must read to the end."""
    weights = sharing.forward_weights(module.model)
    if config.lora is not None:
        weights = iter(merged_weights(dict(weights), config.lora, experts=expert_adapters(module.model)).items())
    return by_checkpoint_name(module.model, weights) if config.engine == "vllm" else weights


def draw_of(
    answers: Sequence[Drawing],
    prompts: Sequence[Example],
    temperature: float,
    ends: Sequence[int],
    silent: Sequence[int],
) -> Draw:
    return Draw(
        prompts=[prompts[answer.prompt].prompt.tolist() for answer in answers],
        limits=[answer.limit for answer in answers],
        seeds=[answer.key for answer in answers],
        temperature=temperature,
        ends=ends,
        silent=silent,
    )


def fill(answers: Sequence[Drawing], drawn: Drawn, ends: Container[int]) -> None:
    for answer, ids, log_probs in zip(answers, drawn.ids, drawn.log_probs, strict=True):
        answer.ids, answer.log_probs = list(ids), list(log_probs)
        answer.finished = answer.ids[-1] in ends
    if drawn.routes:
        for answer, routes in zip(answers, drawn.routes, strict=True):
            answer.routes = routes


def _left(device: torch.device, at_peak: bool) -> float:
    """The share of the device's memory that the model in training does not hold: now, with what it takes at a step's
    peak given back, or `at_peak`. Known once a step was made."""
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info(device)
    if at_peak:
        free -= torch.cuda.max_memory_allocated(device) - torch.cuda.memory_allocated(device)
    return max(free - CONTEXT, 0) / total


def _visible(device: torch.device) -> str | None:
    """The device of this process by the name that another one knows it by."""
    if device.type != "cuda":
        return None
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    known = given.split(",") if given else [str(device) for device in range(torch.cuda.device_count())]
    return known[device.index or 0]
