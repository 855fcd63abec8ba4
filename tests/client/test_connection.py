"""Requests of the Python client over connections that break, and what of it is generated."""

from __future__ import annotations

import importlib
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import steerboard_client as sb
from steerboard_client import wire

CLIENT = Path(__file__).parents[2] / "client"


class Flaky(BaseHTTPRequestHandler):
    """Closes the first connection, is busy for the second request, and answers the third."""

    seen: list[tuple[str, str | None]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, self.headers["Idempotency-Key"]))
        if len(self.seen) == 1:
            self.close_connection = True
            return
        busy = len(self.seen) == 2
        body = b"{}" if busy else b'{"id": 1}'
        self.send_response(503 if busy else 201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    Flaky.seen = []
    running = ThreadingHTTPServer(("127.0.0.1", 0), Flaky)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def test_a_request_is_sent_again_under_one_key(server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_FIRST_PAUSE", 0.01)
    with sb.connect(f"http://127.0.0.1:{server.server_port}", "token") as board:
        assert board.connection.post("runs", {"config": {}}) == {"id": 1}
    paths, keys = zip(*Flaky.seen, strict=True)
    assert set(paths) == {"/api/v1/projects/default/runs"}
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_where_no_server_is_known_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("STEERBOARD_URL", "STEERBOARD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STEERBOARD_HOME", str(tmp_path))
    with pytest.raises(sb.ServerUnreachable) as nowhere:
        sb.connect()
    assert nowhere.value.code == "no_server"
    (tmp_path / "client.json").write_text('{"url": "http://127.0.0.1:9", "token": "of-that-server"}')
    assert sb.connect().connection.url == "http://127.0.0.1:9"
    assert sb.connect(project="a/b ?").connection.path("runs") == "/api/v1/projects/a%2Fb%20%3F/runs"
    # Its token is not sent to another one.
    with pytest.raises(sb.ServerUnreachable, match="there is no token for"):
        sb.connect("http://elsewhere:9")
    with pytest.raises(sb.BadInput, match="not the address of a server"):
        sb.connect("elsewhere", "token")
    # Without a folder by name it is the one that `steerboard up` makes where it is started.
    (tmp_path / ".steerboard").mkdir()
    (tmp_path / "client.json").rename(tmp_path / ".steerboard" / "client.json")
    monkeypatch.delenv("STEERBOARD_HOME")
    monkeypatch.chdir(tmp_path)
    assert sb.connect().connection.url == "http://127.0.0.1:9"


def test_what_is_generated_is_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(CLIENT))
    generate = importlib.import_module("generate")
    package = tmp_path / generate.PACKAGE
    shutil.copytree(CLIENT / generate.PACKAGE / "_async", package / "_async")
    generate.main(tmp_path)
    made = {file.relative_to(tmp_path): file.read_text() for file in package.glob("_sync/*.py")}
    made[Path(generate.PACKAGE, "schemas.py")] = (package / "schemas.py").read_text()
    there = {file.relative_to(CLIENT) for file in (CLIENT / generate.PACKAGE / "_sync").glob("*.py")}
    assert made.keys() - {Path(generate.PACKAGE, "schemas.py")} == there
    stale = [name for name, text in made.items() if (CLIENT / name).read_text() != text]
    assert not stale, "make client"
