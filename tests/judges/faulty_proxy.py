"""A proxy before an OpenAI-compatible server that fails, stalls, limits and talks nonsense, and knows what it let
through."""

from __future__ import annotations

import hashlib
import json
import random
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from support.patience import PATIENCE

NONSENSE = "I like trains."
# The fate of 25 tries, in random order; then of the next 25.
DECK = {
    "through": 14,
    "http_500": 3,
    "http_429": 2,
    "cut_before": 1,
    "cut_within": 1,
    "garbage": 2,
    "nonsense": 2,
}


class FaultyProxy:
    """`answered`: complete answers by content, as (prompt, text); `faults`: what the client must have noticed, by the
    code that it should count. `stalling`: the next two tries are never answered. `time_limit`: seconds after which
    the client gives up; what takes nearly that long is not answered any more, for only so do both count the same.
    """

    def __init__(self, upstream: str, seed: int, time_limit: float) -> None:
        self.url = ""
        self.upstream = upstream
        self.time_limit = time_limit
        # When they began, and what had been dropped by then.
        self._under_way: dict[socket.socket, tuple[float, int]] = {}
        self.answered: dict[str, list[tuple[str, str]]] = {}
        self.faults: Counter[str] = Counter()
        self.nonsense = 0
        self.stalling = False
        self.closing = threading.Event()
        self._rng = random.Random(seed)
        self._cards: list[str] = []
        self._stalled = 0
        self._generation = 0
        self._open = threading.Event()
        self._open.set()
        self.lock = threading.Lock()

    @property
    def complete(self) -> int:
        with self.lock:
            return sum(len(texts) for texts in self.answered.values())

    def hold(self) -> None:
        """Lets requests in from now on, but nothing out, be it an answer or a fault."""
        self._open.clear()

    def drop_and_go_on(self) -> None:
        """Held requests are not answered, because their sender is dead; new ones are."""
        with self.lock:
            self._generation += 1
        self._open.set()

    def draw(self) -> str:
        """The fate of a try."""
        with self.lock:
            # Two that stall are enough: each costs its whole time limit.
            if self.stalling and self._stalled < 2:
                self._stalled += 1
                return "timeout"
            if not self._cards:
                self._cards = list(Counter(DECK).elements())
                self._rng.shuffle(self._cards)
            return self._cards.pop()

    def put_back(self, card: str) -> None:
        """No one has seen it: so each kind of fault is sure to be met."""
        with self.lock:
            self._cards.append(card)

    def fresh(self) -> bool:
        """Whether requests are under way, and none of them near its end."""
        now = time.monotonic()
        with self.lock:
            ages = [now - began for began, _ in self._under_way.values()]
        return bool(ages) and max(ages) < self.time_limit / 2

    @contextmanager
    def request(self, connection: socket.socket) -> Iterator[None]:
        """Counts a request while it is under way."""
        with self.lock:
            self._under_way[connection] = time.monotonic(), self._generation
        try:
            yield
        finally:
            with self.lock:
                del self._under_way[connection]

    def may_answer(self, connection: socket.socket) -> bool:
        """Waits until nothing is held any more; whether someone still waits for the answer, and will for a while."""
        with self.lock:
            began, generation = self._under_way[connection]
        while not self._open.wait(0.02):
            if self.closing.is_set():
                return False
            if gone(connection):
                break
        if time.monotonic() - began < self.time_limit * 0.7:
            with self.lock:
                return generation == self._generation and not gone(connection)
        self.stall(connection)
        return False

    def stall(self, connection: socket.socket) -> None:
        """Keeps the connection open until the client gives up. Its death, which is not counted, comes while requests
        are `fresh`."""
        with self.lock:
            began, _ = self._under_way[connection]
        while not gone(connection) and not self.closing.is_set():
            time.sleep(0.02)
        if time.monotonic() - began > self.time_limit * 0.7:
            self.note("timeout")

    def note(self, code: str) -> None:
        with self.lock:
            self.faults[code] += 1


def gone(connection: socket.socket) -> bool:
    """Whether the other side has closed it: nothing else comes after a request."""
    return bool(select.select([connection], [], [], 0)[0])


@contextmanager
def faulty_proxy(upstream: str, seed: int, time_limit: float) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(upstream, seed, time_limit)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            with suppress(BrokenPipeError, ConnectionResetError), proxy.request(self.connection):
                self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes) -> None:
            fault = proxy.draw()
            content = b""
            if fault in ("through", "nonsense", "cut_within"):
                content = self._upstream(body)
            if fault == "timeout":
                proxy.stall(self.connection)
            elif not proxy.may_answer(self.connection):
                proxy.put_back(fault)
            elif fault == "http_500":
                proxy.note(fault)
                self._send(500, b'{"error": {"message": "out of order"}}')
            elif fault == "http_429":
                proxy.note(fault)
                self._send(429, b"{}", {"Retry-After": "0.1"})
            elif fault == "cut_before":
                proxy.note("broken_connection")
            elif fault == "cut_within":
                proxy.note("broken_connection")
                self._send(200, content[: len(content) // 2], {"Content-Length": str(len(content))})
            elif fault == "garbage":
                proxy.note("nonsense")
                self._send(200, b'{"choices": [{"message": ')
            else:
                self._complete(body, content, fault)

        def _complete(self, body: bytes, content: bytes, fault: str) -> None:
            document = json.loads(content)
            message = document["choices"][0]["message"]
            if fault == "nonsense":
                message["content"] = NONSENSE
            with proxy.lock:
                proxy.nonsense += fault == "nonsense"
                asked = json.loads(body)["messages"][1]["content"]
                proxy.answered.setdefault(hashlib.sha256(body).hexdigest(), []).append((asked, message["content"]))
            self._send(200, json.dumps(document).encode())

        def _upstream(self, body: bytes) -> bytes:
            answer = httpx.post(
                f"{proxy.upstream}{self.path}",
                content=body,
                headers={"Content-Type": "application/json"},
                timeout=PATIENCE,
            )
            assert answer.is_success, answer.text
            return answer.content

        def _send(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for header, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
                self.send_header(header, value)
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield proxy
    finally:
        proxy.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
