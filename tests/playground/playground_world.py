"""A project with tiny models, a real server before it, and interactive workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import torch
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker
from transformers import LlamaForSequenceClassification

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.loading import import_file
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import register_model
from steerboard_contracts.conditions.format import Attribute, ConditionFormat
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.prompts import Normaliser, ScoreScale
from steerboard_contracts.run_kinds.base import BaseModelConfig
from steerboard_workers.interactive.worker import InteractiveWorker
from steerboard_workers.stages.base import random_llama, train_tokenizer
from steerboard_workers.stages.models.model_saving import save_model
from support.patience import PATIENCE, wait_until
from support.rows.other_token import token_headers

WORDS = ("red", "green", "blue", "apple", "pear", "house", "tree")
WINDOW = 2048
ENDED = ("succeeded", "failed", "cancelled")
HASH = "the reward model's hash"
# Asked for two attributes; verbosity is left out unless asked for.
STEERED = ConditionFormat(
    attributes=(
        Attribute(name="helpfulness", low=0, high=4, step=1, decimals=0, default=4),
        Attribute(name="verbosity", low=0, high=4, step=1, decimals=0),
    )
)


def write_models(folder: Path) -> None:
    """`dt` (a decision-transformer policy), `sft` and `reward`: random weights far from uniform."""
    texts = [f"User: say {word} Assistant: {word} {word}" for word in WORDS]
    tokenizer = train_tokenizer(texts * 20, 400, WINDOW)
    config = BaseModelConfig(source="random:tiny-llama", hidden=64, layers=2, heads=2, max_length=WINDOW)
    policy = random_llama(config, tokenizer)
    _randomise(policy)
    with torch.no_grad():
        # Never the likeliest tokens: the end, so that greedy answers are as long as they may be, and whatever is no
        # whole character, which every decoder shows in its own way.
        weight = policy.get_input_embeddings().weight
        weight[[token for token in range(len(weight)) if not _shown(tokenizer, token)]] = 0
    judge = LlamaForSequenceClassification(type(policy.config)(**{**policy.config.to_dict(), "num_labels": 1}))
    _randomise(judge)
    common = {"architecture": "LlamaForCausalLM", "parameters": policy.num_parameters(), "max_length": WINDOW}
    normaliser = Normaliser(mean=1.0, sd=2.0, n=10, reward_source="reward", reward_model_hash=HASH)
    infos = {
        "dt": ModelInfo(
            role="policy",
            method="decision_transformer",
            normaliser=normaliser,
            condition=ConditionFormat.of_score(),
            score_scale=ScoreScale(normaliser=normaliser),
            **common,
        ),
        "steered": ModelInfo(role="policy", method="steerlm", condition=STEERED, **common),
        "worded": ModelInfo(
            role="policy",
            method="decision_transformer",
            condition=ConditionFormat.of_score(style="words", place="request", phrase="say {}"),
            **common,
        ),
        "sft": ModelInfo(role="sft", method="sft", **common),
        "reward": ModelInfo(role="reward", method="reward_model", **common),
    }
    for name, info in infos.items():
        save_model(folder / name, judge if name == "reward" else policy, tokenizer, info)


def _shown(tokenizer: Any, token: int) -> bool:
    text = tokenizer.decode([token], skip_special_tokens=True)
    return bool(text) and text.isascii() and text.isprintable()


def _randomise(model: Any) -> None:
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(std=0.5)
    model.eval()


class PlaygroundWorld:
    """`client` may do everything; `url` is of a server that streams."""

    def __init__(
        self,
        client: httpx.Client,
        url: str,
        token: str,
        sessions: sessionmaker[Session],
        project: Project,
        settings: Settings,
        store: ArtifactStore,
        folders: Path,
    ) -> None:
        self.client, self.address, self.token = client, url, token
        self.sessions, self.project, self.settings, self.store, self.folders = (
            sessions,
            project,
            settings,
            store,
            folders,
        )
        self.asks_in = "default"
        for name in ("reward", "dt", "sft"):
            self.register(name, name)

    def register(self, name: str, kind: str | Path, project: str = "default") -> str:
        """Another model of the same weights, or of any other folder. A policy's normaliser is about `reward`."""
        folder = self.folders / kind
        with transaction(self.sessions) as session:
            info = ModelInfo.model_validate_json((folder / "steerboard.json").read_text())
            model = register_model(
                session,
                self.store,
                session.scalars(select(Project).where(Project.name == project)).one(),
                name=name,
                folder=folder,
                role=info.role,
                method=info.method,
                parent_id=None,
                run_id=None,
            )
            if kind == "reward":
                self.reward_hash = model.artifact_hash
            return str(model.id)

    def dataset(self, name: str, prompts: int) -> None:
        path = self.settings.home / f"{name}.jsonl"
        path.write_text("".join(json.dumps({"prompt": f"say red {i}"}) + "\n" for i in range(prompts)))
        with transaction(self.sessions) as session:
            import_file(session, session.merge(self.project), path=path, name=name, kind="prompts")

    def path(self, path: str) -> str:
        return f"/api/v1/projects/{self.asks_in}/playground/{path}"

    @contextmanager
    def in_project(self, name: str) -> Iterator[None]:
        """Ask in another project, which is made if need be."""
        self.client.post("/api/v1/projects", json={"name": name})
        self.asks_in = name
        yield
        self.asks_in = "default"

    def get(self, path: str, status: int = 200, **params: Any) -> Any:
        answer = self.client.get(self.path(path), params=params)
        assert answer.status_code == status, answer.text
        return answer.json()

    def post(self, path: str, json: Any = None, status: int = 201, headers: dict[str, str] | None = None) -> Any:
        answer = self.client.post(self.path(path), json=json, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    def compare(self, *columns: dict[str, Any], status: int = 201, **fields: Any) -> Any:
        body = {"prompt": "say red", "columns": list(columns), **fields}
        return self.post("comparisons", body, status=status)

    def comparison(self, made: Any) -> Any:
        return self.get(f"comparisons/{made['id']}")

    def finish(self, made: Any, seconds: float = PATIENCE) -> Any:
        """The comparison, when all of its answers have ended."""
        wait_until(lambda: self.comparison(made)["ended_at"] is not None, seconds=seconds)
        return self.comparison(made)

    def finish_curve(self, made: Any, seconds: float = PATIENCE) -> Any:
        wait_until(lambda: self.get(f"curves/{made['id']}")["state"] in ENDED, seconds=seconds)
        return self.get(f"curves/{made['id']}")

    def limited_token(self, *scopes: str) -> dict[str, str]:
        return token_headers(self.sessions, self.project.id, *scopes)

    def stream(self, made: Any) -> Iterator[tuple[str, Any]]:
        """(event, data) of a comparison's stream until its end."""
        url = self.address + self.path(f"comparisons/{made['id']}/stream")
        with httpx.stream("GET", url, headers={"Authorization": f"Bearer {self.token}"}, timeout=PATIENCE) as response:
            assert response.status_code == 200
            event = ""
            for line in response.iter_lines():
                if line.startswith("event: "):
                    event = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield event, json.loads(line.removeprefix("data: "))


def model_processes(of: int | None = None) -> dict[int, psutil.Process]:
    """Living processes of models by their id; below this process or another one.

    Those of a whole platform that other tests keep running below this process are not meant."""
    processes = {}
    below = psutil.Process(of).children()
    while below:
        process = below.pop()
        with suppress(psutil.Error):
            line = process.cmdline()
            if "up" in line:
                continue
            if "steerboard_workers.model_host" in line and not any("guardian" in word for word in line):
                processes[process.pid] = process
            below += process.children()
    return processes


@contextmanager
def working(settings: Settings) -> Iterator[InteractiveWorker]:
    """A worker in a thread of this process, which spares the import of torch."""
    worker = InteractiveWorker(settings, devices=[])
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(timeout=PATIENCE)
        assert not thread.is_alive()


@contextmanager
def worker_process(log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker as it is started by `steerboard worker --pool interactive`."""
    with log.open("ab") as out:
        command = [sys.executable, "-m", "steerboard.cli.main", "worker", "--pool", "interactive"]
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
