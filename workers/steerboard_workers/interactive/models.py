"""Models that stay loaded between requests, each in a process of its own: the least recently used ones leave when
memory is needed."""

from __future__ import annotations

import logging
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.platform.http.errors import NotFound
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.platform.storage.local_cache import LocalCache
from steerboard.registry import service as registry
from steerboard.registry.local_copies import materialise
from steerboard.registry.tables import Model
from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import Normaliser
from steerboard_workers.cpu_threads import model_share
from steerboard_workers.interactive.hosts import LOOK_SECONDS, ModelHost, Wanted, environment
from steerboard_workers.interactive.listed import ListedModels
from steerboard_workers.memory import machine_memory, stage_memory
from steerboard_workers.supervisor.warm_start import stage_parent

log = logging.getLogger(__name__)

_RAM_SHARE = 1 / 3
_GPU_SHARE = 0.7
# The memory of one process, whatever its model: on a CPU torch and transformers imported, on a GPU CUDA's context.
# Measured.
_PROCESS_BYTES = {"cpu": 300 << 20, "cuda": 500 << 20}
# The share of the machine's memory for one process, which has its model, caches and prompts in it.
_HOST_SHARE = 0.5
_PULSE_SECONDS = 1.0


class ModelTooLarge(BadInput):
    """The model alone needs more than the interactive worker may use."""

    code = "model_too_large"
    title = "The model is too large for the playground"


class NotAtHand(Exception):
    """A model would have to be loaded first."""


@dataclass(eq=False)
class HeldModel:
    """A model with its process. `hash` identifies its files, `normaliser` is a policy's, `size` is bytes of memory on
    `device`. Only the caller that made it `busy` uses it."""

    id: uuid.UUID
    project_id: uuid.UUID
    name: str
    hash: str
    normaliser: Normaliser | None
    size: int
    host: ModelHost
    device: str = "cpu"
    busy: bool = True
    loaded: bool = False


class ModelCache:
    """A cache of as many bytes of models as the settings allow, for any thread."""

    def __init__(
        self, sessions: sessionmaker[Session], store: ArtifactStore, cache: LocalCache, settings: Settings
    ) -> None:
        self._sessions = sessions
        self._store = store
        self._cache = cache
        self._settings = settings
        self._changed = threading.Condition()
        self._held: OrderedDict[uuid.UUID, HeldModel] = OrderedDict()
        self._listed = ListedModels()
        self._gpu_memory = 0
        self._closing = threading.Event()
        self.on_change: Callable[[], None] = lambda: None
        # All that were started, until they are closed.
        self._hosts: set[ModelHost] = set()
        # It imports everything ahead, so no one has to wait.
        self._parent = stage_parent(settings, environment("", self._threads()))
        self._pulse = threading.Thread(target=self._keep_alive, name="pulse", daemon=True)
        self._pulse.start()

    def holds(self) -> list[dict[str, str]]:
        """The rows of `workers.holds`."""
        with self._changed:
            return self._listed.rows()

    def at_hand(self, model_id: uuid.UUID | None) -> bool:
        """Whether a model is in memory."""
        with self._changed:
            held = self._held.get(model_id) if model_id else None
            return held is not None and held.loaded and not held.host.ended(0)

    @contextmanager
    def using(
        self, model_id: uuid.UUID | None, wanted: Wanted, *, load: bool = True, blind: bool = False
    ) -> Iterator[HeldModel]:
        """A model for this caller alone, loaded if need be. A caller that already holds one passes `load=False`, lest
        two callers wait for each other's memory, and gets `NotAtHand` if it is not in memory. A `blind` use is not to
        be noticed in the list of workers.

        Raises `NotFound`, `ModelTooLarge`, what materialising and loading raise, and what `wanted` does."""
        held = self._take(model_id, wanted, load)
        try:
            if not blind:
                with self._changed:
                    self._listed.used(held.id, held.project_id, held.name, held.size, self._limit(held.device))
                self.on_change()
            yield held
        finally:
            with self._changed:
                held.busy = False
                if held.host.killed or held.host.ended(0):
                    self._forget(held)
                    if not blind:
                        self._listed.remove(held.id)
                self._changed.notify_all()
            if not blind:
                self.on_change()

    def clear(self, *, blind: bool = False) -> None:
        """Forget all models that are not being used, and give their memory back; `blind` as for `using`."""
        with self._changed:
            for held in [model for model in self._held.values() if not model.busy]:
                self._forget(held)
            if not blind:
                self._listed.clear()
            self._changed.notify_all()
        if not blind:
            self.on_change()

    def close(self) -> None:
        """End all processes."""
        self._closing.set()
        self._pulse.join()
        with self._changed:
            self._held.clear()
            hosts = list(self._hosts)
        for host in hosts:
            host.kill()
        for host in hosts:
            self._close_host(host)
        if self._parent is not None:
            self._parent.close()

    # -- taking one up --------------------------------------------------------------------------------------------

    def _take(self, model_id: uuid.UUID | None, wanted: Wanted, load: bool) -> HeldModel:
        while True:
            with self._changed:
                held = self._held.get(model_id) if model_id else None
                if held is not None and not held.busy and held.host.ended(0):
                    self._forget(held)
                    held = None
                if held is not None and not held.busy:
                    held.busy = True
                    self._held.move_to_end(held.id)
                    return held
                if held is not None:
                    self._changed.wait(LOOK_SECONDS)
            if held is None:
                if not load:
                    raise NotAtHand
                model = self._load(model_id, wanted)
                if model is not None:
                    return model
            wanted()

    def _load(self, model_id: uuid.UUID | None, wanted: Wanted) -> HeldModel | None:
        """Returns None when someone else began to load it meanwhile."""
        with transaction(self._sessions) as session:
            model = session.get(Model, model_id) if model_id else None
            if model is None:
                raise NotFound("the model was deleted", code="unknown_model")
            manifest = registry.manifest_of(session, model)
        weights = sum(file["size"] for file in manifest.files if file["path"].endswith(".safetensors"))
        reward = model.role == "reward"
        given = model.info.get("normaliser")
        normaliser = Normaliser.model_validate(given) if given else None
        host = self._new_host()
        held = HeldModel(model.id, model.project_id, model.name, model.artifact_hash, normaliser, 0, host)
        try:
            device = held.host.wait_until_ready(wanted).device
            width = 2 if device == "cuda" and not reward else 4
            needed = int(model.info.get("parameters") or 0) * width or weights
            if not self._reserve(held, needed + _PROCESS_BYTES[device], device, wanted):
                self._close_host(held.host)
                return None
            log.info("loading %s", model.name)
            with ExitStack() as holds:
                folder = materialise(self._store, manifest, self._cache, holds)
                loaded = held.host.load(model.name, folder, reward=reward, wanted=wanted)
            self._gpu_memory = loaded.device_memory
            # What the files promised may differ from what they hold.
            self._resize(held, loaded.size + _PROCESS_BYTES[device], device)
            held.device, held.loaded = device, True
        except BaseException:
            with self._changed:
                self._forget(held)
                self._changed.notify_all()
            raise
        return held

    def _limit(self, device: str) -> int | None:
        """Bytes for all models; None while nothing is known of the GPU."""
        if self._settings.interactive_memory_mb is not None:
            return self._settings.interactive_memory_mb << 20
        if device == "cuda":
            return int(self._gpu_memory * _GPU_SHARE) or None
        return int(machine_memory() * _RAM_SHARE)

    def _reserve(self, held: HeldModel, needed: int, device: str, wanted: Wanted) -> bool:
        """Put it into the cache; False if it is already in it."""
        with self._changed:
            if held.id in self._held:
                return False
            self._held[held.id] = held
        self._resize(held, needed, device, wanted)
        return True

    def _resize(self, held: HeldModel, size: int, device: str, wanted: Wanted | None = None) -> None:
        """Let it have so many bytes, and others make room; those in use only if `wanted` sets a time limit.
        Raises `ModelTooLarge`."""
        limit = self._limit(device)
        if limit is not None and size > limit:
            raise ModelTooLarge(
                f"{held.name} needs {size >> 20} MB, and the interactive worker may use {limit >> 20} MB",
                hint="Raise STEERBOARD_INTERACTIVE_MEMORY_MB, or start an interactive worker on a larger machine.",
            )
        while True:
            with self._changed:
                others = [model for model in self._held.values() if model is not held]
                idle = [model for model in others if not model.busy]
                while limit is not None and sum(model.size for model in others) + size > limit and idle:
                    log.info("%s is unloaded to make room for %s", idle[0].name, held.name)
                    self._forget(idle[0])
                    others.remove(idle.pop(0))
                if limit is None or wanted is None or sum(model.size for model in others) + size <= limit:
                    held.size = size
                    return
                self._changed.wait(LOOK_SECONDS)
            wanted()

    def _forget(self, held: HeldModel) -> None:
        """The caller holds the lock."""
        if self._held.get(held.id) is held:
            del self._held[held.id]
        held.host.kill()
        threading.Thread(target=self._close_host, args=(held.host,), name="close-model", daemon=True).start()

    # -- processes ------------------------------------------------------------------------------------------------

    def _new_host(self) -> ModelHost:
        """Never under the lock: soon after the start it waits for the parent's imports."""
        memory = min(stage_memory(self._settings), int(machine_memory() * _HOST_SHARE))
        host = ModelHost(self._settings, memory=memory, threads=self._threads(), parent=self._parent)
        with self._changed:
            self._hosts.add(host)
        return host

    def _threads(self) -> int:
        with transaction(self._sessions) as session:
            return model_share(session, self._settings)

    def _close_host(self, host: ModelHost) -> None:
        with self._changed:
            if host not in self._hosts:
                return  # someone else does
            self._hosts.remove(host)
        host.close()

    def _keep_alive(self) -> None:
        while not self._closing.wait(_PULSE_SECONDS):
            with self._changed:
                hosts = list(self._hosts)
            for host in hosts:
                host.extend_lease()
