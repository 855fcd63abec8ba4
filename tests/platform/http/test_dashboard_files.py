"""The dashboard's files as the API serves them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from steerboard.app import dashboard
from steerboard.platform.http.errors import install_handlers
from support.servers.app_client import AppClient


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    build = tmp_path / "dist"
    (build / "assets").mkdir(parents=True)
    (build / "index.html").write_text("<title>Steerboard</title>")
    (build / "assets" / "index-abc.js").write_text("let x")
    (build / "assets" / "index-abc.js.gz").write_bytes(gzip.compress(b"let x"))
    (tmp_path / "secret.txt").write_text("hidden words")
    monkeypatch.setattr(dashboard, "BUILD", build)
    app = FastAPI()
    install_handlers(app)
    dashboard.install(app)
    with AppClient(app) as client:
        yield client


def test_every_address_of_the_dashboard_is_its_page_and_never_cached(client: TestClient) -> None:
    for path in ("/", "/p/default/runs/7", "/sign-in"):
        answer = client.get(path)
        assert "Steerboard" in answer.text
        assert answer.headers["cache-control"] == "no-cache"


def test_assets_are_cached_for_good_and_sent_compressed_to_who_takes_that(client: TestClient) -> None:
    packed = client.get("/assets/index-abc.js", headers={"Accept-Encoding": "gzip"})
    plain = client.get("/assets/index-abc.js", headers={"Accept-Encoding": "identity"})
    assert packed.text == plain.text == "let x"
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert "immutable" in plain.headers["cache-control"]
    assert packed.headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api"])
def test_what_the_api_has_not_is_a_problem_and_not_the_page(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


def test_an_asset_of_an_older_build_is_not_the_page(client: TestClient) -> None:
    answer = client.get("/assets/index-old.js")
    assert answer.status_code == 404
    assert "reload" in answer.text


@pytest.mark.parametrize("path", ["/..%2fsecret.txt", "/assets/..%2f..%2fsecret.txt", "/%2e%2e/secret.txt"])
def test_no_address_leads_out_of_the_build(client: TestClient, path: str) -> None:
    assert "hidden" not in client.get(path).text


def test_without_a_build_it_says_what_to_do(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(dashboard, "BUILD", tmp_path / "nowhere")
    answer = client.get("/")
    assert answer.status_code == 503
    assert "make web" in answer.text


@pytest.mark.parametrize("path", ["/assets/%00", "/%00", "/assets/" + "a" * 5000, "/" + "a" * 5000, "/" + "a/" * 5000])
def test_an_address_that_no_file_can_have_is_not_found(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404
