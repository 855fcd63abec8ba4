"""The model itself: loaded once, then asked for texts or for rewards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import torch
from pydantic import BaseModel

from steerboard_workers.engines.protocol import Delta
from steerboard_workers.engines.transformers_engine import TransformersEngine
from steerboard_workers.model_host.messages import Generate, Load, Loaded, Ready, Request, Scored, Written
from steerboard_workers.stages.models.model_io import LoadedModel, load_policy, load_reward_model, pick_device
from steerboard_workers.stages.models.scoring import Scorable, reward_engine, score_texts

_BATCH_TOKENS = 8192


class _Stopped(Exception):
    """The caller no longer waits."""


class ServedModel:
    """`say` sends an answer; `stop` is looked at between tokens. For one thread."""

    def __init__(self, say: Callable[[BaseModel], None], stop: threading.Event) -> None:
        self._say = say
        self._stop = stop
        self._loaded: LoadedModel | None = None
        say(Ready(device="cuda" if pick_device().type == "cuda" else "cpu"))

    def serve(self, request: Request) -> None:
        """Raises what loading, rendering and computing raise."""
        if isinstance(request, Load):
            self._load(request)
            return
        assert self._loaded is not None
        if isinstance(request, Generate):
            self._generate(self._loaded, request)
        else:
            samples = [Scorable(*sample) for sample in request.samples]
            self._say(Scored(rewards=score_texts(reward_engine(self._loaded), samples, _BATCH_TOKENS)))

    def _load(self, request: Load) -> None:
        load = load_reward_model if request.task == "score" else load_policy
        self._loaded = loaded = load(Path(request.folder))
        # What the template and the tokenizer break at, they break at now.
        _ = loaded.renderer.stop_ids
        memory = torch.cuda.get_device_properties(0).total_memory if loaded.device.type == "cuda" else 0
        self._say(Loaded(size=_size(loaded), device_memory=memory))

    def _generate(self, loaded: LoadedModel, request: Generate) -> None:
        def show(delta: Delta) -> None:
            if self._stop.is_set():
                raise _Stopped
            self._say(Written(delta=delta))

        engine = TransformersEngine(loaded.model, loaded.renderer, loaded.device)
        try:
            for _ in engine.generate(request.requests, request.decoding, request.seed, show):
                pass
        except _Stopped:
            return


def _size(loaded: LoadedModel) -> int:
    tensors = {tensor.data_ptr(): tensor for tensor in (*loaded.model.parameters(), *loaded.model.buffers())}
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
