"""Calls to URLs that users give: model endpoints, webhooks and rewards.

A host is resolved, all of its addresses are checked, and the connection goes to an address that was checked. So a name
that resolves to another address a moment later leads nowhere else. TLS still checks the certificate of the name.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import httpcore
import httpx

from steerboard_contracts.errors import BadInput
from steerboard_contracts.network.addresses import Address, AllowList, is_public

_LONGEST_URL = 2000
# At a registration. A slow resolver holds it up no longer; every call checks again.
_RESOLVE_SECONDS = 1.0
_PORTS = {"http": 80, "https": 443}
_Options = Iterable[tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]]


class BadUrl(BadInput):
    """The URL itself cannot be used, wherever it leads."""

    code = "bad_url"
    title = "This URL cannot be used"


class AddressRefused(BadInput):
    """The URL leads to an address that is not public and that the operator has not allowed."""

    code = "address_refused"
    title = "This address may not be called"


def check_url(url: str) -> str:
    """The URL without spaces around it, by its form alone. Where it leads: `refuse_private`, and every call.

    Raises `BadUrl`: only http and https, with a host, without credentials or a fragment.
    """
    url = url.strip()
    try:
        parsed = httpx.URL(url)
        port = parsed.port
    except (httpx.InvalidURL, ValueError) as error:
        raise BadUrl(f"the URL cannot be read: {error}") from None
    if len(url) > _LONGEST_URL:
        raise BadUrl(f"the URL has more than {_LONGEST_URL} characters")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise BadUrl("the URL is not an http or https URL with a host", hint="Write https://host/path.")
    if parsed.userinfo:
        raise BadUrl("the URL holds credentials", hint="Leave them out; a key has a field of its own.")
    if parsed.fragment or "#" in url:
        raise BadUrl("the URL has a fragment", hint="Leave out `#` and what follows.")
    if port is not None and not 0 < port < 65536:
        raise BadUrl(f"{port} is not a valid port")
    return url


def refuse_private(allowed: AllowList, url: str) -> None:
    """Called at the registration of a URL that `check_url` has passed. Raises `AddressRefused`, as a call would.

    A name that has no address now, or whose resolver is slow, may be registered: every call checks again.
    """
    parsed = httpx.URL(url)
    host, port = parsed.raw_host.decode("ascii"), parsed.port or _PORTS[parsed.scheme]
    answers: queue.SimpleQueue[list[Address]] = queue.SimpleQueue()

    def resolve() -> None:
        try:
            answers.put(_resolve(host, port))
        except httpcore.ConnectError:
            answers.put([])

    threading.Thread(target=resolve, name="resolver", daemon=True).start()
    try:
        addresses = answers.get(timeout=_RESOLVE_SECONDS)
    except queue.Empty:
        return
    _refuse_private(allowed, host, port, addresses)


def open_client(
    allowed: AllowList, *, timeout_seconds: float, total_seconds: float | None = None, agent: str = "steerboard"
) -> httpx.Client:
    """A client for URLs of users. It follows no redirect, knows no proxy, and asks for uncompressed answers.

    `timeout_seconds` bounds each step (connect, each read and write); `total_seconds`, where given, the client's whole
    lifetime, so a server cannot hold a thread by answering one byte at a time. A call raises `AddressRefused` or an
    `httpx.HTTPError`.
    """
    ends = time.monotonic() + total_seconds if total_seconds is not None else None
    return httpx.Client(
        transport=_CheckedTransport(_CheckedBackend(allowed, ends)),
        timeout=timeout_seconds,
        trust_env=False,
        follow_redirects=False,
        # Nothing is unpacked here, so that a small answer stays small.
        headers={"User-Agent": agent, "Accept-Encoding": "identity"},
    )


def open_socket(allowed: AllowList, url: str, *, timeout_seconds: float) -> socket.socket:
    """A connection, not yet TLS, to the host of a URL that `check_url` has passed, for other protocols than HTTP.

    Raises `AddressRefused`, `httpcore.ConnectError`, `httpcore.ConnectTimeout`.
    """
    parsed = httpx.URL(url)
    host, port = parsed.raw_host.decode("ascii"), parsed.port or _PORTS[parsed.scheme]
    connection: socket.socket = (
        _CheckedBackend(allowed, None).connect_tcp(host, port, timeout_seconds).get_extra_info("socket")
    )
    return connection


def read_start(response: httpx.Response, limit: int) -> tuple[bytes, bool]:
    """The first `limit` bytes of a streamed answer as they came, and whether that was all of it."""
    body = b""
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > limit:
            return body[:limit], False
    return body, True


class _CheckedTransport(httpx.HTTPTransport):
    def __init__(self, backend: httpcore.NetworkBackend) -> None:
        # httpx has no argument for the backend of its pool; test_safe_http.py sees that this one is used.
        self._pool = httpcore.ConnectionPool(ssl_context=ssl_context(), network_backend=backend, max_connections=8)


@lru_cache(maxsize=1)
def ssl_context() -> ssl.SSLContext:
    """Reading all root certificates takes tens of milliseconds, so once."""
    return httpx.create_ssl_context()


class _CheckedBackend(httpcore.NetworkBackend):
    def __init__(self, allowed: AllowList, ends: float | None) -> None:
        self._allowed = allowed
        self._ends = ends
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: _Options | None = None,
    ) -> httpcore.NetworkStream:
        addresses = _resolve(host, port)
        _refuse_private(self._allowed, host, port, addresses)
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                stream = self._plain.connect_tcp(
                    str(address), port, _left(timeout, self._ends), local_address, socket_options
                )
                return stream if self._ends is None else _EndingStream(stream, self._ends)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: _Options | None = None
    ) -> httpcore.NetworkStream:
        raise AddressRefused("a local socket is not an address")

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def _refuse_private(allowed: AllowList, host: str, port: int, addresses: list[Address]) -> None:
    """The message repeats what was given and not what it resolved to, which would map the operator's network."""
    if all(is_public(address) or allowed.allows(host, address, port) for address in addresses):
        return
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    raise AddressRefused(
        f"{place} is not at a public address",
        hint=f"The operator of this server can allow it with STEERBOARD_ALLOWED_PRIVATE={place} (a comma separates it "
        "from what that allows already), for the API and the workers.",
    )


def _resolve(host: str, port: int) -> list[Address]:
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(f"{host} cannot be resolved: {error}") from error
    return list(dict.fromkeys(ipaddress.ip_address(entry[4][0]) for entry in entries))


def _left(timeout: float | None, ends: float | None) -> float | None:
    """The smaller of a step's timeout and what is left of the client's life."""
    if ends is None:
        return timeout
    left = max(ends - time.monotonic(), 0.001)
    return left if timeout is None else min(timeout, left)


class _EndingStream(httpcore.NetworkStream):
    """A connection that ends with its client's life, however busy it is."""

    def __init__(self, inner: httpcore.NetworkStream, ends: float) -> None:
        self._inner = inner
        self._ends = ends

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if time.monotonic() >= self._ends:
            raise httpcore.ReadTimeout("the answer took too long")
        return self._inner.read(max_bytes, _left(timeout, self._ends))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if time.monotonic() >= self._ends:
            raise httpcore.WriteTimeout("the request took too long")
        self._inner.write(buffer, _left(timeout, self._ends))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, _left(timeout, self._ends))
        return _EndingStream(inner, self._ends)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
