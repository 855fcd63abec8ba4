"""A rollout engine as its process has it: weights come from those that train, answers go back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steerboard_contracts.online_config import OnlineConfig
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import PolicyModule
from steerboard_workers.alignment.routers import Routers
from steerboard_workers.engines.live.messages import Draw, Drawn
from steerboard_workers.stages.roles.alone import alone
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.sampling.live_policy import Drawing, ModuleSampler
from steerboard_workers.stages.training.sampling.vllm_sampler import live_engine
from steerboard_workers.stages.training.setup import open_model


@dataclass(frozen=True)
class Sent:
    """A tensor on its way to all engines: `reference` is what Ray calls its values. bfloat16, which numpy does not
    have, travels as 16-bit integers."""

    name: str
    dtype: str
    reference: Any


class RolloutUnit(Protocol):
    def update(self, sent: Sequence[Sent]) -> None:
        """Draw from these weights from now on, which are all of the model's, by the names of a checkpoint."""
        ...

    def draw(self, asked: Draw) -> Drawn: ...


def rollout_unit(stage: Stage, config: OnlineConfig, model: Mapping[str, Any], window: int) -> RolloutUnit:
    """`model`: config of the one in training; `window` in tokens."""
    return _VllmUnit(stage, config, model, window) if config.engine == "vllm" else _ModuleUnit(stage, config)


class _ModuleUnit:
    """Draws by the model that training starts from, opened once more, with the weights of now."""

    def __init__(self, stage: Stage, config: OnlineConfig) -> None:
        # What comes is merged already.
        plain = config.model_copy(update={"lora": None, "gradient_checkpointing": False})
        sharing = alone(stage, plain)
        dtype = torch.bfloat16 if sharing.mixed else torch.float32
        start = open_model(stage.model_path("model"), plain, dtype)
        module = start.module()
        assert isinstance(module, PolicyModule)
        if config.replays_routes:
            module.routers = Routers.of(module.model)
        module.to(sharing.accelerator.device).eval()
        self._own = module.model.state_dict()
        self._sampler = ModuleSampler(module, sharing, start.renderer, plain)

    @torch.no_grad()
    def update(self, sent: Sequence[Sent]) -> None:
        left = set(self._own)
        for name, tensor in _received(sent):
            self._own[name].copy_(tensor)
            left.remove(name)
        assert not left, f"weights did not arrive: {sorted(left)[:3]}"

    def draw(self, asked: Draw) -> Drawn:
        rows: dict[tuple[int, ...], int] = {}
        places = [rows.setdefault(tuple(prompt), len(rows)) for prompt in asked.prompts]
        prompts = [Example(row=place, prompt=np.array(ids, np.int32), responses=()) for ids, place in rows.items()]
        answers = [
            Drawing(place, n, limit, key)
            for n, (place, limit, key) in enumerate(zip(places, asked.limits, asked.seeds, strict=True))
        ]
        self._sampler.begin(answers, prompts, asked.temperature)
        routes = [answer.routes for answer in answers if answer.routes is not None]
        return Drawn([answer.ids for answer in answers], [answer.log_probs for answer in answers], routes)


class _VllmUnit:
    """Draws by vLLM, in a process of its own that shares this one's devices."""

    def __init__(self, stage: Stage, config: OnlineConfig, model: Mapping[str, Any], window: int) -> None:
        sharing = alone(stage, config)
        self._engine = live_engine(stage, config, model, window, sharing.accelerator.device, None)

    def update(self, sent: Sequence[Sent]) -> None:
        self._engine.update(lambda: _received(sent))

    def draw(self, asked: Draw) -> Drawn:
        self._engine.begin(asked)
        return self._engine.drawn()


def packed(weights: Iterable[tuple[str, Tensor]], dtype: torch.dtype) -> Iterator[tuple[str, str, NDArray[Any]]]:
    """(name, dtype, values) of each tensor on the CPU, as `dtype` where it is of floats."""
    for name, tensor in weights:
        values = tensor.detach().to("cpu", dtype if tensor.dtype.is_floating_point else tensor.dtype).contiguous()
        plain = values.view(torch.int16) if values.dtype == torch.bfloat16 else values
        yield name, str(values.dtype).removeprefix("torch."), plain.numpy()


def _received(sent: Sequence[Sent]) -> Iterator[tuple[str, Tensor]]:
    """One after another: all of a large model's need not be here at the same time."""
    import ray

    for weight in sent:
        # What Ray gives is its own memory, which no one may write to.
        tensor = torch.from_numpy(np.copy(ray.get(weight.reference)))
        yield weight.name, tensor.view(torch.bfloat16) if weight.dtype == "bfloat16" else tensor
