"""One node of the Ray cluster of one attempt: it starts with the stage, and nothing of it outlives the stage."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from steerboard_contracts.errors import EngineMissing
from steerboard_contracts.placement import TOKEN_VARIABLE, RoleNodes
from steerboard_workers.engines.watchdog import EngineFailed

# How long nodes may take to meet.
MEET_SECONDS = 300.0
# Where a unit finds stage.json of its own node.
STAGE_VARIABLE = "STEERBOARD_ROLE_STAGE"
# Sockets have short paths, and a stage's directory may be deep. The number is of the process that removes it.
_FOLDERS = Path("/tmp")
_FOLDER = "steerboard-roles-"
# Of one process of several that train together: no unit is one of them.
_OF_TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")
# Lines of what Ray wrote last.
_SHOWN = 5
# Enough to name any unit's need of its node.
_SLOTS = 10_000


def node_resource(node: int) -> str:
    """What only node `node` has, by which a unit is placed there."""
    return f"node{node}"


def variables(token: str) -> dict[str, str]:
    """Of every process that speaks with Ray: a caller without the token is refused."""
    return {
        "RAY_AUTH_MODE": "token",
        TOKEN_VARIABLE: token,
        "RAY_USAGE_STATS_ENABLED": "0",
        # Memory is the guardian's concern, which ends a stage as a whole.
        "RAY_memory_monitor_refresh_ms": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }


class RayNode:
    """Started by the process that leads this node; `close` ends it, and so does the end of that process."""

    def __init__(self, stage: Path, roles: RoleNodes, address: str, token: str, *, store_bytes: int) -> None:
        """`stage`: its directory. `address`: of the head, which is node 0; others wait for it. `store_bytes`: of the
        memory through which units get what is large.

        Raises `EngineMissing`, and `EngineFailed` where the head does not come."""
        if importlib.util.find_spec("ray") is None:
            raise EngineMissing("Ray is not installed on this machine", hint="Install steerboard[ray] for the workers.")
        self._folder = _FOLDERS / f"{_FOLDER}{os.getpid()}"
        host = address.rpartition(":")[0]
        options = [
            f"--num-gpus={len(roles.devices)}",
            "--num-cpus=0",
            f"--resources={json.dumps({node_resource(roles.node): _SLOTS})}",
            f"--object-store-memory={store_bytes}",
            "--disable-usage-stats",
            "--block",
        ]
        if roles.node:
            await_head(address)
            options += [f"--address={address}"]
            options += [f"--node-ip-address={host}"] if _is_here(host) else []
        else:
            _sweep()
            self._folder.mkdir()
            options += ["--head", f"--node-ip-address={host}", f"--port={address.rpartition(':')[2]}"]
            options += ["--include-dashboard=false", f"--temp-dir={self._folder}"]
        self._log = stage / "ray.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", *options],
                env={**_clean(os.environ), **variables(token), STAGE_VARIABLE: str(stage), **_visible(roles.devices)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def check(self) -> None:
        """Raises `EngineFailed` where it has ended."""
        if self._process.poll() is not None:
            raise self._ended()

    def wait(self) -> NoReturn:
        """Until it ends by itself. Raises `EngineFailed`."""
        self._process.wait()
        raise self._ended()

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ended(self) -> EngineFailed:
        last = self._log.read_text(errors="replace").strip().splitlines()[-_SHOWN:]
        return EngineFailed(f"Ray ended with status {self._process.returncode}", hint=" / ".join(last) or None)


def await_head(address: str) -> None:
    """Raises `EngineFailed`."""
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + MEET_SECONDS
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise EngineFailed(
                    f"the first node's Ray at {address} does not answer: {error}",
                    hint="Open the port after the rendezvous between the worker's nodes.",
                ) from error
            time.sleep(0.2)


def _is_here(host: str) -> bool:
    """Whether nodes that meet at this address are all on one machine."""
    return host == "localhost" or host.startswith("127.")


def _sweep() -> None:
    """Remove what killed processes could not."""
    for folder in _FOLDERS.glob(f"{_FOLDER}*"):
        if not Path(f"/proc/{folder.name.removeprefix(_FOLDER)}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name not in _OF_TORCHRUN and not name.startswith("TORCHELASTIC_")
    }


def _visible(devices: list[str]) -> dict[str, str]:
    return {"CUDA_VISIBLE_DEVICES": ",".join(devices)} if devices else {}
