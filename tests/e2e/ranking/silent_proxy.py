"""A network between browser and server that goes silent: nothing arrives, and neither side notices."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class SilentProxy:
    """Passes TCP connections on to `url`. What is sent while it is silent arrives when the silence ends, as after lost
    packets that are sent again; with `forgotten`, connections from before the silence stay dead for ever, as when a
    router between has forgotten them."""

    def __init__(self, url: str) -> None:
        at = urlsplit(url)
        self._target = (str(at.hostname), int(at.port or 80))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._passing = threading.Event()
        self._passing.set()
        self._ended = False
        self._sockets: list[socket.socket] = []
        self._dead: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self, *, forgotten: bool = False) -> None:
        self._passing.clear()
        if forgotten:
            self._dead.update(self._sockets)

    def speak(self) -> None:
        self._passing.set()

    def close(self) -> None:
        self._ended = True
        self._passing.set()
        for open_socket in (self._listener, *self._sockets):
            with suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)
            open_socket.close()

    def _accept(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            self._sockets += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while True:
                data = source.recv(65536)
                self._passing.wait()
                if source in self._dead or self._ended:
                    return
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)
