"""Whose the folder of the servers' sockets may be."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from steerboard.platform.processes import system_user
from steerboard.platform.processes.embedded import ServerFailed, socket_folder

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")


def test_a_home_made_before_the_machine_had_another_user_for_postgres_still_opens(tmp_path: Path) -> None:
    run = socket_folder(tmp_path)
    other = pwd.getpwnam("nobody")
    os.chown(run, other.pw_uid, other.pw_gid)
    user = system_user.server_user()
    assert user is not None
    assert socket_folder(tmp_path).stat().st_uid == user.pw_uid


def test_a_folder_of_a_stranger_is_refused(tmp_path: Path) -> None:
    os.chown(socket_folder(tmp_path), 54321, 54321)
    with pytest.raises(ServerFailed) as refused:
        socket_folder(tmp_path)
    assert refused.value.code == "unsafe_folder"
