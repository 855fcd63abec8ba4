"""The process that has vLLM, as the one that trains sees it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.stage import EngineProcess
from steerboard_workers.engines.live.messages import Answered, Asked, Broken, Draw, Drawn, Start, Update
from steerboard_workers.engines.shared_weights import SharedWeights
from steerboard_workers.engines.watchdog import EngineFailed


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
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                [engine.python, "-m", "steerboard_workers.engines.live.serve", str(number)],
                env={**os.environ, **engine.variables, **seen},
                # What a stage prints are its events; all else is its log.
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=[number],
            )
        self._connection = Connection(ours.detach())
        self._ask(start)

    def update(self, weights: Mapping[str, Tensor]) -> None:
        """Replace all weights, by the names of a checkpoint; tied ones are there under each of their names."""
        self._ask(Update(self._weights.write(weights, self._dtype)))

    def draw(self, asked: Draw) -> Drawn:
        """Raises `EngineFailed`."""
        drawn = self._ask(asked)
        assert isinstance(drawn, Drawn)
        return drawn

    def close(self) -> None:
        self._connection.close()
        self._process.wait()

    def _ask(self, asked: Asked) -> Answered:
        try:
            self._connection.send(asked)
            answered: Answered = self._connection.recv()
        except (EOFError, OSError) as error:
            status = self._process.wait()
            raise EngineFailed(
                f"the process that samples ended with status {status}", hint="The run's log has its last output."
            ) from error
        if isinstance(answered, Broken):
            raise _error(answered)
        return answered


def _error(broken: Broken) -> SteerboardError:
    found = EngineFailed(broken.detail, code=broken.code, hint=broken.hint)
    found.retryable = broken.retryable
    return found
