"""The app behind a real server, set up as in production: a test client hides what happens on the wire."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI

from steerboard.app.connections import server_config
from support.patience import PATIENCE, wait_until


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Its address, until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=600)
    server = uvicorn.Server(server_config(app, log_level="critical", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive(), pause=0.01)
    assert server.started
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    app.state.stopping.set()
    server.should_exit = True
    thread.join()


class Client:
    """A connection whose every byte is the test's own."""

    def __init__(self, url: str, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        parts = urlsplit(url)
        self.socket.connect((parts.hostname, parts.port))

    def head(self, method: str, path: str, **headers: str | int) -> None:
        """The first line and the headers; underscores of names become hyphens."""
        lines = [f"{method} {path} HTTP/1.1", "host: test"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> tuple[int, dict[str, Any]]:
        """Status and JSON of the answer."""
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._more()
        head, _, body = received.partition(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
        while len(body) < length:
            body += self._more()
        return int(lines[0].split()[1]), json.loads(body or b"{}")

    def is_closed(self) -> bool:
        """Waits until the server has ended the connection; False when it has not within the socket's patience."""
        try:
            while self.socket.recv(65536):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True

    def close(self) -> None:
        self.socket.close()

    def _more(self) -> bytes:
        data = self.socket.recv(65536)
        assert data, "the server closed the connection"
        return data
