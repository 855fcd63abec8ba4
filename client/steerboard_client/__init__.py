"""Steerboard from Python: `import steerboard_client as sb; board = sb.connect()`.

`steerboard_client.aio` has the same names for asyncio.
"""

from steerboard_client._sync.board import Board, connect
from steerboard_client._sync.datasets import Dataset
from steerboard_client._sync.evaluations import Evaluation
from steerboard_client._sync.models import Model
from steerboard_client._sync.pipelines import Pipeline
from steerboard_client._sync.runs import Run
from steerboard_client.errors import ApiError, BadInput, RunFailed, ServerUnreachable, SteerboardError, WaitTimeout

__all__ = [
    "ApiError",
    "BadInput",
    "Board",
    "Dataset",
    "Evaluation",
    "Model",
    "Pipeline",
    "Run",
    "RunFailed",
    "ServerUnreachable",
    "SteerboardError",
    "WaitTimeout",
    "connect",
]
