"""Models that stay loaded between requests: the least recently used ones leave when memory is needed."""

from __future__ import annotations

import gc
import logging
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import psutil
import torch
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.artifacts import ArtifactStore
from steerboard.platform.database import transaction
from steerboard.platform.errors import NotFound
from steerboard.platform.local_cache import LocalCache
from steerboard.registry import service as registry
from steerboard.registry.local_copies import materialise
from steerboard.registry.tables import Model
from steerboard_contracts.errors import BadInput
from steerboard_workers.stages.loading import LoadedModel, load_policy, load_reward_model, pick_device

log = logging.getLogger(__name__)

_RAM_SHARE = 1 / 3
_GPU_SHARE = 0.7


class ModelTooLarge(BadInput):
    """The model alone needs more than the interactive worker may use."""

    code = "model_too_large"
    title = "The model is too large for the playground"


@dataclass(frozen=True)
class HeldModel:
    """A loaded model. `hash` identifies its files, `size` is bytes of memory."""

    id: uuid.UUID
    project_id: uuid.UUID
    name: str
    hash: str
    size: int
    loaded: LoadedModel


def default_limit() -> int:
    """Bytes: what training and everything else can spare."""
    if torch.cuda.is_available():
        return int(torch.cuda.get_device_properties(0).total_memory * _GPU_SHARE)
    return int(psutil.virtual_memory().total * _RAM_SHARE)


class ModelCache:
    """At most `limit` bytes of models. One thread loads and uses them; `holds` may be called from any."""

    def __init__(self, sessions: sessionmaker[Session], store: ArtifactStore, cache: LocalCache, limit: int) -> None:
        self._sessions = sessions
        self._store = store
        self._cache = cache
        self._lock = threading.Lock()
        self._held: OrderedDict[uuid.UUID, HeldModel] = OrderedDict()
        self.limit = limit
        self.on_change: Callable[[], None] = lambda: None

    def holds(self) -> list[dict[str, str]]:
        """As `workers.holds`, most recently used first."""
        with self._lock:
            return [{"project_id": str(held.project_id), "name": held.name} for held in reversed(self._held.values())]

    def loaded(self, model_id: uuid.UUID) -> HeldModel | None:
        """A model, if it is in memory; nothing is loaded."""
        with self._lock:
            held = self._held.get(model_id)
            if held is not None:
                self._held.move_to_end(model_id)
            return held

    def get(self, model_id: uuid.UUID | None) -> HeldModel:
        """A model, loaded if need be. Raises `NotFound`, `ModelTooLarge`, and what materialising and loading raise."""
        held = self.loaded(model_id) if model_id else None
        if held is not None:
            return held
        with transaction(self._sessions) as session:
            model = session.get(Model, model_id) if model_id else None
            if model is None:
                raise NotFound("the model was deleted", code="unknown_model")
            self._make_room(model.name, self._expected(session, model))
            manifest = registry.manifest_of(session, model)
        log.info("loading %s", model.name)
        with ExitStack() as holds:
            folder = materialise(self._store, manifest, self._cache, holds)
            loaded = load_reward_model(folder) if model.role == "reward" else load_policy(folder)
        held = HeldModel(model.id, model.project_id, model.name, model.artifact_hash, _size(loaded), loaded)
        # What the files promised may differ from what they hold.
        self._make_room(model.name, held.size)
        with self._lock:
            self._held[model.id] = held
        self.on_change()
        return held

    def clear(self) -> None:
        """Forget all models and give their memory back."""
        with self._lock:
            self._held.clear()
        _give_back()
        self.on_change()

    def _expected(self, session: Session, model: Model) -> int:
        parameters = int(model.info.get("parameters") or 0)
        width = 2 if pick_device().type == "cuda" and model.role != "reward" else 4
        files = registry.manifest_of(session, model).files
        weights = sum(file["size"] for file in files if file["path"].endswith(".safetensors"))
        return parameters * width or weights

    def _make_room(self, name: str, needed: int) -> None:
        if needed > self.limit:
            raise ModelTooLarge(
                f"{name} needs {needed >> 20} MB, and the interactive worker may use {self.limit >> 20} MB",
                hint="Raise STEERBOARD_INTERACTIVE_MEMORY_MB, or start an interactive worker on a larger machine.",
            )
        evicted = False
        with self._lock:
            while self._held and sum(held.size for held in self._held.values()) + needed > self.limit:
                _, held = self._held.popitem(last=False)
                log.info("%s leaves memory for %s", held.name, name)
                evicted = True
                del held
        if evicted:
            _give_back()


def _size(loaded: LoadedModel) -> int:
    tensors = {tensor.data_ptr(): tensor for tensor in (*loaded.model.parameters(), *loaded.model.buffers())}
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def _give_back() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
