"""A model as one GGUF file: from a request to a file on disk, with what differs in its answers."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path

import httpx
import pytest
from page_shell import blocks, shell
from pushed_things import PushWorld, register
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.runs.results import outputs
from steerboard.runs.stored_bytes import stored_bytes
from steerboard.runs.tables import Run
from steerboard_contracts.files.gguf_export import GgufDifference, GgufResult
from steerboard_contracts.stage.outputs import GgufOutput
from support.models.model_folders import info_of
from support.processes.command_line import Steerboard

URL = "/api/v1/projects/default"
CONTENT = b"GGUF" + bytes(1000)
DIFFERENCE = GgufDifference(
    what="answer", asked="a question", at=4, transformers=" sea", llama_cpp=" coast", margin=0.0123
)


@pytest.fixture
def exported(
    client: httpx.Client,
    sessions: sessionmaker[Session],
    store: ArtifactStore,
    project: Project,
    tmp_path: Path,
    steered: uuid.UUID,
) -> str:
    """The id of a finished export of `dt`, as its stage would leave it."""
    started = client.post(f"{URL}/models/dt/gguf", json={"precision": "q8_0"})
    assert started.status_code == 201, started.text
    folder = tmp_path / "out" / "gguf"
    folder.mkdir(parents=True)
    (folder / "dt-q8_0.gguf").write_bytes(CONTENT)
    (folder / "Modelfile").write_text("FROM ./dt-q8_0.gguf\n")
    result = GgufResult(
        file="dt-q8_0.gguf",
        precision="q8_0",
        size=len(CONTENT),
        architecture="LlamaForCausalLM",
        merged=False,
        prompts=4,
        tokens=16,
        differences=[DIFFERENCE],
    )
    with transaction(sessions) as session:
        run = session.get_one(Run, uuid.UUID(started.json()["id"]))
        outputs.register(session, store, run, {}, [GgufOutput(path="gguf", result=result)], folder.parent)
        run.state = "succeeded"
    return str(started.json()["id"])


def test_exports_are_listed_with_their_files_and_what_differs(client: httpx.Client, exported: str) -> None:
    (export,) = client.get(f"{URL}/models/dt/gguf").json()
    assert export["run"] == exported
    assert {file["path"] for file in export["files"]} == {"dt-q8_0.gguf", "Modelfile"}
    assert export["result"]["differences"] == [DIFFERENCE.model_dump(mode="json")]
    assert export["found"] == (
        "llama.cpp differs from transformers in 1 of 4 prompts, each with the first 16 tokens of its likeliest answer: "
        "the answer to a question from token 5, ' coast' instead of ' sea', which is 0.012 nats less likely"
    )


def test_a_file_comes_as_it_is_stored_and_only_from_its_own_export(client: httpx.Client, exported: str) -> None:
    answer = client.get(f"{URL}/models/dt/gguf/{exported}/dt-q8_0.gguf")
    assert answer.content == CONTENT
    assert answer.headers["etag"] == f'"{hashlib.sha256(CONTENT).hexdigest()}"'
    for wrong in (f"models/dt/gguf/{exported}/other.gguf", f"models/dt/gguf/{uuid.uuid4()}/dt-q8_0.gguf"):
        assert client.get(f"{URL}/{wrong}").status_code == 404
    assert client.get(f"{URL}/models/base/gguf/{exported}/dt-q8_0.gguf").status_code == 404


def test_an_equal_export_is_taken_over_and_another_precision_is_made(client: httpx.Client, exported: str) -> None:
    again = client.post(f"{URL}/models/dt/gguf", json={"precision": "q8_0"}).json()
    assert (again["state"], again["reused_from_id"]) == ("succeeded", exported)
    assert client.post(f"{URL}/models/dt/gguf", json={}).json()["state"] == "queued"
    runs = [export["run"] for export in client.get(f"{URL}/models/dt/gguf").json()]
    assert runs == [again["id"], exported]


def test_what_it_keeps_counts_as_the_projects(
    sessions: sessionmaker[Session], project: Project, steered: uuid.UUID, request: pytest.FixtureRequest
) -> None:
    with transaction(sessions) as session:
        before = stored_bytes(session, project).models
    request.getfixturevalue("exported")
    with transaction(sessions) as session:
        assert stored_bytes(session, project).models == before + len(CONTENT) + len("FROM ./dt-q8_0.gguf\n")


def test_a_model_that_answers_nothing_is_refused(
    client: httpx.Client, sessions: sessionmaker[Session], store: ArtifactStore, project: Project, tmp_path: Path
) -> None:
    register(sessions, store, project, tmp_path, "rm", info_of("reward", "reward_model"))
    refused = client.post(f"{URL}/models/rm/gguf", json={})
    assert (refused.status_code, refused.json()["code"]) == (422, "wrong_role")
    assert client.post(f"{URL}/models/rm/gguf", json={"precision": "q4"}).status_code == 422


def test_a_worker_without_llama_cpp_says_how_to_get_it(
    client: httpx.Client,
    sessions: sessionmaker[Session],
    store: ArtifactStore,
    settings: Settings,
    steered: uuid.UUID,
) -> None:
    started = client.post(f"{URL}/models/dt/gguf", json={}).json()
    bare = settings.model_copy(update={"gguf_python": Path("/no/python")})
    PushWorld(client, sessions, store, bare).work_off()
    run = client.get(f"{URL}/runs/{started['id']}").json()
    assert (run["state"], run["error"]["code"]) == ("failed", "engine_missing")
    assert "make setup-gguf" in run["error"]["hint"]
    assert "STEERBOARD_GGUF_PYTHON" in run["error"]["hint"]


def test_the_command_writes_the_file_and_says_what_differs(
    exported: str, steerboard: Steerboard, url: str, token: str, tmp_path: Path
) -> None:
    done = steerboard(url, token, "models", "export", "dt", str(tmp_path / "dt-gguf"), "--gguf", "q8_0")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "dt-gguf" / "dt-q8_0.gguf").read_bytes() == CONTENT
    assert sorted(path.name for path in (tmp_path / "dt-gguf").iterdir()) == ["Modelfile", "dt-q8_0.gguf"]
    assert "' coast' instead of ' sea'" in " ".join(done.stdout.split())


def test_the_commands_of_the_page_write_what_it_says(exported: str, url: str, token: str, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    printed = shell(
        blocks("steerboard models export dt dt ", "steerboard models export dt dt-gguf"), url, token, folder
    )
    assert (folder / "dt" / "sample_guided.py").is_file()
    assert 'AutoModelForCausalLM.from_pretrained(folder, dtype="auto")' in printed
    assert (folder / "dt-gguf" / "dt-q8_0.gguf").read_bytes() == CONTENT
    assert "Wrote dt-gguf/dt-q8_0.gguf (1,004 bytes)" in printed
