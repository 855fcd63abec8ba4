"""`steerboard models serve` around a server that stands in for vLLM's: its arguments, and every way in which it ends.

vLLM's own is served in tests/playground/test_vllm_server.py.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import register_model
from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.lora import LoraConfig
from steerboard_contracts.models import ModelInfo
from support.models.model_folders import write_model
from support.patience import PATIENCE
from support.processes.command_line import url
from support.servers.other_server import Answer, Seen, other_server

__all__ = ["url"]

# Answers `/health` as soon as it is up; `--silent` accepts connections without answering, `--broken` ends at once.
STAND_IN = """#!{python}
import http.server, json, os, sys, time
print("told:", json.dumps(sys.argv[1:]), flush=True)
print("knows:", json.dumps(dict(os.environ)), flush=True)
if "--broken" in sys.argv:
    sys.exit("no such kernel")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if "--silent" in sys.argv:
            time.sleep(300)
        self.send_response(200)
        self.end_headers()
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
# The credentials of the person running the command, and of the platform.
CREDENTIALS = {
    name: f"hidden-{name}"
    for name in (
        *("STEERBOARD_SECRET_KEY", "STEERBOARD_S3_KEYS", "PGPASSFILE", "DATABASE_URL", "REDIS_URL"),
        *("AWS_PROFILE", "SSH_AUTH_SOCK", "HF_TOKEN", "OPENAI_API_KEY", "MY_PASSWORD"),
    )
}
Serve = Callable[..., "subprocess.Popen[str]"]
Register = Callable[..., None]


@pytest.fixture
def serve(settings: Settings, token: str, tmp_path: Path) -> Iterator[Serve]:
    """The command in a process of its own, whose temporary files are below `tmp_path / "temporary"`.

    The operator allows this machine."""
    settings.allowed_private = "127.0.0.1"
    started: list[subprocess.Popen[str]] = []
    stand_in = tmp_path / "python"
    stand_in.write_text(STAND_IN.format(python=sys.executable))
    stand_in.chmod(0o755)
    (tmp_path / "temporary").mkdir()

    def begin(address: str, model: str, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "steerboard.cli.main", "models", "serve", model, "--python", str(stand_in)]
        process = subprocess.Popen(
            [*command, "--port", "0", *options],
            env={
                **os.environ,
                "STEERBOARD_URL": address,
                "STEERBOARD_TOKEN": token,
                **CREDENTIALS,
                "TMPDIR": str(tmp_path / "temporary"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def model(sessions: sessionmaker[Session], project: Project, store: ArtifactStore, tmp_path: Path) -> str:
    with transaction(sessions) as session:
        register_model(
            session,
            store,
            project,
            name="mine",
            folder=write_model(tmp_path / "mine"),
            role="sft",
            method="sft",
            parent_id=None,
            run_id=None,
        )
    return "mine"


def endpoints(url: str, token: str) -> list[dict[str, Any]]:
    answer = httpx.get(f"{url}/api/v1/projects/default/endpoints", headers={"Authorization": f"Bearer {token}"})
    listed: list[dict[str, Any]] = answer.json()
    return listed


def told(folder: Path, what: str = "told") -> Any:
    """The arguments that the server was started with; or its environment (`knows`)."""
    (log,) = folder.glob("temporary/steerboard-serve-*.log")
    return json.loads(log.read_text().partition(f"{what}: ")[2].splitlines()[0])


def test_it_serves_until_it_is_told_to_end_and_is_an_endpoint(
    url: str, token: str, model: str, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "of-the-server")
    process = serve(url, model, "--", "--enforce-eager")
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    (endpoint,) = endpoints(url, token)
    assert (endpoint["name"], endpoint["base_url"], endpoint["model"]) == ("mine-vllm", address, "mine")
    assert endpoint["policy_model"]["name"] == "mine"
    arguments = told(tmp_path)
    assert arguments[:2] == ["-m", "vllm.entrypoints.openai.api_server"]
    assert arguments[-1] == "--enforce-eager"
    knows = told(tmp_path, "knows")
    assert [name for name in knows if name.startswith("STEERBOARD_") or name in CREDENTIALS] == []
    assert not {token, url, *CREDENTIALS.values()} & set(knows.values())
    assert knows["VLLM_API_KEY"] == "of-the-server"
    given = dict(zip(arguments[2:-1:2], arguments[3:-1:2], strict=True))
    assert (given["--served-model-name"], given["--max-model-len"]) == ("mine", "64")
    assert (Path(given["--model"]) / "model.safetensors").is_file()
    below = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert psutil.wait_procs(below, timeout=PATIENCE)[1] == []
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    ("option", "words"), [("--silent", "did not answer within 1 s"), ("--broken", "no such kernel")]
)
def test_a_server_that_says_nothing_or_ends_is_an_error_in_time_and_nothing_stays(
    url: str, token: str, model: str, serve: Serve, tmp_path: Path, option: str, words: str
) -> None:
    process = serve(url, model, "--wait", "1", "--", option)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert words in said
    assert endpoints(url, token) == []
    # Except for the log, which the message names.
    (log,) = (tmp_path / "temporary").iterdir()
    assert log.suffix == ".log"
    assert log.name in said.replace("\n", "")


def test_it_ends_when_it_is_told_to_while_the_weights_are_still_coming(serve: Serve, tmp_path: Path) -> None:
    asked, ended = threading.Event(), threading.Event()
    file = {"path": "model.safetensors", "sha256": "0" * 64, "size": 5}
    model = {"id": "1", "name": "mine", "role": "sft", "size": 5, "files": [file], "info": {"max_length": 64}}

    def answer(seen: Seen) -> Answer:
        if seen.path.endswith("/models/mine"):
            return Answer.json(model)
        if "/endpoints/" in seen.path:
            return Answer.json({})
        asked.set()
        return Answer(200, [b"12", lambda: (ended.wait(60), b"345")[1]])

    with other_server() as other:
        other.answer = answer
        process = serve(other.url, "mine")
        assert asked.wait(30)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE)
        ended.set()
    assert process.returncode != 0
    assert "Traceback" not in said
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.fixture
def adapted(sessions: sessionmaker[Session], project: Project, store: ArtifactStore, tmp_path: Path) -> Register:
    """adapted(tokens, dora): a policy `adapted` of an adapter, of which some tokens are trained."""

    def register(tokens: list[int], dora: bool = False) -> None:
        folder = write_model(tmp_path / "adapted", "policy")
        info = ModelInfo.model_validate_json((folder / "steerboard.json").read_bytes())
        (folder / "steerboard.json").write_text(
            info.model_copy(update={"lora": LoraConfig(rank=300, dora=dora)}).model_dump_json()
        )
        rows = {"embed_tokens": tokens} if tokens else None
        (folder / "adapter_config.json").write_text(json.dumps({"trainable_token_indices": rows}))
        about = {"role": "policy", "method": "sft", "parent_id": None, "run_id": None}
        with transaction(sessions) as session:
            register_model(session, store, project, name="adapted", folder=folder, **about)

    return register


def test_an_adapter_is_loaded_over_its_base_with_room_for_its_rank(
    url: str, serve: Serve, adapted: Register, tmp_path: Path
) -> None:
    adapted([])
    process = serve(url, "adapted")
    assert process.stdout is not None
    assert process.stdout.readline().strip()
    arguments = told(tmp_path)
    assert arguments[arguments.index("--max-lora-rank") + 1] == "320"
    base = Path(arguments[arguments.index("--model") + 1])
    assert base.name == "base"
    assert arguments[arguments.index("--lora-modules") + 1] == f"adapted={base.parent}"


@pytest.mark.parametrize(("tokens", "dora", "unread"), [([7], False, "tokens of its own"), ([], True, "DoRA's norms")])
def test_an_adapter_that_vllm_does_not_read_is_refused(
    url: str, serve: Serve, adapted: Register, tmp_path: Path, tokens: list[int], dora: bool, unread: str
) -> None:
    adapted(tokens, dora)
    process = serve(url, "adapted")
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert f"an adapter with {unread}" in said.replace("\n", " ")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_policy_that_takes_scores_is_served_with_guidance_where_that_is_asked_for(
    url: str,
    token: str,
    serve: Serve,
    sessions: sessionmaker[Session],
    project: Project,
    store: ArtifactStore,
    tmp_path: Path,
) -> None:
    folder = write_model(tmp_path / "steered", "policy")
    info = ModelInfo.model_validate_json((folder / "steerboard.json").read_bytes())
    changed = info.model_copy(update={"condition": ConditionFormat.of_score()})
    (folder / "steerboard.json").write_text(changed.model_dump_json())
    with transaction(sessions) as session:
        register_model(
            session,
            store,
            project,
            name="steered",
            folder=folder,
            role="policy",
            method="sft",
            parent_id=None,
            run_id=None,
        )
    process = serve(url, "steered", "--guidance")
    assert process.stdout is not None
    assert process.stdout.readline().strip()
    assert endpoints(url, token)[0]["guides"] is True
    arguments, knows = told(tmp_path), told(tmp_path, "knows")
    given = dict(pairwise(arguments))
    named = [given["--scheduler-cls"], given["--logits-processors"].replace(":", "."), given["--middleware"]]
    assert "--no-async-scheduling" in arguments
    assert knows["VLLM_USE_V2_MODEL_RUNNER"] == "0"
    for name in named:
        module = name.rpartition(".")[0].replace(".", "/")
        assert (Path(knows["PYTHONPATH"]) / f"{module}.py").is_file()
    process.kill()
    process.wait()
    process = serve(url, "steered")
    assert process.stdout is not None
    assert process.stdout.readline().strip()
    assert endpoints(url, token)[0]["guides"] is False


def test_guidance_of_a_model_without_scores_is_refused_before_anything_is_loaded(
    url: str, token: str, model: str, serve: Serve
) -> None:
    process = serve(url, model, "--guidance")
    _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "takes no scores" in said) == (1, True)
    assert endpoints(url, token) == []


def test_an_address_that_the_platform_may_not_call_is_refused_before_anything_is_loaded(
    url: str, token: str, model: str, serve: Serve, settings: Settings, tmp_path: Path
) -> None:
    settings.allowed_private = ""
    process = serve(url, model)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert re.search(r"STEERBOARD_ALLOWED_PRIVATE=127\.0\.0\.1:\d+", said.replace("\n", ""))
    assert endpoints(url, token) == []
    assert list((tmp_path / "temporary").iterdir()) == []
