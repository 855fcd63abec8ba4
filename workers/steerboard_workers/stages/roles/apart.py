"""The roles of a run that work apart from its training, as each process that trains has them."""

from __future__ import annotations

import os

import torch

from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.placement import TOKEN_VARIABLE
from steerboard_contracts.specs.method import Frozen
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.modules import PolicyModule
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.roles.cluster import Cluster
from steerboard_workers.stages.roles.placed_model import PlacedModel
from steerboard_workers.stages.roles.placed_sampler import PlacedSampler
from steerboard_workers.stages.roles.placed_unit import PlacedUnit
from steerboard_workers.stages.roles.ray_node import RayNode
from steerboard_workers.stages.roles.shared_memory import store_bytes
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.frozen.model import FrozenModel
from steerboard_workers.stages.training.passes import Reader
from steerboard_workers.stages.training.setup import Setup


class RolesApart:
    """The first process has the cluster, the first one of each further node that node's part of it, the others
    nothing. Every process makes the same calls."""

    def __init__(self, stage: Stage, config: OnlineConfig, sharing: Strategy) -> None:
        """Raises `EngineMissing`, `OutOfMemory`, and `NodeMissing` where nodes do not come."""
        roles = stage.spec.roles
        assert roles is not None
        self._stage = stage
        self._config = config
        self._sharing = sharing
        self._cluster: Cluster | None = None
        self._node: RayNode | None = None
        self._frozen: dict[str, list[PlacedUnit]] = {}
        with stage.phases.measure("load"):
            if sharing.accelerator.is_main_process:
                stage.progress(0, 1, "models", "waiting for the nodes of roles apart")
                self._cluster = Cluster(stage, roles)
            elif roles.nodes[roles.node].units and os.environ.get("LOCAL_RANK") == "0":
                token = os.environ[TOKEN_VARIABLE]
                room = store_bytes(stage, roles)
                self._node = RayNode(stage.directory, roles, roles.address, token, store_bytes=room)

    def places(self, frozen: Frozen) -> bool:
        return self._config.placement.copies(frozen.role) > 0

    def sampler(self, start: Setup, module: PolicyModule) -> PlacedSampler:
        return PlacedSampler(self._cluster, self._config, start, module, self._sharing, self._stage.phases)

    def open(self, frozen: Frozen, model: FrozenModel, examples: list[Example], share: bool) -> Reader:
        """A copy of the model with each unit of its role."""
        units = self._units(frozen)
        asked = [unit.ask("add", model, examples, share, kept=model.name) for unit in units]
        batchers = [opened.answer() for opened in asked][:1] or [None]
        if self._sharing.accelerator.num_processes > 1:
            torch.distributed.broadcast_object_list(batchers, src=0)
        copies = self._config.placement.copies(frozen.role)
        return Reader(None, batchers[0], elsewhere=PlacedModel(model.name, copies, units, self._sharing))

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
        if self._node is not None:
            self._node.close()

    def _units(self, frozen: Frozen) -> list[PlacedUnit]:
        if self._cluster is None:
            return []
        if frozen.role not in self._frozen:
            self._frozen[frozen.role] = self._cluster.units(frozen.role)
            for opened in [unit.ask("open", frozen.role, kept="open") for unit in self._frozen[frozen.role]]:
                opened.answer()
        return self._frozen[frozen.role]
