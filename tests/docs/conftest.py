from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from reader import Reader, chat, write_models

from support.servers.other_server import OtherServer, other_server
from support.servers.running_up import running_up


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    if not (shutil.which("curl") and shutil.which("bash")):
        pytest.skip("needs curl and bash")
    with running_up(tmp_path_factory.mktemp("home")) as environment:
        yield environment


@pytest.fixture(scope="session")
def model_folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models by role: sft, policy, preference, reward; and foreign and classifier."""
    folder = tmp_path_factory.mktemp("models")
    write_models(folder)
    return folder


@pytest.fixture
def reader(up: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest) -> Reader:
    """A reader in a project and a folder of their own."""
    return Reader(up, tmp_path, tmp_path.name.replace("_", "-")[:40].strip("-"))


@pytest.fixture
def chat_server() -> Iterator[OtherServer]:
    with other_server() as other:
        other.answer = chat
        yield other
