"""Someone else's HTTP server: real, on a free port of this machine, answering as a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Seen:
    """A request. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    """`pieces` are sent one after the other; a callable is called first, and what it returns is sent."""

    status: int = 200
    pieces: Iterable[bytes | Callable[[], bytes]] = ()
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, document: Any, status: int = 200) -> Answer:
        return cls(status, [json.dumps(document).encode()], {"Content-Type": "application/json"})

    @classmethod
    def events(cls, *events: Any) -> Answer:
        lines: list[bytes | Callable[[], bytes]] = [
            b"data: " + (event.encode() if isinstance(event, str) else json.dumps(event).encode()) + b"\n\n"
            for event in events
        ]
        return cls(200, lines, {"Content-Type": "text/event-stream"})


class OtherServer:
    """`answer` makes the response; `seen` are the requests, in order."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.answer: Callable[[Seen], Answer] = lambda _: Answer.json({})
        self.url = ""


@contextmanager
def other_server() -> Iterator[OtherServer]:
    other = OtherServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen = Seen(self.command, self.path, headers, self.rfile.read(length))
            other.seen.append(seen)
            answer = other.answer(seen)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for piece in answer.pieces:
                    self.wfile.write(piece() if callable(piece) else piece)
                    self.wfile.flush()
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client has gone

        do_POST = do_PATCH = do_DELETE = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    other.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield other
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
