"""A project with tiny models of random weights, its API, and runs worked off as a worker would."""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import torch
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker
from transformers import LlamaForSequenceClassification

from steerboard.accounts.tables import Membership, Project, User
from steerboard.datasets.imports.loading import import_file
from steerboard.evaluation.tables import PromptSet
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import register_model
from steerboard.registry.tables import Model
from steerboard.runs import inputs
from steerboard.runs.results import outputs
from steerboard.runs.state import attempt_outcomes, claims
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.claims import Claim
from steerboard.runs.state.sweeper import settle_all
from steerboard.runs.tables import Run, RunInput
from steerboard_contracts.conditions.format import Attribute, ConditionFormat
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.prompts import Normaliser, ScoreScale
from steerboard_contracts.run_kinds.base import BaseModelConfig
from steerboard_contracts.stage.events import StageEvent
from steerboard_workers.stages.__main__ import MODULES
from steerboard_workers.stages.base import random_llama, train_tokenizer
from steerboard_workers.stages.models.model_saving import save_model
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.supervisor.device_group import DeviceGroup
from steerboard_workers.supervisor.execution import Supervisor
from steerboard_workers.supervisor.preparation import prepare
from steerboard_workers.supervisor.workspace import Workspace
from support.rows.ended_run import ended_run
from support.rows.other_token import token_headers
from support.rows.run_world import World

WORDS = ("red", "green", "blue", "apple", "pear", "house", "tree")
WINDOW = 256
SHORT = {"temperature": 0.0, "max_new_tokens": 6}
SAMPLED = {"temperature": 1.0, "max_new_tokens": 6}
# Asked for two attributes; verbosity is left out unless asked for.
STEERED = ConditionFormat(
    attributes=(
        Attribute(name="helpfulness", low=0, high=4, step=1, decimals=0, default=4),
        Attribute(name="verbosity", low=0, high=4, step=1, decimals=0),
    )
)


def write_models(folder: Path) -> None:
    """`base`, `sft`, `dt` (a decision-transformer policy) and `reward`: random weights, far from uniform."""
    texts = [f"User: say {word} Assistant: {word} {word}" for word in WORDS]
    tokenizer = train_tokenizer(texts * 20, 400, WINDOW)
    config = BaseModelConfig(source="random:tiny-llama", hidden=32, layers=1, heads=2, max_length=WINDOW)
    policy = random_llama(config, tokenizer)
    judge = LlamaForSequenceClassification(type(policy.config)(**{**policy.config.to_dict(), "num_labels": 1}))
    for model in (policy, judge):
        torch.manual_seed(1)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 2:
                    parameter.normal_(std=0.5)
        model.eval()
    common = {"architecture": "LlamaForCausalLM", "parameters": policy.num_parameters(), "max_length": WINDOW}
    normaliser = Normaliser(mean=1.0, sd=2.0, n=10, reward_source="reward", reward_model_hash="unknown")
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
        "base": ModelInfo(role="base", **common),
        "sft": ModelInfo(role="sft", method="sft", **common),
        "reward": ModelInfo(role="reward", method="reward_model", **common),
    }
    for name, info in infos.items():
        save_model(folder / name, judge if name == "reward" else policy, tokenizer, info)


class _Events:
    """Keeps a stage's events."""

    def __init__(self) -> None:
        self.said: list[StageEvent] = []

    def write(self, event: StageEvent, *, any_rank: bool = False) -> None:
        self.said.append(event)


class EvaluationWorld:
    """`client` may do everything in the project `default`."""

    def __init__(
        self,
        client: httpx.Client,
        sessions: sessionmaker[Session],
        project: Project,
        settings: Settings,
        store: ArtifactStore,
        folders: Path,
    ) -> None:
        self.client, self.sessions, self.project = client, sessions, project
        self.settings, self.store, self.folders = settings, store, folders
        for name in ("sft", "dt", "reward"):
            self.register(name, name)
        self.prompt_set("two-turns", [("say red", ["say blue"]), ("say apple", ["say pear"])])

    # -- what there is ----------------------------------------------------------------------------------------------

    def register(self, name: str, kind: str) -> None:
        """Another model of the same weights as `kind`."""
        folder = self.folders / kind
        info = ModelInfo.model_validate_json((folder / "steerboard.json").read_text())
        with transaction(self.sessions) as session:
            register_model(
                session,
                self.store,
                session.merge(self.project),
                name=name,
                folder=folder,
                role=info.role,
                method=info.method,
                parent_id=None,
                run_id=None,
            )

    def dataset(self, name: str, rows: list[dict[str, Any]], kind: str = "prompts") -> None:
        path = self.settings.home / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        with transaction(self.sessions) as session:
            import_file(session, session.merge(self.project), path=path, name=name, kind=kind, clean=False)

    def prompt_set(self, name: str, prompts: list[tuple[str, list[str]]], category: str = "writing") -> None:
        with transaction(self.sessions) as session:
            session.add(
                PromptSet(
                    project_id=self.project.id,
                    name=name,
                    format="fastchat",
                    prompts=[
                        {
                            "question_id": str(80 + number),
                            "category": category,
                            "messages": [{"role": "user", "content": first}],
                            "follow_ups": later,
                            "reference": None,
                        }
                        for number, (first, later) in enumerate(prompts)
                    ],
                    created_by="tester",
                )
            )

    def trained_on(self, model: str, *datasets: str, kind: str = "train", method: str = "sft") -> None:
        """Records that a run with these datasets as its inputs has made the model."""
        with transaction(self.sessions) as session:
            trained = session.scalars(select(Model).where(Model.name == model)).one()
            run = ended_run(
                self.project.id,
                name=f"train-{model}",
                kind=kind,
                method=method,
                config={"run": kind, "method": method},
                state="succeeded",
                reason="finished",
            )
            session.add(run)
            session.flush()
            for number, name in enumerate(datasets):
                dataset_id = self.client.get(self.url(f"datasets/{name}")).json()["id"]
                name_ = "data" if number == 0 else f"data.{number}"
                session.add(RunInput(run_id=run.id, name=name_, dataset_id=dataset_id))
            trained.run_id = run.id

    def token(self, *scopes: str) -> dict[str, str]:
        """Headers of a token with less."""
        return token_headers(self.sessions, self.project.id, *scopes)

    def user(self, name: str, role: str) -> User:
        with transaction(self.sessions) as session:
            user = User(name=name)
            session.add(user)
            session.flush()
            session.add(Membership(project_id=self.project.id, user_id=user.id, role=role))
            return user

    # -- the API ----------------------------------------------------------------------------------------------------

    def url(self, path: str) -> str:
        return f"/api/v1/projects/default/{path}"

    def get(self, path: str, status: int = 200, **params: Any) -> Any:
        answer = self.client.get(self.url(path), params=params)
        assert answer.status_code == status, answer.text
        return answer.json()

    def post(self, path: str, json: Any, status: int = 201, **options: Any) -> Any:
        answer = self.client.post(self.url(path), json=json, **options)
        assert answer.status_code == status, answer.text
        return answer.json()

    def evaluate(self, name: str = "eval", *entrants: dict[str, Any], status: int = 201, **fields: Any) -> Any:
        """The model `sft`, answering greedily in two turns, unless told otherwise."""
        body = {
            "name": name,
            "prompts": {"set": "two-turns"},
            "entrants": list(entrants) or [{"model": "sft", "decoding": SHORT}],
            **fields,
        }
        return self.post("evaluations", body, status=status)

    def detail(self, name: str = "eval") -> Any:
        return self.get(f"evaluations/{name}")

    def responses(self, name: str = "eval") -> dict[tuple[str, int, int], list[str]]:
        """Turns by (entrant, position, sample)."""
        return {
            (response["entrant"], prompt["position"], response["sample"]): response["turns"]
            for prompt in self.get(f"evaluations/{name}/prompts", limit=100)["items"]
            for response in prompt["responses"]
        }

    # -- the work ---------------------------------------------------------------------------------------------------

    def claim(self) -> Claim | None:
        with transaction(self.sessions) as session:
            return claims.claim_next(session, pool="default", owner="w", worker="w1", devices=1, lease_seconds=300)

    def work(self, before_end: Callable[[Run], None] | None = None) -> Run | None:
        """Take the next run and do it here, in this process, with what a worker would have used."""
        claim = self.claim()
        if claim is None:
            return None
        with transaction(self.sessions) as session:
            run = claims.fenced(session, claim)
        run = self._do(claim, run, before_end)
        settle_all(self.sessions)
        return run

    def _do(self, claim: Claim, run: Run, before_end: Callable[[Run], None] | None) -> Run:
        with Workspace(self.settings.home, claim) as workspace:
            workspace.open()
            home, folder = self.settings.home, workspace.directory
            spec = prepare(self.sessions, self.store, self.settings, run, home, folder, workspace.holds, threads=1)
            events = _Events()
            stage = Stage(folder, spec, events)  # type: ignore[arg-type]
            result = importlib.import_module(MODULES[spec.config.run]).run(stage)
            stage.spent()
        World(self.sessions, self.project).emit(claim, events.said[-1])
        if before_end:
            before_end(run)
        with transaction(self.sessions) as session:
            run = claims.fenced(session, claim)
            things = inputs.resolve(session, run)
            outputs.register(session, self.store, run, things, result.outputs, workspace.directory)
            attempt_outcomes.succeed(session, run, result.summary, 1.0)
        return run

    def work_off(self) -> list[str]:
        """Everything that waits. The kinds of the runs in the order in which they were done."""
        done = []
        while (run := self.work()) is not None:
            done.append(run.kind)
        return done

    def work_or_fail(self) -> None:
        """Do the next run here; what its stage refuses fails it, as a worker would have it."""
        claim = self.claim()
        if claim is None:
            return
        with transaction(self.sessions) as session:
            run = claims.fenced(session, claim)
        try:
            self._do(claim, run, None)
        except SteerboardError as error:
            with transaction(self.sessions) as session:
                attempt_outcomes.fail(session, claims.fenced(session, claim), Failure.of(error), 0.0, 0.0)
        settle_all(self.sessions)

    def supervise(self, **settings: Any) -> Run:
        """Take the next run and execute it as a worker does, with a process of its own, until it has ended or waits
        again."""
        claim = self.claim()
        assert claim is not None
        changed = self.settings.model_copy(update={"stage_threads": 1, "retry_seconds": 0.0, **settings})
        Supervisor(self.sessions, self.store, changed, group=DeviceGroup(), stopping=threading.Event()).execute(claim)
        settle_all(self.sessions)
        with transaction(self.sessions) as session:
            return session.get_one(Run, claim.run_id)

    def fail_next(self, code: str = "stage_crashed") -> Run:
        claim = self.claim()
        assert claim is not None
        with transaction(self.sessions) as session:
            run = claims.fenced(session, claim)
            attempt_outcomes.fail(session, run, Failure(code, "It went wrong."), 0.0, 0.0)
        settle_all(self.sessions)
        return run
