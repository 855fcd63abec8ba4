"""A real S3 server of this process, on a port of its own, that can be made to fail as real ones do."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

BUCKET = "steerboard-test"


def problem(code: str, message: str) -> bytes:
    return (
        f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
    )


SLOW_DOWN = problem("SlowDown", "Please reduce your request rate.")
INTERNAL = problem("InternalError", "We encountered an internal error. Please try again.")
DENIED = problem("AccessDenied", "Access Denied")
NO_SUCH_UPLOAD = problem("NoSuchUpload", "The specified upload does not exist.")


@dataclass
class Fault:
    """A fault of the next `times` requests with this method whose query has `query`: an answer, or a broken
    connection."""

    method: str
    times: int
    status: str = "503 Slow Down"
    body: bytes = SLOW_DOWN
    query: str = ""
    reset: bool = False
    cut: bool = False  # the connection ends in the middle of the answer
    do_first: bool = False  # the request does its work, and only its answer gets lost
    until: threading.Event | None = None  # the request is answered as usual, but not before


def _reset(connection: socket.socket) -> list[bytes]:
    """What has arrived is thrown away and the other side notified, as when a machine goes away and comes back."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(connection.detach())
    raise ConnectionResetError


@dataclass
class S3Server:
    """`requests`: the method and the query of every request so far. `unchecked`: how many brought content without the
    checksum by which a real server refuses what was damaged on the way."""

    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    down: bool = False
    unchecked: int = 0

    def start(self) -> S3Server:
        application = DomainDispatcherApplication(create_backend_app)

        def serve(environment: dict[str, Any], begin: Callable[..., Any]) -> Iterable[bytes]:
            method, query = environment["REQUEST_METHOD"], environment["QUERY_STRING"]
            self.requests.append((method, query))
            self.unchecked += method == "PUT" and "HTTP_X_AMZ_CHECKSUM_SHA256" not in environment
            fault = self._fault_of(method, query)
            if fault is not None and fault.until is not None:
                fault.until.wait(60)
                fault = None
            if fault is not None and fault.do_first:
                list(application(environment, lambda *_: None))
            if self.down or (fault is not None and fault.reset):
                return _reset(environment["werkzeug.socket"])
            if fault is not None and fault.cut:
                return [b"".join(application(environment, begin))[:-1]]
            if fault is not None:
                environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
                begin(fault.status, [("Content-Type", "application/xml"), ("Content-Length", str(len(fault.body)))])
                return [fault.body]
            return application(environment, begin)  # type: ignore[no-any-return]

        self._server = make_server("127.0.0.1", 0, serve, threaded=True, request_handler=MotoRequestHandler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.clear()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def clear(self) -> None:
        """An empty bucket, and no faults."""
        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        backend.reset()
        backend.create_bucket(BUCKET, "us-east-1")
        self.faults, self.requests, self.down, self.unchecked = [], [], False, 0

    def objects(self) -> dict[str, bytes]:
        bucket = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET]
        return {name: key.value for name, key in bucket.keys.items()}

    def unfinished(self) -> int:
        return len(s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET].multiparts)

    def _fault_of(self, method: str, query: str) -> Fault | None:
        for fault in self.faults:
            if fault.method == method and fault.query in query and fault.times > 0:
                fault.times -= 1
                return fault
        return None
