"""Another key: everything opens at every moment, and in the end only with the new one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from maintenance_world import API_KEY, KeptWorld
from pydantic import SecretStr
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from steerboard.app.tables import metadata
from steerboard.maintenance import key_rotation
from steerboard.maintenance.key_rotation import KeysNeeded
from steerboard.notices.tables import NoticeRule
from steerboard.platform.security.secrets import Secrets, SecretUnreadable
from steerboard.platform.settings import Settings
from steerboard.registry.endpoints.service import key_of
from steerboard.registry.tables import Endpoint
from support.patience import PATIENCE

KILL_AT = {
    "before the file is there": "secrets.Path.replace",
    "after the file, before anything is sealed": "key_rotation.reseal",
    "in the middle of sealing": "key_rotation.Secrets.seal",
}


def settle(home: Path) -> None:
    """The key was changed long ago."""
    then = time.time() - 3600
    os.utime(home / "secret.key", (then, then))


def assert_all_opens(engine: Engine, keys: Secrets) -> None:
    with Session(engine) as session:
        assert key_of(keys, session.query(Endpoint).one()) == API_KEY
        assert keys.open(session.query(NoticeRule).one().secret_sealed) == "hush"
        answers = session.execute(text("SELECT body->>'sealed' FROM idempotency_keys WHERE body ? 'sealed'")).scalars()
        assert [keys.open(sealed) for sealed in answers] == ["an answer"]


@pytest.fixture
def sealed(world: KeptWorld, engine: Engine) -> Engine:
    """A database that also has an answer that is kept for retries, and one of an older version, in clear."""
    with engine.begin() as connection:
        for key, body in (("a", f'{{"sealed": "{world.secrets.seal("an answer")}"}}'), ("b", '{"json": 1}')):
            connection.execute(
                text(
                    "INSERT INTO idempotency_keys (id, actor, path, key, request_hash, status, body)"
                    " VALUES (gen_random_uuid(), 'me', '/', :key, 'h', 200, CAST(:body AS jsonb))"
                ),
                {"key": key, "body": body},
            )
    return engine


def test_every_column_with_sealed_text_is_sealed_anew() -> None:
    named = {(table.name, column.name) for table in metadata.tables.values() for column in table.columns}
    listed = {(sealed.table, sealed.column) for sealed in key_rotation.SEALED}
    assert {pair for pair in named if pair[1].endswith("_sealed")} <= listed <= named


def test_after_a_rotation_only_the_new_key_is_needed(sealed: Engine, home: Path) -> None:
    running = Secrets(Settings(home=home))
    old = running.known()[0]
    done = key_rotation.rotate(sealed, Secrets(Settings(home=home)), home)
    assert (done.values, done.unreadable) == (3, 0)
    new, *older = (home / "secret.key").read_text().splitlines()
    assert older == [old]
    assert_all_opens(sealed, running)  # a process that was there all the time
    assert_all_opens(sealed, Secrets(Settings(home=home, secret_key=SecretStr(new))))
    with pytest.raises(SecretUnreadable):
        assert_all_opens(sealed, Secrets(Settings(home=home, secret_key=SecretStr(old))))
    assert Secrets(Settings(home=home, secret_key=SecretStr(new))).open(running.seal("x")) == "x"


def test_the_old_key_is_forgotten_later_and_what_it_still_seals_is_sealed_anew(sealed: Engine, home: Path) -> None:
    late = Secrets(Settings(home=home)).seal(API_KEY)  # on its way into the database while the key is changed
    keys = Secrets(Settings(home=home))
    key_rotation.rotate(sealed, keys, home)
    with sealed.begin() as connection:
        connection.execute(text("UPDATE endpoints SET api_key_sealed = :late"), {"late": late})
    assert_all_opens(sealed, keys)
    with pytest.raises(KeysNeeded):
        key_rotation.forget(sealed, keys, home)
    settle(home)
    key_rotation.forget(sealed, keys, home)
    assert len((home / "secret.key").read_text().splitlines()) == 1
    assert (home / "secret.key").stat().st_mode & 0o077 == 0
    assert_all_opens(sealed, Secrets(Settings(home=home)))


def test_a_key_is_not_forgotten_while_something_opens_with_none(sealed: Engine, home: Path) -> None:
    lost = Secrets(Settings(home=home, secret_key=SecretStr("lost"))).seal("x")
    with sealed.begin() as connection:
        connection.execute(text("UPDATE notice_rules SET secret_sealed = :lost"), {"lost": lost})
    keys = Secrets(Settings(home=home))
    assert key_rotation.rotate(sealed, keys, home).unreadable == 1
    settle(home)
    with pytest.raises(KeysNeeded, match="1 stored secrets"):
        key_rotation.forget(sealed, keys, home)
    with sealed.connect() as connection:
        assert connection.execute(text("SELECT secret_sealed FROM notice_rules")).scalar_one() == lost


def test_with_variables_the_given_key_seals_and_the_previous_one_opens(sealed: Engine, home: Path) -> None:
    old = Secrets(Settings(home=home)).known()[0]
    given = Settings(home=home, secret_key=SecretStr("brand new"), secret_key_previous=SecretStr(old))
    assert_all_opens(sealed, Secrets(given))
    key_rotation.rotate(sealed, Secrets(given), home)
    key_rotation.forget(sealed, Secrets(given), home)
    assert_all_opens(sealed, Secrets(Settings(home=home, secret_key=SecretStr("brand new"))))
    assert (home / "secret.key").read_text().splitlines() == [old]


@pytest.mark.parametrize("where", list(KILL_AT.values()), ids=list(KILL_AT))
def test_killed_at_any_moment_everything_still_opens(sealed: Engine, home: Path, where: str) -> None:
    calls = 2 if where.endswith(".seal") else 1
    code = (
        "import os, sys; from pathlib import Path; from sqlalchemy import create_engine\n"
        "from steerboard.maintenance import key_rotation; from steerboard.platform.security import secrets\n"
        "from steerboard.platform.settings import Settings; home = Path(sys.argv[2])\n"
        f"left = [{calls}]; real = {where}\n"
        "def kill(*given):\n"
        "    left[0] -= 1\n"
        "    if not left[0]: os.kill(os.getpid(), 9)\n"
        "    return real(*given)\n"
        f"{where} = kill\n"
        "key_rotation.rotate(create_engine(sys.argv[1]), secrets.Secrets(Settings(home=home)), home)"
    )
    url = sealed.url.render_as_string(hide_password=False)
    assert subprocess.run([sys.executable, "-c", code, url, str(home)]).returncode == -9
    assert_all_opens(sealed, Secrets(Settings(home=home)))
    key_rotation.rotate(sealed, Secrets(Settings(home=home)), home)
    settle(home)
    key_rotation.forget(sealed, Secrets(Settings(home=home)), home)
    assert_all_opens(sealed, Secrets(Settings(home=home)))


@pytest.mark.long
def test_two_rotations_at_once_lose_no_key(sealed: Engine, home: Path) -> None:
    """The first one is halted between reading the keys and writing them; the second one has to wait for it."""
    code = (
        "import sys; from pathlib import Path; from sqlalchemy import create_engine\n"
        "from steerboard.maintenance import key_rotation; from steerboard.platform.security.secrets import Secrets\n"
        "from steerboard.platform.settings import Settings\n"
        "home = Path(sys.argv[2]); write = key_rotation.write_key_file\n"
        "def halted(*given):\n"
        "    print('read', flush=True); sys.stdin.read(); write(*given)\n"
        "key_rotation.write_key_file = halted\n"
        "key_rotation.rotate(create_engine(sys.argv[1]), Secrets(Settings(home=home)), home)"
    )
    command = [sys.executable, "-c", code, sealed.url.render_as_string(hide_password=False), str(home)]
    first = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    assert first.stdout.readline() == "read\n"
    second = subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True)
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(3)
    first.communicate("")
    assert (first.returncode, second.wait(PATIENCE)) == (0, 0)
    assert len((home / "secret.key").read_text().splitlines()) == 3
    assert_all_opens(sealed, Secrets(Settings(home=home)))
