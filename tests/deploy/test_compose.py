"""docker-compose.yml, read by Docker's own `compose config`; nothing is started, for that needs a container engine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from steerboard.platform.security import production
from steerboard.platform.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE = Path(sys.executable).with_name("docker-compose")
EXAMPLE = ROOT / "deploy" / "compose" / ".env.example"
NEEDED = re.findall(r"^(\w+)=$", EXAMPLE.read_text(), re.MULTILINE)
OURS = ("migrate", "api", "worker", "interactive", "worker-gpu")
OTHERS = ("postgres", "valkey", "objects")


def compose_config(environment: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(COMPOSE), "--env-file", str(environment), "--profile", "gpu", "config", *options]
    # Variables of this shell would override the file.
    clean = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    return subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment file, made as the documentation describes."""
    made = subprocess.run(
        [ROOT / "deploy" / "compose" / "new-env", "https://board.internal"], capture_output=True, text=True, check=True
    )
    path = tmp_path_factory.mktemp("compose") / ".env"
    path.write_text(made.stdout)
    return path


@pytest.fixture(scope="module")
def services(environment: Path) -> dict[str, dict[str, Any]]:
    done = compose_config(environment, "--format", "json")
    assert done.returncode == 0, done.stderr
    document: dict[str, dict[str, Any]] = json.loads(done.stdout)["services"]
    assert set(document) == {*OURS, *OTHERS}
    return document


def test_the_example_has_no_secret_and_starts_nothing() -> None:
    done = compose_config(EXAMPLE, "--quiet")
    assert done.returncode != 0
    for name in NEEDED:
        assert f"required variable {name} is missing" in done.stderr


@pytest.mark.parametrize("name", NEEDED)
def test_compose_starts_nothing_without(name: str, environment: Path, tmp_path: Path) -> None:
    lacking = tmp_path / ".env"
    lacking.write_text(re.sub(rf"^{name}=.*$", f"{name}=", environment.read_text(), flags=re.MULTILINE))
    done = compose_config(lacking, "--quiet")
    assert done.returncode != 0
    assert f"required variable {name} is missing" in done.stderr


def test_nothing_that_compose_asks_for_has_a_default_in_any_place() -> None:
    for name in NEEDED:
        assert set(re.findall(rf"\$\{{{name}\b(:?.)", (ROOT / "docker-compose.yml").read_text())) == {":?"}, name


def test_two_generated_files_share_no_secret(environment: Path) -> None:
    again = subprocess.run([ROOT / "deploy" / "compose" / "new-env"], capture_output=True, text=True, check=True).stdout
    first = set(environment.read_text().splitlines())
    assert first.isdisjoint(again.splitlines())


@pytest.mark.parametrize("name", OURS)
def test_each_process_of_ours_accepts_what_compose_gives_it(
    name: str, services: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = services[name]["environment"]
    known = {f"STEERBOARD_{field}".upper() for field in Settings.model_fields}
    assert {key for key in given if key.startswith("STEERBOARD_")} <= known
    for key, value in given.items():
        monkeypatch.setenv(key, value)
    production.check(Settings())


@pytest.mark.parametrize("name", OURS)
def test_each_process_of_ours_is_confined(name: str, services: dict[str, dict[str, Any]]) -> None:
    service = services[name]
    assert service["user"] == "10001:10001"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["build"]["target"] in ("api", "worker-cpu", "worker-gpu")


@pytest.mark.parametrize("name", [*OURS, *OTHERS])
def test_each_image_is_pinned_and_each_server_has_a_health_check(
    name: str, services: dict[str, dict[str, Any]]
) -> None:
    service = services[name]
    assert re.search(r":\d+\.\d+", service["image"]), service["image"]
    once = name == "migrate"
    assert service["healthcheck"].get("disable", False) == once
    assert once or service["healthcheck"]["test"]
    assert service["restart"] == ("no" if once else "unless-stopped")


def test_nothing_of_ours_starts_before_the_database_is_migrated(services: dict[str, dict[str, Any]]) -> None:
    for name in set(OURS) - {"migrate"}:
        assert services[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert services["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"


def test_only_the_api_can_be_reached_and_only_from_this_host(services: dict[str, dict[str, Any]]) -> None:
    assert {name for name, service in services.items() if service.get("ports")} == {"api"}
    (port,) = services["api"]["ports"]
    assert (port["host_ip"], port["published"], port["target"]) == ("127.0.0.1", "8700", 8700)
    for name in OTHERS:
        assert set(services[name]["networks"]) == {"inside"}


def test_what_is_kept_lies_in_named_volumes_of_one_service_each(services: dict[str, dict[str, Any]]) -> None:
    volumes = [volume for service in services.values() for volume in service.get("volumes", [])]
    assert {volume["type"] for volume in volumes} == {"volume"}
    assert len({volume["source"] for volume in volumes}) == len(volumes) == len(services) - 1  # migrate keeps nothing


def test_the_gpu_worker_is_asked_for_and_takes_the_devices_of_its_pool(environment: Path) -> None:
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert document["services"]["worker-gpu"]["profiles"] == ["gpu"]
    environment.write_text(environment.read_text() + "STEERBOARD_GPUS=0-3\n")
    service = json.loads(compose_config(environment, "--format", "json").stdout)["services"]["worker-gpu"]
    assert service["command"] == ["steerboard", "worker", "--pool", "gpu", "--devices", "0-3"]
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])


def _secrets(environment: Path) -> Iterator[str]:
    for line in environment.read_text().splitlines():
        name, _, value = line.partition("=")
        if any(part in name for part in ("SECRET", "PASSWORD", "TOKEN")):
            yield value


def test_no_secret_is_part_of_a_command(environment: Path, services: dict[str, dict[str, Any]]) -> None:
    secrets = list(_secrets(environment))
    assert len(secrets) == 5
    for service in services.values():
        shown = json.dumps([service.get("command"), service.get("healthcheck"), service.get("labels")])
        assert not any(secret in shown for secret in secrets)
