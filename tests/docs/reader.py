"""A reader of the documentation, with a project, a folder and a shell of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import torch
from page_blocks import Named
from transformers import LlamaForSequenceClassification

from steerboard_contracts.models import ModelInfo, ModelRole
from steerboard_contracts.run_kinds.base import BaseModelConfig
from steerboard_workers.stages.base import random_llama, train_tokenizer
from steerboard_workers.stages.models.model_saving import save_model
from support.patience import PATIENCE, wait_until
from support.servers.other_server import Answer, Seen
from support.servers.running_up import client_token

WINDOW = 1024
TEXTS = [(f"Name a thing that is {color} {n}.", f"A {color} thing.") for n in range(10) for color in ("red", "blue")]
PAIRS = [{"prompt": prompt, "chosen": answer, "rejected": "No."} for prompt, answer in TEXTS]
QUESTIONS = [{"question_id": n, "category": "writing", "turns": [f"Question {n}?"]} for n in range(6)]


class Reader:
    """`project` is the one that its command line uses; `client` is at that project."""

    def __init__(self, environment: dict[str, str], folder: Path, project: str) -> None:
        api = f"{environment['STEERBOARD_URL']}/api/v1/projects"
        headers = {"Authorization": f"Bearer {client_token(environment)}"}
        if project != "default":
            httpx.post(api, headers=headers, json={"name": project}, timeout=PATIENCE).raise_for_status()
        self.environment = environment | {"STEERBOARD_PROJECT": project}
        self.folder = folder
        self.client = httpx.Client(base_url=f"{api}/{project}/", headers=headers, timeout=PATIENCE)

    def shell(self, *blocks: Named | str, status: int = 0, seconds: float = PATIENCE) -> str:
        """What one shell prints that runs them in order and stops at the first failure; it must end with `status`."""
        script = "\n".join(block if isinstance(block, str) else block.text for block in blocks)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def post(self, path: str, body: Any) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def get(self, path: str) -> Any:
        answer = self.client.get(path)
        assert answer.is_success, answer.text
        return answer.json()

    def wait(self, path: str, state: str) -> Any:
        """What has come into that state."""

        def has_come() -> Any:
            thing = self.get(path)
            if thing["state"] == state:
                return thing
            assert thing["state"] not in ("failed", "cancelled"), thing
            return None

        return wait_until(has_come, lambda: str(self.get(path)), pause=0.1)

    def write(self, name: str, rows: Iterable[Any]) -> None:
        (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def dataset(self, name: str, kind: str, rows: Iterable[Any]) -> None:
        self.write(f"{name}.jsonl", rows)
        self.shell(f"steerboard datasets import {name}.jsonl --kind {kind} --name {name}")

    def models(self, folder: Path, **roles: str) -> None:
        """Models of the registry by name, `our_sft` being `our-sft`; each is a folder in `folder`."""
        made = []
        for seed, (name, role) in enumerate(roles.items()):
            # Equal runs would share one model.
            config = {"run": "base", "source": str(folder / role), "seed": seed}
            made.append(self.post("runs", {"name": name.replace("_", "-"), "config": config}))
        for run in made:
            self.wait(f"runs/{run['id']}", "succeeded")

    def hub(self, name: str, folder: Path) -> None:
        """What the server's machine has of a model of the hub."""
        kept = Path(self.environment["HF_HUB_CACHE"]) / f"models--{name.replace('/', '--')}"
        (kept / "refs").mkdir(parents=True)
        (kept / "refs" / "main").write_text("0" * 40)
        shutil.copytree(folder, kept / "snapshots" / ("0" * 40))

    def endpoint(self, name: str, url: str) -> None:
        self.post("endpoints", {"name": name, "base_url": f"{url}/v1", "model": f"the-{name}"})


def write_models(folder: Path) -> None:
    """A folder each by role: random weights, far from uniform. `foreign` and `classifier` are as transformers saves
    a policy and a reward model."""
    tokenizer = train_tokenizer([text for pair in TEXTS for text in pair] * 20, 400, WINDOW)
    policy = random_llama(
        BaseModelConfig(source="random:tiny-llama", hidden=32, layers=1, heads=2, max_length=WINDOW), tokenizer
    )
    judge = LlamaForSequenceClassification(type(policy.config)(**{**policy.config.to_dict(), "num_labels": 1}))
    roles: dict[ModelRole, Any] = {"sft": policy, "policy": policy, "preference": policy, "reward": judge}
    for role, model in roles.items():
        torch.manual_seed(len(role))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 2:
                    parameter.normal_(std=0.3)
        info = ModelInfo(role=role, architecture=type(model).__name__, parameters=1, max_length=WINDOW)
        save_model(folder / role, model.eval(), tokenizer, info)
    for name, role in (("foreign", "policy"), ("classifier", "reward")):
        shutil.copytree(folder / role, folder / name, ignore=shutil.ignore_patterns("steerboard.json"))


def chat(request: Seen) -> Answer:
    """Models of ours answer, with their names; all others are judges that are for the first answer."""
    model = request.json["model"]
    said = f"An answer of {model}." if "our" in model else "[[A]]"
    usage = {"prompt_tokens": 100, "completion_tokens": 3}
    if request.json.get("stream"):
        return Answer.events({"choices": [{"delta": {"content": said}, "finish_reason": "stop"}]}, "[DONE]")
    message = {"role": "assistant", "content": said}
    return Answer.json({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage})
