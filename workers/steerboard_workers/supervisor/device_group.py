"""What a worker owns: devices of its machine and, with further nodes, those of the machines that work with it."""

from __future__ import annotations

from dataclasses import dataclass, field

from steerboard.platform.settings import Settings
from steerboard.runs.tables import Run
from steerboard_workers.memory import stage_memory

# How long the first node waits for the others, and they for it, before a run's attempt is given up.
MEET_SECONDS = 300


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

    @property
    def count(self) -> int:
        return max(1, len(self.devices)) * self.nodes

    def launcher(self, run: Run, attempt: int) -> list[str]:
        """Options of Python that start the run's process as often as it needs; none for a single plain process.

        Only training uses several devices together; a larger generation is cut into shards instead.
        """
        if run.kind != "train" or (self.count == 1 and run.config.get("strategy", "ddp") == "ddp"):
            return []
        torchrun = ["-m", "torch.distributed.run", f"--nproc-per-node={max(1, len(self.devices))}"]
        if self.nodes == 1:
            return [*torchrun, "--standalone"]
        host, _, port = self.rendezvous.rpartition(":")
        return [
            *torchrun,
            f"--nnodes={self.nodes}",
            f"--node-rank={self.node}",
            f"--master-addr={host}",
            f"--master-port={port}",
            f"--rdzv-id={run.id}:{attempt}",
            f"--rdzv-conf=timeout={MEET_SECONDS}",
        ]


def process_memory(settings: Settings, group: DeviceGroup) -> int:
    """Bytes that each process of a stage may take of this machine's memory."""
    return stage_memory(settings) // max(1, len(group.devices))
