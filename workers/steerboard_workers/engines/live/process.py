"""The process that has vLLM, as the one that trains sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from steerboard_contracts.stage.spec import EngineProcess
from steerboard_workers.engines.live.messages import Draw, Drawn, Start, Update
from steerboard_workers.engines.shared_weights import SharedWeights, Weights
from steerboard_workers.engines.vllm.process import VllmProcess


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    """What vLLM reads of a model before it has weights. A head that is tied to the embeddings has weights of its own
    there: in place, vLLM would replace those of the embeddings alone."""
    (folder / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False, "use_cache": True}))


class LiveEngine:
    """A running vLLM, of the config that `write_config` wrote, whose weights are replaced in place. It ends with this
    process, or with `close`."""

    def __init__(self, engine: EngineProcess, start: Start, visible: str | None = None) -> None:
        """`visible`: the devices that it may see; as this process by default.

        Raises `EngineFailed`, and `EngineMissing` or `BadInput` as `VllmHost` does."""
        self._weights = SharedWeights()
        self._dtype = getattr(torch, start.dtype)
        seen = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
        self._process = VllmProcess(engine, "steerboard_workers.engines.live.serve", seen)
        self._drawing = False
        self._ask(start)

    def update(self, weights: Weights) -> None:
        """Replace all weights, by the names of a checkpoint; tied ones are there under each of their names."""
        self._ask(Update(self._weights.write(weights, self._dtype)))

    def begin(self, asked: Draw) -> None:
        """Let it draw. Nothing else may be asked before `drawn`. Raises `EngineFailed`."""
        self._process.send(asked)
        self._drawing = True

    def drawn(self) -> Drawn:
        """Waits. Raises `EngineFailed`."""
        drawn = self._process.receive()
        self._drawing = False
        assert isinstance(drawn, Drawn)
        return drawn

    def close(self) -> None:
        """What it still draws is lost."""
        self._process.close(kill=self._drawing)

    def _ask(self, asked: Start | Update) -> None:
        self._process.send(asked)
        self._process.receive()
