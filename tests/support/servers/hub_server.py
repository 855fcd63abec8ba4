"""A hub of models on this machine, with the calls that listing and downloading make."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

COMMIT = "c" * 40


@dataclass
class HubModels:
    """`models` maps a name to files; a gated one is listed, and its files are refused. `fetched` has the paths of the
    files that were asked for, `sent` the bytes of each that were written, or were about to be."""

    url: str = ""
    models: dict[str, dict[str, bytes]] = field(default_factory=dict)
    cards: dict[str, dict[str, Any]] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    fetched: list[str] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)


def point_at(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What HF_ENDPOINT sets when the library is imported."""
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)


@contextmanager
def hub_of_models(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubModels]:
    """It is this process's hub for as long as the test runs."""
    hub = HubModels()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    point_at(hub.url, monkeypatch)
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(hub: HubModels) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
            if parts[:2] == ["api", "models"] and "/".join(parts[2:4]) in hub.models:
                self._about("/".join(parts[2:4]), parts[4:])
            elif len(parts) == 5 and parts[2:4] == ["resolve", COMMIT] and "/".join(parts[:2]) in hub.models:
                self._file("/".join(parts[:2]), parts[4])
            else:
                self._refuse(404, "RepoNotFound")

        def _about(self, name: str, further: list[str]) -> None:
            if further[:1] == ["revision"] and further[1] not in ("main", COMMIT):
                return self._refuse(404, "RevisionNotFound")
            files = hub.models[name]
            siblings = [{"rfilename": path, "size": len(content)} for path, content in files.items()]
            gated = "manual" if name in hub.gated else False
            about: dict[str, Any] = {"id": name, "sha": COMMIT, "gated": gated, "cardData": hub.cards.get(name, {})}
            if further[:1] == ["tree"]:
                listed = [
                    {"type": "file", "path": path, "size": len(content), "oid": ""} for path, content in files.items()
                ]
                return self._send(json.dumps(listed).encode(), {"Content-Type": "application/json"})
            return self._send(
                json.dumps({**about, "siblings": siblings}).encode(), {"Content-Type": "application/json"}
            )

        def _file(self, name: str, path: str) -> None:
            if name in hub.gated:
                return self._refuse(403, "GatedRepo")
            content = hub.models[name].get(path)
            if content is None:
                return self._refuse(404, "EntryNotFound")
            if self.command == "GET":
                hub.fetched.append(path)
            tag = hashlib.sha1(content).hexdigest()
            return self._send(content, {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT}, path)

        def _refuse(self, status: int, code: str) -> None:
            self.send_response(status)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _send(self, content: bytes, headers: dict[str, str], path: str = "") -> None:
            self.send_response(200)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "GET":
                return
            try:
                for start in range(0, len(content), 1 << 16):
                    # Before it is written, since the reader may have left right after it.
                    hub.sent[path] = min(len(content), start + (1 << 16))
                    self.wfile.write(content[start : start + (1 << 16)])
            except OSError:
                pass  # the reader has what it wanted

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
