"""PostgreSQL refuses to run as root. As root we run it as a system user instead.

That user must reach the binaries and the data, which are often below a private folder such as /root. Instead of
opening folders to everyone, the server then keeps the one capability to pass permission checks of files.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from steerboard_contracts.errors import SteerboardError

_CANDIDATES = ("pgserver", "postgres", "nobody")


def server_user() -> pwd.struct_passwd | None:
    """Whom to run PostgreSQL as; None when not root, or when no system user can be found or made."""
    if os.geteuid() != 0:
        return None
    for name in _CANDIDATES[:2]:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    if (useradd := shutil.which("useradd")) is not None:
        command = [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", _CANDIDATES[0]]
        subprocess.run(command, check=False, capture_output=True)
        try:
            return pwd.getpwnam(_CANDIDATES[0])
        except KeyError:
            pass
    return pwd.getpwnam(_CANDIDATES[-1])


def server_user_ids() -> set[int]:
    """The ids of all users that `server_user` may have chosen when a home was made: a user that is added later, as by
    another program with the same PostgreSQL, must not lock it."""
    if os.geteuid() != 0:
        return set()
    return {user.pw_uid for user in pwd.getpwall() if user.pw_name in _CANDIDATES}


def as_user(command: list[str], user: pwd.struct_passwd | None, paths: list[Path]) -> list[str]:
    """`command` run as `user`, who must be able to reach `paths`."""
    if user is None:
        return command
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise SteerboardError(
            "PostgreSQL cannot run as root, and `setpriv` (package util-linux) is missing to change the user.",
            code="no_setpriv",
            hint="Install util-linux, run Steerboard as an ordinary user, or set STEERBOARD_DATABASE_URL.",
        )
    change = [setpriv, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    if not all(_reachable(path, user) for path in paths):
        change += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    return [*change, *command]


def own(path: Path, user: pwd.struct_passwd | None) -> None:
    """Give a folder and what is in it to `user`."""
    if user is None or path.stat().st_uid == user.pw_uid:
        return
    for entry in (path, *path.rglob("*")):
        os.chown(entry, user.pw_uid, user.pw_gid, follow_symlinks=False)


def _reachable(path: Path, user: pwd.struct_passwd) -> bool:
    """Whether `user` may enter every folder above `path`."""
    for folder in path.resolve().parents:
        if not folder.exists():
            continue
        status = folder.stat()
        if status.st_uid == user.pw_uid:
            allowed = status.st_mode & 0o100
        elif status.st_gid == user.pw_gid:
            allowed = status.st_mode & 0o010
        else:
            allowed = status.st_mode & 0o001
        if not allowed:
            return False
    return True
