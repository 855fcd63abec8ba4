"""A hub dataset is listed, fetched at the listed commit, and imported like files; the hub here is a local server."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.hub import HubName, choose_files, hub_sources
from steerboard.datasets.imports.execution.claims import claim_next
from steerboard.datasets.imports.execution.process import work
from steerboard.datasets.imports.files import ImportFiles
from steerboard.datasets.imports.importer import ImportOptions
from steerboard.datasets.imports.loading import import_sources
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard_contracts.errors import BadInput
from steerboard_files.errors import FileTooLarge

COMMIT = "c" * 40


def rows(split: str) -> bytes:
    return "".join(
        json.dumps({"prompt": f"{split} {i}", "chosen": "a", "rejected": "b"}) + "\n" for i in range(3)
    ).encode()


FILES = {
    "README.md": b"# card",
    "data/train-00000-of-00002.jsonl": rows("one"),
    "data/train-00001-of-00002.jsonl": rows("two"),
    "data/test-00000-of-00001.jsonl": rows("test"),
}


class Hub(BaseHTTPRequestHandler):
    """The two calls that listing and downloading make."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path.startswith("/api/datasets/org/pairs"):
            siblings = [{"rfilename": name, "size": len(content)} for name, content in FILES.items()]
            self._send(json.dumps({"id": "org/pairs", "sha": COMMIT, "siblings": siblings}).encode(), {})
        elif path.startswith(f"/datasets/org/pairs/resolve/{COMMIT}/"):
            content = FILES[path.split(f"{COMMIT}/", 1)[1]]
            etag = hashlib.sha1(content).hexdigest()
            self._send(content, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def _send(self, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_train_split_of_a_hub_dataset_is_imported(
    sessions: sessionmaker[Session], project: Project, hub: str
) -> None:
    with transaction(sessions) as session:
        sources = hub_sources("org/pairs", 10**6, endpoint=hub)
        report = import_sources(
            session, project, sources=sources, name="pairs", options=ImportOptions(), origin={"hub": "org/pairs"}
        )
        assert (report.rows, report.dataset.kind, report.dataset.origin["hub"]) == (6, "preferences", "org/pairs")


def test_the_wizard_pins_the_commit_and_fetches_further_files_when_it_reads_them(
    client: TestClient,
    sessions: sessionmaker[Session],
    settings: Settings,
    hub: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub)
    template = f"{hub}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    imports = "/api/v1/projects/default/imports"
    made = client.post(imports, data={"hub": "org/pairs:train"}, files={})
    assert made.status_code == 201, made.text
    shown = made.json()
    size = sum(len(FILES[f"data/train-0000{part}-of-00002.jsonl"]) for part in (0, 1))
    assert (shown["name"], shown["hub"], shown["size"]) == ("pairs", f"org/pairs@{COMMIT}:train", size)
    files = ImportFiles(settings.artifact_url)
    assert [files.exists(files.import_ids()[0], name) for name in ("0", "1")] == [True, False]
    assert client.post(f"{imports}/{shown['id']}/start").status_code == 202
    with transaction(sessions) as session:
        lease = claim_next(session, 30.0, 3)
    assert lease is not None
    work(sessions, files, lease)
    done = client.get(f"{imports}/{shown['id']}").json()
    assert (done["state"], done["problem"], done["report"]["rows"]) == ("succeeded", None, 6)
    origin = client.get("/api/v1/projects/default/datasets/pairs").json()["origin"]
    assert (origin["type"], origin["hub"]) == ("hub", shown["hub"])


def test_a_split_can_be_named(hub: str) -> None:
    (source,) = hub_sources("hub:org/pairs:test", 10**6, endpoint=hub)
    with source.open() as file:
        assert file.read() == FILES["data/test-00000-of-00001.jsonl"]


def test_what_the_hub_does_not_have_is_said(hub: str) -> None:
    for name, code in (
        ("org/nothing", "hub_not_found"),
        ("org/pairs:validation", "no_data_files"),
        ("../etc", "bad_hub_name"),
        ("a b", "bad_hub_name"),
    ):
        with pytest.raises(BadInput) as refused:
            hub_sources(name, 10**6, endpoint=hub)
        assert refused.value.code == code
    with pytest.raises(FileTooLarge):
        hub_sources("org/pairs", 100, endpoint=hub)
    with pytest.raises(BadInput) as unreachable:
        hub_sources("org/pairs", 10**6, endpoint="http://127.0.0.1:1")
    assert unreachable.value.code == "hub_unavailable"


def test_parquet_is_preferred_and_training_beats_trainer_like_names() -> None:
    paths = ["data/train-0.parquet", "data/train-0.jsonl", "trainer/x.parquet", "dev.csv", ".hidden.csv"]
    assert choose_files(paths, None) == ["data/train-0.parquet"]
    assert choose_files(paths, "dev") == ["dev.csv"]
    assert choose_files(["rows.csv"], None) == ["rows.csv"]
    assert HubName.parse("hub:org/name@v1.0:data/train") == HubName("org/name", "v1.0", "data/train")


@pytest.mark.parametrize("ending", [".parquet", ".ndjson", ".jsonl.gz", ".csv.gz", ".tsv", ".json"])
def test_every_format_that_is_read_is_found_in_a_repository(ending: str) -> None:
    assert choose_files([f"train{ending}", "README.md", "train.zip"], None) == [f"train{ending}"]
