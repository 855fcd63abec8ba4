"""A proxy before an OpenAI-compatible server that fails, stalls, limits and talks nonsense, and knows what it let
through."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

NONSENSE = "I like trains."
# Share of the tries that end like this; of the rest the answer comes through.
FAULTS = {
    "http_500": 0.12,
    "http_429": 0.08,
    "cut_before": 0.05,
    "cut_within": 0.05,
    "garbage": 0.06,
    "nonsense": 0.08,
}


class FaultyProxy:
    """What happens to a request depends on the seed, on what is asked, and on how often it was asked before.

    `answered`: complete answers by content, as (prompt, text); `faults`: what the client must have noticed, by the
    code that it should count. `stalling`: the next two tries are never answered.
    """

    def __init__(self, upstream: str, seed: int) -> None:
        self.url = ""
        self.upstream = upstream
        self.tries: Counter[str] = Counter()
        self.answered: dict[str, list[tuple[str, str]]] = {}
        self.faults: Counter[str] = Counter()
        self.nonsense = 0
        self.under_way = 0
        self.stalling = False
        self.closing = threading.Event()
        self._seed = seed
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
        """From now on requests come in, but nothing goes out, be it an answer or a fault."""
        self._open.clear()

    def drop_and_go_on(self) -> None:
        """What was held is not answered, for whoever asked is dead; what comes from now on is."""
        with self.lock:
            self._generation += 1
        self._open.set()

    def decide(self, body: bytes) -> tuple[str, str]:
        """(identity of the request, what becomes of this try)."""
        name = hashlib.sha256(body).hexdigest()
        with self.lock:
            self.tries[name] += 1
            number = self.tries[name]
            draw = random.Random(f"{self._seed} {name} {number}").random()
            # Two that stall are enough: each costs its whole time limit.
            if self.stalling and self._stalled < 2:
                self._stalled += 1
                return name, "timeout"
        for fault, share in FAULTS.items():
            draw -= share
            if draw < 0:
                return name, fault
        return name, "through"

    def wait_for_gate(self) -> bool:
        """Whether the request may still be answered."""
        with self.lock:
            generation = self._generation
        while not self._open.wait(0.05):
            if self.closing.is_set():
                return False
        with self.lock:
            return generation == self._generation


@contextmanager
def faulty_proxy(upstream: str, seed: int) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(upstream, seed)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            with proxy.lock:
                proxy.under_way += 1
            try:
                self._answer(self.rfile.read(int(self.headers["Content-Length"])))
            except (BrokenPipeError, ConnectionResetError):
                pass
            finally:
                with proxy.lock:
                    proxy.under_way -= 1

        def _answer(self, body: bytes) -> None:
            name, fault = proxy.decide(body)
            content = b""
            if fault in ("through", "nonsense", "cut_within"):
                content = self._upstream(body)
            if not proxy.wait_for_gate():
                return
            if fault == "timeout":
                self._note("timeout")
                proxy.closing.wait(30)
            elif fault == "http_500":
                self._note(fault)
                self._send(500, b'{"error": {"message": "out of order"}}')
            elif fault == "http_429":
                self._note(fault)
                self._send(429, b"{}", {"Retry-After": "0.1"})
            elif fault == "cut_before":
                self._note("broken_connection")
            elif fault == "cut_within":
                self._note("broken_connection")
                self._send(200, content[: len(content) // 2], {"Content-Length": str(len(content))})
            elif fault == "garbage":
                self._note("nonsense")
                self._send(200, b'{"choices": [{"message": ')
            else:
                self._complete(name, body, content, fault)

        def _complete(self, name: str, body: bytes, content: bytes, fault: str) -> None:
            document = json.loads(content)
            message = document["choices"][0]["message"]
            if fault == "nonsense":
                message["content"] = NONSENSE
            with proxy.lock:
                proxy.nonsense += fault == "nonsense"
                asked = json.loads(body)["messages"][1]["content"]
                proxy.answered.setdefault(name, []).append((asked, message["content"]))
            self._send(200, json.dumps(document).encode())

        def _upstream(self, body: bytes) -> bytes:
            answer = httpx.post(
                f"{proxy.upstream}{self.path}", content=body, headers={"Content-Type": "application/json"}, timeout=60
            )
            assert answer.is_success, answer.text
            return answer.content

        def _note(self, code: str) -> None:
            with proxy.lock:
                proxy.faults[code] += 1

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
