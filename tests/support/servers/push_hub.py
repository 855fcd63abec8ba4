"""A hub on this machine that takes pushes, and gives back what was pushed, as huggingface_hub speaks to one."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

WRITES, READS = "hf_writes", "hf_reads"
_LFS = (".safetensors", ".parquet", ".gguf")
_PREFIX = {"model": "", "dataset": "datasets/"}


@dataclass
class Repository:
    """`commits`: each with all files, the oldest first."""

    private: bool
    commits: list[tuple[str, dict[str, bytes]]] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)

    @property
    def head(self) -> str:
        return self.commits[-1][0] if self.commits else hashlib.sha1(b"empty").hexdigest()

    def files(self, revision: str = "main") -> dict[str, bytes] | None:
        if revision in ("main", self.head):
            return self.commits[-1][1] if self.commits else {}
        return next((files for commit, files in self.commits if commit == revision), None)


@dataclass
class PushHub:
    """`repositories` by kind and name. `refuse`: by a part of a path, the status with which such requests are answered.
    `hold`: requests whose path has this part wait, with `held` set, until `release` is; `committed`: the answers of
    those that have made a commit. `stored`: the sha256 of every large file in the order of its arrival. `xet_asked`:
    repositories for whose Xet store a token was asked; it has none."""

    url: str = ""
    repositories: dict[tuple[str, str], Repository] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    stored: list[str] = field(default_factory=list)
    refuse: dict[str, int] = field(default_factory=dict)
    xet_asked: list[str] = field(default_factory=list)
    hold: str | None = None
    held: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)

    def environment(self, token: str | None = WRITES) -> dict[str, str]:
        """The variables of a process whose hub this is. Large files go by LFS: nothing here speaks Xet."""
        return {"HF_ENDPOINT": self.url} | ({"HF_TOKEN": token} if token else {})


@contextmanager
def push_hub() -> Iterator[PushHub]:
    hub = PushHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hub
    finally:
        hub.release.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _oid(path: str, content: bytes) -> str:
    if path.endswith(_LFS):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _card(files: dict[str, bytes]) -> dict[str, Any]:
    text = files.get("README.md", b"").decode()
    return yaml.safe_load(text.split("---\n")[1]) if text.startswith("---\n") else {}


def _handler(hub: PushHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer()

        do_GET = do_POST = do_PUT = do_HEAD

        def _answer(self) -> None:
            self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with suppress(OSError):  # the caller was killed
                self._admitted(unquote(urlsplit(self.path).path))

        def _admitted(self, path: str) -> None:
            if hub.hold is not None and hub.hold in path:
                hub.held.set()
                hub.release.wait()
            for part, status in hub.refuse.items():
                if part in path:
                    return self._refuse(status)
            if path.startswith("/lfs/"):
                return self._blob(path.removeprefix("/lfs/"))
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            if token and token not in (WRITES, READS):
                return self._refuse(401, f"Invalid credentials in {token}")
            self.token = token
            return self._route(path.strip("/"))

        def _route(self, path: str) -> None:
            parts = path.split("/")
            if path == "api/repos/create":
                return self._create()
            if path == "api/validate-yaml":
                return self._send({"errors": [], "warnings": []})
            if parts[0] == "api":
                kind, name = parts[1].removesuffix("s"), "/".join(parts[2:4])
                return self._of_api(kind, name, parts[4:])
            kind = "dataset" if parts[0] == "datasets" else "model"
            parts = parts[1:] if kind == "dataset" else parts
            if path.endswith(".git/info/lfs/objects/batch"):
                return self._batch()
            if len(parts) > 4 and parts[2] == "resolve":
                return self._file(kind, "/".join(parts[:2]), parts[3], "/".join(parts[4:]))
            return self._refuse(404, code="RepoNotFound")

        def _create(self) -> None:
            asked = json.loads(self.body)
            key = (asked["type"], f"{asked['organization']}/{asked['name']}")
            if not self.token:
                return self._refuse(401)
            if self.token != WRITES:
                return self._refuse(403)
            url = {"url": f"{hub.url}/{_PREFIX[key[0]]}{key[1]}"}
            if key in hub.repositories:
                return self._send({"error": "You already created this repo", **url}, status=409)
            hub.repositories[key] = Repository(private=asked.get("visibility") == "private")
            return self._send(url)

        def _visible(self, kind: str, name: str) -> Repository | None:
            repository = hub.repositories.get((kind, name))
            if repository is None or (repository.private and not self.token):
                self._refuse(404 if self.token else 401, code="RepoNotFound")
                return None
            return repository

        def _of_api(self, kind: str, name: str, further: list[str]) -> None:
            repository = self._visible(kind, name)
            if repository is None:
                return None
            what = further[0] if further else ""
            if what in ("", "revision"):
                return self._about(name, repository, further[1] if what else "main")
            files = repository.files(further[1] if what == "tree" else "main")
            if files is None:
                return self._refuse(404, code="RevisionNotFound")
            if what == "tree":
                listed = [
                    {"type": "file", "path": path, "size": len(content), "oid": _oid(path, content)}
                    for path, content in files.items()
                ]
                return self._send(listed)
            if self.token != WRITES:
                return self._refuse(403)
            if what == "xet-write-token":
                hub.xet_asked.append(name)
                return self._refuse(404)
            if what == "preupload":
                return self._preupload(files)
            return self._commit(repository, f"{hub.url}/{_PREFIX[kind]}{name}")

        def _about(self, name: str, repository: Repository, revision: str) -> None:
            files = repository.files(revision)
            if files is None:
                return self._refuse(404, code="RevisionNotFound")
            siblings = [{"rfilename": path, "size": len(content)} for path, content in files.items()]
            return self._send(
                {
                    "id": name,
                    "sha": repository.head if revision == "main" else revision,
                    "private": repository.private,
                    "gated": False,
                    "cardData": _card(files),
                    "siblings": siblings,
                }
            )

        def _preupload(self, files: dict[str, bytes]) -> None:
            answered = []
            for file in json.loads(self.body)["files"]:
                there = files.get(file["path"])
                answered.append(
                    {
                        "path": file["path"],
                        "uploadMode": "lfs" if file["path"].endswith(_LFS) else "regular",
                        "shouldIgnore": False,
                        "oid": None if there is None else _oid(file["path"], there),
                    }
                )
            return self._send({"files": answered})

        def _batch(self) -> None:
            objects = []
            for asked in json.loads(self.body)["objects"]:
                answer = {"oid": asked["oid"], "size": asked["size"]}
                if asked["oid"] not in hub.blobs:
                    answer["actions"] = {"upload": {"href": f"{hub.url}/lfs/{asked['oid']}", "header": {}}}
                objects.append(answer)
            return self._send({"transfer": "basic", "objects": objects})

        def _blob(self, oid: str) -> None:
            assert hashlib.sha256(self.body).hexdigest() == oid
            hub.blobs[oid] = self.body
            hub.stored.append(oid)
            return self._send({})

        def _commit(self, repository: Repository, url: str) -> None:
            files = dict(repository.files() or {})
            for line in self.body.splitlines():
                entry = json.loads(line)
                key, value = entry["key"], entry["value"]
                if key == "header":
                    parent = value.get("parentCommit")
                    if parent is not None and parent != repository.head:
                        return self._refuse(412)
                    repository.titles.append(value["summary"])
                elif key == "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                elif key == "lfsFile":
                    files[value["path"]] = hub.blobs[value["oid"]]
                elif key == "deletedFile":
                    del files[value["path"]]
            oid = hashlib.sha1(f"{repository.head}{sorted(files)}{len(repository.commits)}".encode()).hexdigest()
            repository.commits.append((oid, files))
            if hub.hold == "committed":
                hub.held.set()
                hub.release.wait()
            return self._send({"commitUrl": f"{url}/commit/{oid}", "commitOid": oid})

        def _file(self, kind: str, name: str, revision: str, path: str) -> None:
            repository = self._visible(kind, name)
            if repository is None:
                return None
            content = (repository.files(revision) or {}).get(path)
            if content is None:
                return self._refuse(404, code="EntryNotFound")
            return self._send(content, {"ETag": f'"{_oid(path, content)}"', "X-Repo-Commit": repository.head})

        def _refuse(self, status: int, message: str = "no", code: str | None = None) -> None:
            self._send({"error": message}, {"X-Error-Code": code} if code else {}, status)

        def _send(self, content: Any, headers: dict[str, str] | None = None, status: int = 200) -> None:
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            told = {"Content-Length": str(len(data)), **(headers or {})}
            if not isinstance(content, bytes):
                told["Content-Type"] = "application/json"
            for name, value in told.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
