from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from steerboard.platform.security.secrets import Secrets, SecretUnreadable
from steerboard.platform.settings import Settings


def test_what_was_sealed_opens_in_another_process_of_the_same_home(home: Path) -> None:
    sealed = Secrets(Settings(home=home)).seal("sk-häuser")
    assert "häuser" not in sealed
    assert Secrets(Settings(home=home)).open(sealed) == "sk-häuser"
    assert stat.S_IMODE((home / "secret.key").stat().st_mode) == 0o600
    assert [path.name for path in home.iterdir()] == ["secret.key"]


def test_processes_that_start_together_share_one_key(home: Path) -> None:
    code = (
        "import sys; from steerboard.platform.security.secrets import Secrets;"
        "from steerboard.platform.settings import Settings;"
        f"secrets = Secrets(Settings(home={str(home)!r})); sys.stdin.read(1); print(secrets.seal('x'))"
    )
    command = [sys.executable, "-c", code]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    sealed = [process.communicate("g")[0].strip() for process in started]
    assert [Secrets(Settings(home=home)).open(text) for text in sealed] == ["x"] * 3


def test_the_variable_goes_before_the_file_and_may_take_its_place(home: Path, tmp_path: Path) -> None:
    sealed = Secrets(Settings(home=home)).seal("x")
    moved = (home / "secret.key").read_text()
    other = Settings(home=tmp_path / "other", secret_key=SecretStr(moved))
    assert Secrets(other).open(sealed) == "x"
    assert not (tmp_path / "other").exists()
    assert moved.strip() not in repr(other)


def test_another_key_is_an_error_that_says_so(home: Path) -> None:
    sealed = Secrets(Settings(home=home)).seal("x")
    with pytest.raises(SecretUnreadable) as caught:
        Secrets(Settings(home=home, secret_key=SecretStr("other"))).open(sealed)
    assert caught.value.code == "secret_unreadable"
    assert "STEERBOARD_SECRET_KEY" in (caught.value.hint or "")
