"""A project of a server: where everything begins."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from steerboard_client._async.connection import Connection
from steerboard_client._async.datasets import Dataset, Kind, upload
from steerboard_client._async.datasets import find as find_dataset
from steerboard_client._async.evaluations import Evaluation, create
from steerboard_client._async.evaluations import find as find_evaluation
from steerboard_client._async.models import Model
from steerboard_client._async.models import find as find_model
from steerboard_client._async.pipelines import Pipeline, launch
from steerboard_client._async.pipelines import find as find_pipeline
from steerboard_client._async.runs import Run, push, start
from steerboard_client._async.runs import find as find_run
from steerboard_client.address import address_of
from steerboard_client.schemas import DatasetOut, EvaluationOut, ModelOut, PipelineSummary, RunRow


class Board:
    """One project of a Steerboard server. Close it, or use it as a context."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def __aenter__(self) -> Board:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self.connection.aclose()

    def __repr__(self) -> str:
        return f"<Board {self.connection.project} at {self.connection.url}>"

    async def dataset(self, name: str) -> Dataset:
        """A dataset by name or id."""
        return await find_dataset(self.connection, name)

    async def datasets(self, *, limit: int | None = 50, **filters: Any) -> list[DatasetOut]:
        """The newest first; `filters` are those of the API, such as `kind`, `search` and `tag`."""
        return [DatasetOut.model_validate(row) async for row in self.connection.items("datasets", limit, **filters)]

    async def upload_dataset(
        self,
        name: str,
        data: Any,
        *,
        kind: Kind | None = None,
        mapping: Mapping[str, str] | None = None,
        bad_rows: Literal["refuse", "skip"] = "refuse",
    ) -> Dataset:
        """`data`: a file's path, a frame of pandas or polars, an Arrow table, a `Dataset`, or dicts. The kind
        is recognised by the columns unless given; `mapping` is {field: column}."""
        return await upload(self.connection, name, data, kind, mapping, bad_rows)

    async def model(self, name: str) -> Model:
        """A model by name, id, `PIPELINE.STAGE` or `@production`."""
        return await find_model(self.connection, name)

    async def models(self, *, limit: int | None = 50, **filters: Any) -> list[ModelOut]:
        """The newest first; `filters` are those of the API, such as `role`, `search` and `tag`."""
        return [ModelOut.model_validate(row) async for row in self.connection.items("models", limit, **filters)]

    async def push_model(
        self,
        model: str | Model,
        repo: str,
        *,
        private: bool = True,
        weights: Literal["merged", "adapter"] = "merged",
        base: str | None = None,
        licence: str | None = None,
        card: str | None = None,
        pool: str = "default",
    ) -> Run:
        """Starts the run that sends a model to a repository of the hub (`org/name`). `weights` and `base` are of LoRA
        models; `card`: another README.md than the generated one. Its `info.summary` has the commit and the URL."""
        body = {"weights": weights, "base": base, "private": private, "licence": licence, "card": card, "pool": pool}
        return await push(self.connection, "models", model, repo, body)

    async def push_dataset(
        self,
        dataset: str | Dataset,
        repo: str,
        *,
        private: bool = True,
        licence: str | None = None,
        card: str | None = None,
        pool: str = "default",
    ) -> Run:
        """Starts the run that sends a dataset to a repository of the hub, like `push_model`."""
        body = {"private": private, "licence": licence, "card": card, "pool": pool}
        return await push(self.connection, "datasets", dataset, repo, body)

    async def launch(
        self, recipe: str | Path, *, reuse: bool = True, from_stage: str | None = None, **settings: Any
    ) -> Pipeline:
        """Starts a recipe: a shipped one by name, a file, or YAML. Inputs and fields are keywords; `sft__lr=1e-5` is a
        stage's. Handles may be given as inputs."""
        return await launch(self.connection, recipe, reuse, from_stage, settings)

    async def pipeline(self, name: str) -> Pipeline:
        return await find_pipeline(self.connection, name)

    async def pipelines(self, *, limit: int | None = 50, **filters: Any) -> list[PipelineSummary]:
        """The newest first."""
        items = self.connection.items("pipelines", limit, **filters)
        return [PipelineSummary.model_validate(item) async for item in items]

    async def start(
        self, kind: str, *, name: str | None = None, reuse: bool = True, pool: str = "default", **settings: Any
    ) -> Run:
        """Starts one run: of a kind such as `generate`, or by a training method such as `dpo`. Inputs, such as `model`
        and `data`, and fields of its config are keywords."""
        return await start(self.connection, kind, name, reuse, pool, settings)

    async def run(self, ref: str) -> Run:
        """A run by id, or `PIPELINE.STAGE`."""
        return await find_run(self.connection, ref)

    async def runs(self, *, limit: int | None = 50, **filters: Any) -> list[RunRow]:
        """The newest first; `filter="eval_loss < 1.2 tag:keep"` as in the dashboard."""
        return [RunRow.model_validate(row) async for row in self.connection.items("runs", limit, **filters)]

    async def evaluate(
        self, name: str, *, prompts: Any, entrants: Sequence[Any], rewards: Sequence[Any] = (), **settings: Any
    ) -> Evaluation:
        """Begins an evaluation. `prompts`: a dataset, whose held-out rows are asked, or `{"set": NAME}`; `entrants`:
        models, names, or `{"model": ..., "score": 5.0}`; `rewards`: reward models."""
        return await create(self.connection, name, prompts, entrants, rewards, settings)

    async def evaluation(self, name: str) -> Evaluation:
        return await find_evaluation(self.connection, name)

    async def evaluations(self, *, limit: int | None = 50, **filters: Any) -> list[EvaluationOut]:
        """The newest first."""
        items = self.connection.items("evaluations", limit, **filters)
        return [EvaluationOut.model_validate(item) async for item in items]


def connect(
    url: str | None = None, token: str | None = None, *, project: str | None = None, timeout: float = 60.0
) -> Board:
    """The board of a project: at `url` with `token`, else of STEERBOARD_URL and STEERBOARD_TOKEN, else as the command
    line signed in on this machine. Raises `ServerUnreachable` (`no_server`) and `BadInput`."""
    where, with_token = address_of(url, token)
    return Board(Connection(where, with_token, project or os.environ.get("STEERBOARD_PROJECT", "default"), timeout))
