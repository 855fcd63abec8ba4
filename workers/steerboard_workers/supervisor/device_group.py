"""What a worker owns: devices of its machine and, with further nodes, those of the machines that work with it."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from steerboard.platform.settings import Settings
from steerboard.runs.tables import Run
from steerboard_contracts.fields import Config
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.placement import MEET_SECONDS, TOKEN_VARIABLE, RoleNodes, assign
from steerboard_contracts.run_config import stored_config
from steerboard_contracts.stage.spec import StageSpec
from steerboard_workers.memory import stage_memory


@dataclass(frozen=True)
class DeviceGroup:
    """`devices` are ids of this machine's GPUs; none means the processor. Node 0 of `nodes` claims runs, the others
    take their part in its training; all name the same `rendezvous` (host:port of node 0)."""

    devices: list[str] = field(default_factory=list)
    nodes: int = 1
    node: int = 0
    rendezvous: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if self.nodes < 1 or not 0 <= self.node < self.nodes:
            raise ValueError(f"node {self.node} of {self.nodes}: nodes are counted from 0")
        host, _, port = self.rendezvous.rpartition(":")
        if self.nodes > 1 and not (host and port.isdigit() and 0 < int(port) < 65536):
            raise ValueError(f"several nodes need a rendezvous host:port, not {self.rendezvous!r}")

    def roles(self, config: Config) -> RoleNodes | None:
        """The devices where the roles of a run work; None where all of them do on the devices that train.

        Raises `BadInput` (`placement_does_not_fit`)."""
        if not (isinstance(config, OnlineConfig) and config.placement.apart):
            return None
        units = config.placement.units(config.vllm.tensor_parallel if config.engine == "vllm" else 1)
        shares = assign(units, self.nodes, len(self.devices))
        host, _, port = self.rendezvous.rpartition(":")
        return RoleNodes(
            nodes=shares,
            node=self.node,
            devices=self.devices[shares[self.node].training :],
            takes_devices=bool(self.devices),
            # Next to where the processes meet that train.
            address=f"{host}:{int(port) + 1}" if self.nodes > 1 else "",
        )

    @property
    def count(self) -> int:
        return max(1, len(self.devices)) * self.nodes

    def described(self, spec: StageSpec) -> StageSpec:
        """The spec with the places of its roles. Raises `BadInput` (`placement_does_not_fit`)."""
        return spec.model_copy(update={"roles": self.roles(spec.config)})

    def launcher(self, run: Run, attempt: int) -> list[str]:
        """Options of Python that start the run's process as often as it needs; none for a single plain process, and on
        a node where none trains.

        Only training uses several devices together; a larger generation is cut into shards instead.
        """
        if run.kind != "train" or not self.trains(run):
            return []
        shares = self._training(run)
        if sum(shares) == 1 and run.config.get("strategy", "ddp") == "ddp":
            return []
        torchrun = ["-m", "torch.distributed.run", f"--nproc-per-node={shares[self.node]}"]
        if len(shares) == 1:
            return [*torchrun, "--standalone"]
        host, _, port = self.rendezvous.rpartition(":")
        return [
            *torchrun,
            f"--nnodes={len(shares)}",
            f"--node-rank={self.node}",
            f"--master-addr={host}",
            f"--master-port={port}",
            f"--rdzv-id={run.id}:{attempt}",
            f"--rdzv-conf=timeout={MEET_SECONDS}",
        ]

    def processes(self, kind: str) -> int:
        """How many of a run of this kind may compute on this machine at the same time."""
        return max(1, len(self.devices)) if kind == "train" else 1

    def trains(self, run: Run) -> bool:
        """Whether a process of this node trains."""
        return self.node < len(self._training(run))

    def _training(self, run: Run) -> list[int]:
        """Processes of each node that trains; these are the first ones."""
        roles = self.roles(stored_config(run.config))
        every = [max(1, len(self.devices))] * self.nodes
        return every if roles is None else [share.training for share in roles.nodes if share.training]


def role_variables(settings: Settings, spec: StageSpec) -> dict[str, str]:
    """What several nodes of an attempt with roles apart know each other by: all have the secret, or the address of the
    same database. One alone makes up its own."""
    if spec.roles is None or len(spec.roles.nodes) == 1:
        return {}
    secret = settings.secret_key.get_secret_value() or settings.database_url
    attempt = f"roles:{spec.run_id}:{spec.attempt}"
    return {TOKEN_VARIABLE: hmac.new(secret.encode(), attempt.encode(), "sha256").hexdigest()}


def process_memory(settings: Settings, group: DeviceGroup) -> int:
    """Bytes that each process of a stage may take of this machine's memory."""
    return stage_memory(settings) // max(1, len(group.devices))
