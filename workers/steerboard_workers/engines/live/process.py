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

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.stage import EngineProcess
from steerboard_workers.engines.live.messages import Answered, Asked, Broken, Draw, Drawn, Start, Update
from steerboard_workers.engines.shared_weights import SharedWeights, Weights
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
        self._drawing = False
        self._ask(start)

    def update(self, weights: Weights) -> None:
        """Replace all weights, by the names of a checkpoint; tied ones are there under each of their names."""
        self._ask(Update(self._weights.write(weights, self._dtype)))

    def begin(self, asked: Draw) -> None:
        """Let it draw. Nothing else may be asked before `drawn`. Raises `EngineFailed`."""
        self._send(asked)
        self._drawing = True

    def drawn(self) -> Drawn:
        """Waits. Raises `EngineFailed`."""
        drawn = self._receive()
        self._drawing = False
        assert isinstance(drawn, Drawn)
        return drawn

    def close(self) -> None:
        """What it still draws is lost."""
        if self._drawing:
            self._process.kill()
        self._connection.close()
        self._process.wait()

    def _ask(self, asked: Asked) -> Answered:
        self._send(asked)
        return self._receive()

    def _send(self, asked: Asked) -> None:
        try:
            self._connection.send(asked)
        except OSError as error:
            raise self._ended() from error

    def _receive(self) -> Answered:
        try:
            answered: Answered = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._ended() from error
        if isinstance(answered, Broken):
            raise _error(answered)
        return answered

    def _ended(self) -> EngineFailed:
        status = self._process.wait()
        return EngineFailed(
            f"the process that samples ended with status {status}", hint="The run's log has its last output."
        )


def _error(broken: Broken) -> SteerboardError:
    found = EngineFailed(broken.detail, code=broken.code, hint=broken.hint)
    found.retryable = broken.retryable
    return found
