"""A node of which no device trains: `python -m steerboard_workers.stages.roles.node DIR` in place of the stage."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.placement import TOKEN_VARIABLE
from steerboard_workers.stages.roles.ray_node import RayNode
from steerboard_workers.stages.roles.shared_memory import store_bytes
from steerboard_workers.stages.runtime import EventWriter, Stage, failed


def main(directory: Path) -> int:
    """Runs until the first node's attempt is over, whereupon this process is ended."""
    events = EventWriter.take_stdout()
    try:
        stage = Stage.open(directory, events)
        roles = stage.spec.roles
        assert roles is not None
        token = os.environ[TOKEN_VARIABLE]
        RayNode(directory, roles, roles.address, token, store_bytes=store_bytes(stage, roles)).wait()
    except SteerboardError as error:
        traceback.print_exc()
        events.write(failed(error))
        return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
