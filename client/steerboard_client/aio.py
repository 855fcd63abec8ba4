"""The client for asyncio: `from steerboard_client import aio as sb; async with sb.connect() as board: ...`."""

from steerboard_client._async.board import Board, connect
from steerboard_client._async.datasets import Dataset
from steerboard_client._async.evaluations import Evaluation
from steerboard_client._async.models import Model
from steerboard_client._async.pipelines import Pipeline
from steerboard_client._async.runs import Run
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
