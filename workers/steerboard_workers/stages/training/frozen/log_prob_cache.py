"""Log-probs of frozen models, kept from one attempt and one run to the next.

The unit is a forward pass, and its key is a hash of everything that decides what the pass gives, to the last bit:
weights, adapter and config as they are on the disk, dtype, device, template, token ids and labels of every sequence in
it, the layout wanted for them, and the code that computes it. So an entry cannot be stale, and what a run finds in a
cache is what it would have computed: a resumed run stays bit for bit the undisturbed one. An entry also has a digest of
its values; one that no longer fits them is computed again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from steerboard_contracts.files.resumable_rows import ResumableRows
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.stages.distributed.strategies import Strategy

# What opens a model, lays passes out and computes them, and the libraries below it.
CODE = (
    "steerboard_workers.alignment.attention",
    "steerboard_workers.alignment.batches.batching",
    "steerboard_workers.alignment.batches.layouts",
    "steerboard_workers.alignment.batches.rows",
    "steerboard_workers.alignment.examples",
    "steerboard_workers.alignment.head",
    "steerboard_workers.alignment.losses",
    "steerboard_workers.alignment.modules",
    "steerboard_workers.alignment.replay",
    "steerboard_workers.alignment.scratch",
    "steerboard_workers.alignment.segments",
    "steerboard_workers.stages.distributed.strategies",
    "steerboard_workers.stages.distributed.zero",
    "steerboard_workers.stages.models.adapted_layers",
    "steerboard_workers.stages.models.adapters",
    "steerboard_workers.stages.models.expert_adapters",
    "steerboard_workers.stages.models.model_io",
    "steerboard_workers.stages.models.norms",
    "steerboard_workers.stages.models.score_tokens",
    "steerboard_workers.stages.training.frozen.models",
    "steerboard_workers.stages.training.frozen.model",
    "steerboard_workers.stages.training.passes",
    "steerboard_workers.stages.training.setup",
)
LIBRARIES = ("torch", "transformers", "accelerate", "deepspeed", "peft", "bitsandbytes")
_WEIGHTS = ("*.safetensors", "config.json", "adapter_config.json")


@dataclass
class LogProbCost:
    """Device-seconds of log-probs that a run uses; `shared` are those that another run spent."""

    seconds: float = 0.0
    shared: float = 0.0


class LogProbCache:
    """Entries of one frozen model. Only the `main` process reads and writes them."""

    def __init__(
        self,
        folder: Path,
        *,
        attempt: int,
        writer: str,
        main: bool,
        weights: str,
        dtype: str,
        device: str,
        template: str,
        batcher: Batcher,
    ) -> None:
        identity = [weights, dtype, device, template, batcher.layout, batcher.share, batcher.pad_id, code_hash()]
        self._identity = json.dumps(identity).encode()
        self._writer = writer
        self._rows = ResumableRows(folder, attempt, ("key",), f"{writer}-") if main else None

    def __enter__(self) -> LogProbCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._rows is not None:
            self._rows.__exit__(kind, error, trace)

    def known(self, parts: Sequence[list[Example]], sharing: Strategy) -> list[NDArray[np.float32] | None]:
        """The kept values of each part, (values,) as `add` was given them, the same on every process; None: none."""
        shared: list[Any] = [None if self._rows is None else [self._of(part) for part in parts]]
        if sharing.accelerator.num_processes > 1:
            torch.distributed.broadcast_object_list(shared, src=0)
        return list(shared[0])

    def add(self, part: list[Example], values: NDArray[np.float32], seconds: float) -> None:
        """values (values,): what the pass over `part` read. `seconds`: what it cost, in device-seconds."""
        assert self._rows is not None
        key, kept = self._key(part), [float(value) for value in values]
        digest = _digest(key, kept)
        self._rows.add([{"key": key, "values": kept, "digest": digest, "seconds": seconds, "run": self._writer}])

    def cost(self, parts: Sequence[list[Example]]) -> LogProbCost:
        """The cost of these parts, whenever they were computed; nothing on other processes than the main one."""
        cost = LogProbCost()
        for part in parts if self._rows is not None else ():
            row = self._rows.rows.get((self._key(part),), {}) if self._rows is not None else {}
            seconds = row.get("seconds")
            if isinstance(seconds, float | int):
                cost.seconds += seconds
                cost.shared += seconds if row.get("run") != self._writer else 0.0
        return cost

    def _of(self, part: list[Example]) -> NDArray[np.float32] | None:
        assert self._rows is not None
        key = self._key(part)
        row = self._rows.rows.get((key,))
        values = row.get("values") if row else None
        sequences = sum(len(example.responses) for example in part)
        if row is None or not isinstance(values, list) or len(values) != sequences:
            return None
        if row.get("digest") != _digest(key, values):
            return None
        return np.array(values, dtype=np.float32)

    def _key(self, part: list[Example]) -> str:
        digest = hashlib.sha256(self._identity)
        for example in part:
            learned = example.prompt_supervised
            for ids in (example.prompt, *example.responses):
                digest.update(len(ids).to_bytes(8, "little") + np.ascontiguousarray(ids, dtype="<i4").tobytes())
            digest.update(b"." if learned is None else np.packbits(learned).tobytes() + b"!")
            digest.update(len(example.responses).to_bytes(8, "little"))
            digest.update(bytes(example.leads))
        return digest.hexdigest()


def _digest(key: str, values: Sequence[float]) -> str:
    """The digest of an entry, as it is in the file."""
    return hashlib.sha256(json.dumps([key, values]).encode()).hexdigest()[:16]


def weights_hash(folder: Path) -> str:
    """The hash of the files that decide what a model computes: weights and config, an adapter's with those of its
    base."""
    digest = hashlib.sha256()
    paths = {path.relative_to(folder).as_posix(): path for pattern in _WEIGHTS for path in folder.rglob(pattern)}
    for name, path in sorted(paths.items()):
        with path.open("rb") as file:
            digest.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\0".encode())
    return digest.hexdigest()


@cache
def code_hash() -> str:
    """The hash of `CODE`, and of the versions of `LIBRARIES`, of which a worker may lack some."""
    digest = hashlib.sha256()
    for module in CODE:
        digest.update(source_of(module) + b"\0")
    for library in LIBRARIES:
        digest.update(f"{library}=={version_of(library)}\0".encode())
    return digest.hexdigest()


def source_of(module: str) -> bytes:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_bytes()


def version_of(library: str) -> str | None:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None
