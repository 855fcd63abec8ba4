"""The names by which a server is reached, so that no other site's name can stand in for its own."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI

from steerboard.platform.http.hosts import Hosts
from steerboard.platform.settings import Settings
from support.patience import PATIENCE
from support.servers.served_app import served

PRODUCTION = {"environment": "production", "public_url": "https://board.example.org", "host": "0.0.0.0"}
LOCAL = ("localhost:8700", "127.0.0.1:8700", "[::1]:8700", "LOCALHOST")
REBOUND = ("evil.example", "evil.example:8700", "localhost.evil.example", "", "[", "127.0.0.1.evil.example")


@pytest.mark.parametrize(
    ("settings", "known", "unknown"),
    [
        ({}, (*LOCAL, "192.168.0.7:8700"), REBOUND),
        (
            PRODUCTION,
            (*LOCAL, "board.example.org", "board.example.org."),
            (*REBOUND, "10.0.0.7", "x.board.example.org"),
        ),
        (PRODUCTION | {"allowed_hosts": "board.internal, *.example.net"}, ("board.internal", "a.example.net"), REBOUND),
        (PRODUCTION | {"allowed_hosts": "*"}, ("evil.example",), ()),
        ({"host": "0.0.0.0"}, ("my-machine:8700",), ()),
        ({"host": "0.0.0.0", "allowed_hosts": "my-machine"}, ("my-machine:8700",), REBOUND),
    ],
)
def test_a_server_goes_by_its_own_names(
    settings: dict[str, str], known: tuple[str, ...], unknown: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STEERBOARD_ALLOWED_HOSTS", raising=False)
    hosts = Hosts.of(Settings(**settings))  # type: ignore[arg-type]
    assert {name: hosts.has(name) for name in (*known, *unknown)} == dict.fromkeys(known, True) | dict.fromkeys(
        unknown, False
    )


def test_a_name_that_another_site_has_pointed_here_reads_nothing_and_a_probe_is_answered(app: FastAPI) -> None:
    with served(app) as url, httpx.Client(base_url=url, timeout=PATIENCE) as browser:
        rebound = {"Host": "evil.example"}
        for path in ("/", "/api/v1/openapi.json", "/sign-in/x", "/api/v1/session"):
            refused = browser.get(path, headers=rebound)
            assert (refused.status_code, refused.json()["code"]) == (421, "unknown_host"), path
            assert browser.get(path).status_code != 421, path
        assert browser.get("/api/v1/system/live", headers=rebound).status_code == 204
