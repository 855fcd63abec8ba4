"""One node of the Ray cluster of one attempt: it starts with the stage, and nothing of it outlives the stage."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from steerboard_contracts.errors import EngineMissing
from steerboard_contracts.placement import MEET_SECONDS, TOKEN_VARIABLE, RoleNodes
from steerboard_workers.engines.vllm.watchdog import EngineFailed
from steerboard_workers.stages.roles.node_folder import NodeFolder
from steerboard_workers.stages.roles.node_missing import NodeMissing

# Where a unit finds stage.json of its own node.
STAGE_VARIABLE = "STEERBOARD_ROLE_STAGE"
# Variables of one process of several that train together: no unit is one of them.
_OF_TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")
# Lines of what Ray wrote last.
_SHOWN = 5
# Enough to name any unit's need of its node.
_SLOTS = 10_000


def node_resource(node: int) -> str:
    """What only node `node` has, by which a unit is placed there."""
    return f"node{node}"


def variables(token: str) -> dict[str, str]:
    """The variables of every process that speaks with Ray: a caller without the token is refused."""
    return {
        "RAY_AUTH_MODE": "token",
        TOKEN_VARIABLE: token,
        "RAY_USAGE_STATS_ENABLED": "0",
        # Memory is the guardian's concern, which ends a stage as a whole.
        "RAY_memory_monitor_refresh_ms": "0",
        # Ray's own is 15: units would starve behind whatever else the machine does.
        "RAY_worker_niceness": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }


class RayNode:
    """Started by the process that leads this node; `close` ends it, and so does the end of that process."""

    def __init__(self, stage: Path, roles: RoleNodes, address: str, token: str, *, store_bytes: int) -> None:
        """`stage`: its directory. `address`: of the head, which is node 0; others wait for it. `store_bytes`: of the
        memory through which units get what is large.

        Raises `EngineMissing`, and `NodeMissing` where the head does not come."""
        if importlib.util.find_spec("ray") is None:
            raise EngineMissing("Ray is not installed on this machine", hint="Install steerboard[ray] for the workers.")
        if roles.node:
            await_head(address)
        self._log = stage / "ray.log"
        self._folder = NodeFolder(token)
        try:
            options = node_options(roles, resolved(address), self._folder.path, store_bytes)
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "ray.scripts.scripts", "start", *options],
                    env={
                        **_clean(os.environ),
                        **variables(token),
                        STAGE_VARIABLE: str(stage),
                        **_visible(roles.devices),
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
        except BaseException:
            self._folder.close()
            raise

    def check(self) -> None:
        """Raises `EngineFailed` where it has ended."""
        if self._process.poll() is not None:
            raise self._ended()

    def wait(self) -> NoReturn:
        """Waits until it ends by itself. Raises `EngineFailed`."""
        self._process.wait()
        raise self._ended()

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.close()

    def _ended(self) -> EngineFailed:
        last = self._log.read_text(errors="replace").strip().splitlines()[-_SHOWN:]
        return EngineFailed(f"Ray ended with status {self._process.returncode}", hint=" / ".join(last) or None)


def node_options(roles: RoleNodes, address: str, folder: Path, store_bytes: int) -> list[str]:
    """The options of `ray start`. `address`: of the head, with an IP."""
    host, _, port = address.rpartition(":")
    options = [
        f"--num-gpus={len(roles.devices)}",
        "--num-cpus=0",
        f"--resources={json.dumps({node_resource(roles.node): _SLOTS})}",
        f"--object-store-memory={store_bytes}",
        "--disable-usage-stats",
        "--block",
    ]
    if roles.node:
        return [*options, f"--address={address}", *([f"--node-ip-address={host}"] if _is_here(host) else [])]
    # No monitor, which would start and stop nodes: those of a worker are all there are.
    head = ["--head", f"--node-ip-address={host}", f"--port={port}", "--include-dashboard=false", "--no-monitor"]
    return [*options, *head, f"--temp-dir={folder}"]


def resolved(address: str) -> str:
    """host:port with the host's IP, which is all that Ray takes for a node's own. Raises `NodeMissing`."""
    host, _, port = address.rpartition(":")
    try:
        addresses = [
            str(info[4][0]) for info in socket.getaddrinfo(host, int(port), socket.AF_INET, socket.SOCK_STREAM)
        ]
    except OSError as error:
        raise NodeMissing(
            f"the rendezvous host {host} has no IP address: {error}", hint="Correct --rendezvous of the worker's nodes."
        ) from error
    # Many machines know their own name by an address at which no one else reaches them.
    return f"{next((candidate for candidate in addresses if not _is_here(candidate)), addresses[0])}:{port}"


def await_head(address: str) -> None:
    """Raises `NodeMissing`."""
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + MEET_SECONDS
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise NodeMissing(
                    f"Ray of node 0 of this worker does not answer at {address}: {error}",
                    hint="Open the port after the rendezvous between the worker's nodes.",
                ) from error
            time.sleep(0.2)


def _is_here(host: str) -> bool:
    """Whether nodes that meet at this address are all on one machine."""
    return host.startswith("127.")


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name not in _OF_TORCHRUN and not name.startswith("TORCHELASTIC_")
    }


def _visible(devices: list[str]) -> dict[str, str]:
    return {"CUDA_VISIBLE_DEVICES": ",".join(devices)} if devices else {}
