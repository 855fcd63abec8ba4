"""Calls to URLs of users: which addresses they reach, and how little of an answer they wait for."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from steerboard.platform.security.safe_http import (
    AddressRefused,
    BadUrl,
    check_url,
    open_client,
    read_start,
    refuse_private,
)
from steerboard.platform.settings import Settings
from steerboard_contracts.network.addresses import AllowList, is_public
from support.servers.other_server import Answer, OtherServer, other_server


@pytest.fixture
def other() -> Iterator[OtherServer]:
    with other_server() as server:
        yield server


def settings(home: Path, allowed: str = "") -> Settings:
    return Settings(home=home, allowed_private=allowed)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "198.18.0.1",
        "192.0.0.192",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%1",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::7f00:1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::a00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::1",
        "2001:db8::1",
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "2606:4700:4700::1111", "2a00:1450:4001::200e"])
def test_public_addresses(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    ("entry", "host", "address", "port", "allowed"),
    [
        ("127.0.0.1", "localhost", "127.0.0.1", 80, True),
        ("127.0.0.1:8000", "localhost", "127.0.0.1", 8000, True),
        ("127.0.0.1:8000", "localhost", "127.0.0.1", 8001, False),
        ("10.0.0.0/8, gpu.internal", "x", "10.9.9.9", 1, True),
        ("10.0.0.0/8:443", "x", "10.9.9.9", 80, False),
        ("10.0.0.0/8", "x", "::ffff:10.0.0.1", 80, False),
        ("gpu.internal:8000", "GPU.Internal.", "10.9.9.9", 8000, True),
        ("gpu.internal", "evil.gpu.internal", "10.9.9.9", 80, False),
        ("[::1]:8000", "x", "::1", 8000, True),
        ("::1", "x", "::1", 1, True),
        ("", "x", "127.0.0.1", 80, False),
    ],
)
def test_the_allow_list_names_hosts_addresses_and_networks(
    entry: str, host: str, address: str, port: int, allowed: bool
) -> None:
    assert AllowList(entry).allows(host, ipaddress.ip_address(address), port) is allowed


@pytest.mark.parametrize("entry", ["http://x", "10.0.0.0/99", "a b", "x:99999", "[::1", "*"])
def test_an_allow_list_that_cannot_be_read_stops_the_start(home: Path, entry: str) -> None:
    with pytest.raises(ValidationError):
        settings(home, entry)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/x",
        "file:///etc/passwd",
        "http://",
        "host/path",
        "https://user:pass@host/",
        "https://user@host/",
        "https://host/#part",
        "https://host:99999/",
        "https://host/\x00",
        "https://host/" + "x" * 2000,
    ],
)
def test_urls_of_another_form_are_refused(url: str) -> None:
    with pytest.raises(BadUrl):
        check_url(url)


def test_a_good_url_stays_as_it_is() -> None:
    assert check_url(" https://host:8443/v1?x=1 ") == "https://host:8443/v1?x=1"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])
def test_a_private_server_gets_no_connection(other: OtherServer, home: Path, host: str) -> None:
    with open_client(settings(home), timeout_seconds=5) as client:
        with pytest.raises(AddressRefused):
            client.get(other.url.replace("127.0.0.1", host))
    assert other.seen == []


def test_the_operator_can_allow_one(other: OtherServer, home: Path) -> None:
    port = other.url.rpartition(":")[2]
    with open_client(settings(home, f"127.0.0.1:{port}"), timeout_seconds=5) as client:
        assert client.get(other.url).status_code == 200


def test_a_name_with_one_private_address_among_public_ones_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = [(2, 1, 6, "", (address, 80)) for address in ("203.0.114.1", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
    with open_client(settings(home), timeout_seconds=5) as client:
        with pytest.raises(AddressRefused, match=r"^mixed\.example:80 is not at a public address") as caught:
            client.get("http://mixed.example/")
    assert "10.0.0.1" not in f"{caught.value.detail}{caught.value.hint}", "what it resolved to is the operator's affair"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/v1",
        "https://localhost/",
        "http://localhost:8000/v1",
        "http://[::1]:8000/v1",
        "http://[::ffff:127.0.0.1]:8000/v1",
        "http://2130706433:8000/v1",
    ],
)
def test_a_private_address_is_refused_at_once_with_the_setting_that_allows_it(home: Path, url: str) -> None:
    with pytest.raises(AddressRefused) as caught:
        refuse_private(settings(home), url)
    setting = re.search(r"STEERBOARD_ALLOWED_PRIVATE=(\S+)", caught.value.hint or "")
    assert setting is not None
    refuse_private(settings(home, setting[1]), url)


def test_a_name_that_is_resolved_slowly_or_not_at_all_may_be_registered(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_private(settings(home), "https://name.invalid/v1")
    ended = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: ended.wait(30) and [])
    began = time.monotonic()
    refuse_private(settings(home), "https://slow.example/v1")
    assert time.monotonic() - began < 25
    ended.set()


def test_a_name_that_changes_after_the_check_leads_nowhere_else(
    other: OtherServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first answer of the resolver counts: it was checked, and it is connected to."""
    port = int(other.url.rpartition(":")[2])
    real = socket.getaddrinfo
    asked: list[str] = []

    def rebinding(host: Any, *rest: Any, **named: Any) -> Any:
        if host != "rebind.example":
            return real(host, *rest, **named)
        asked.append(host)
        return real("127.0.0.1" if len(asked) == 1 else "127.0.0.2", *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    with open_client(settings(home, f"127.0.0.1:{port}"), timeout_seconds=5) as client:
        assert client.get(f"http://rebind.example:{port}/").status_code == 200
        assert other.seen[0].headers["host"] == f"rebind.example:{port}"
    with open_client(settings(home, f"127.0.0.1:{port}"), timeout_seconds=5) as client:
        with pytest.raises(AddressRefused):
            client.get(f"http://rebind.example:{port}/")


def test_redirects_and_proxies_of_the_environment_are_not_followed(
    other: OtherServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    other.answer = lambda _: Answer(302, headers={"Location": other.url + "/secret"})
    with open_client(settings(home, "127.0.0.1"), timeout_seconds=5) as client:
        assert client.get(other.url).status_code == 302
    assert [seen.path for seen in other.seen] == ["/"]


def test_a_server_that_never_ends_is_left_in_time(other: OtherServer, home: Path) -> None:
    def drip() -> bytes:
        time.sleep(0.05)
        return b"x"

    other.answer = lambda _: Answer(pieces=[drip] * 1000)
    began = time.monotonic()
    with open_client(settings(home, "127.0.0.1"), timeout_seconds=5, total_seconds=0.5) as client:
        with pytest.raises(httpx.TimeoutException), client.stream("GET", other.url) as response:
            read_start(response, 1 << 20)
    assert time.monotonic() - began < 30


def test_only_the_start_of_a_large_answer_is_read(other: OtherServer, home: Path) -> None:
    other.answer = lambda _: Answer(pieces=[b"x" * 65536] * 200)
    with open_client(settings(home, "127.0.0.1"), timeout_seconds=5) as client:
        with client.stream("GET", other.url) as response:
            assert read_start(response, 1000) == (b"x" * 1000, False)
