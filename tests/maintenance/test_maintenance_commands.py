"""The commands of docs/maintenance.md, verbatim, on a home with embedded servers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from maintenance_world import KeptWorld, rows_of
from sqlalchemy import Engine, text

from steerboard.accounts import service as accounts
from steerboard.cli.maintenance import duration
from steerboard.maintenance.databases import database
from steerboard.platform import migrations
from steerboard.platform.database import make_sessions, transaction
from steerboard.platform.processes.embedded import EmbeddedServers, PostgresChanged
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings, get_settings
from steerboard.platform.storage.artifacts import ArtifactStore
from support.processes.command_line import Steerboard

DOCS = Path(__file__).parents[2] / "docs" / "maintenance.md"


def commands_of(text: str) -> list[str]:
    return [command.partition("#")[0].strip() for command in re.findall(r"^    (steerboard .+)$", text, re.MULTILINE)]


class Shell:
    """Runs commands as the documentation writes them, with its folders below one of ours."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
        self.environment["STEERBOARD_HOME"] = str(folder / "home")

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        words = [str(self.folder / word[1:]) if word.startswith("/") else word for word in command.split()[1:]]
        words = [word.replace("restored", str(self.folder / "restored")) for word in words]
        return subprocess.run(
            [sys.executable, "-m", "steerboard.cli.main", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            cwd=self.folder,
        )

    def settings(self, home: str) -> Settings:
        return Settings(
            home=self.folder / home, database_url="", artifact_url=f"file://{self.folder / home / 'artifacts'}"
        )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home that has a small platform in it, which does not run."""
    folder = tmp_path_factory.mktemp("kept")
    made = Shell(folder)
    settings = made.settings("home")
    with database(settings, migrated=False, new=True) as engine:
        migrations.migrate(engine)
        sessions = make_sessions(engine)
        with transaction(sessions) as session:
            project, _ = accounts.ensure_default(session, 0.1)
        (folder / "world").mkdir()
        store = ArtifactStore(settings.artifact_url)
        world = KeptWorld(sessions, project, store, Secrets(settings), folder / "world")
        world.fill()
        world.model("gone", b"of a model that was deleted")
        world.drop_model("gone")
    return folder


@pytest.fixture
def shell(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell on a copy of that home."""
    for name in [name for name in os.environ if name.startswith("STEERBOARD_")]:
        monkeypatch.delenv(name)
    shutil.copytree(kept / "home", tmp_path / "home", ignore=shutil.ignore_patterns("run"), symlinks=True)
    return Shell(tmp_path)


def rows_at(shell: Shell, home: str) -> dict[str, list[str]]:
    with database(shell.settings(home)) as engine:
        return rows_of(engine)


@pytest.mark.long
def test_the_documented_commands_do_what_they_say(shell: Shell) -> None:
    commands = commands_of(DOCS.read_text())
    kinds = [" ".join(command.split()[1:3]) for command in commands]
    assert {"secrets rotate", "secrets forget"} <= set(kinds)
    assert {"backup", "restore", "gc"} <= {kind.split()[0] for kind in kinds}
    before = rows_at(shell, "home")
    for command in dict.fromkeys(commands):
        if command.endswith("forget"):
            then = time.time() - 3600
            os.utime(shell.folder / "home" / "secret.key", (then, then))
        done = shell.run(command)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert "Traceback" not in done.stderr
    assert rows_at(shell, "restored") == before
    blobs = [path for path in (shell.folder / "restored" / "artifacts" / "blobs").rglob("*") if path.is_file()]
    assert blobs
    done = shell.run("steerboard gc --older-than 0m")
    assert re.search(r"freed 1 blobs .* 1 artifacts", done.stdout), done.stdout + done.stderr
    assert shell.run("steerboard restore /backups/steerboard --home restored").returncode == 1
    assert "[not_empty]" in shell.run("steerboard restore /backups/steerboard --home restored").stderr
    told = shell.run("steerboard backup /backups/steerboard")
    assert "sealed secrets but not their key" in told.stdout


@pytest.mark.parametrize("command", [pytest.param("up --port 0", marks=pytest.mark.long), "backup /backups"])
def test_data_of_another_postgres_stop_every_command_before_anything_is_touched(shell: Shell, command: str) -> None:
    version = shell.folder / "home" / "postgres" / "PG_VERSION"
    installed = version.read_text()
    version.write_text("17\n")
    before = {path: path.lstat().st_mtime_ns for path in (shell.folder / "home").rglob("*") if "run" not in path.parts}
    done = shell.run(f"steerboard {command}")
    assert done.returncode == 1
    assert "[postgres_changed]" in done.stderr
    assert "PostgreSQL 17" in done.stderr
    assert "steerboard backup" in done.stderr
    changed = {
        path.name
        for path in (shell.folder / "home").rglob("*")
        if "run" not in path.parts and before.get(path) != path.lstat().st_mtime_ns
    }
    assert changed <= {"home", "up.lock"}
    version.write_text(installed)
    assert rows_at(shell, "home")


def test_a_backup_of_a_home_that_runs_leaves_it_running(shell: Shell) -> None:
    settings = shell.settings("home")
    servers = EmbeddedServers(settings.home, quick=True)
    servers.start(valkey=False)
    try:
        assert shell.run("steerboard backup /backups").returncode == 0
        assert servers.database_answers()
    finally:
        servers.stop()
    assert not EmbeddedServers(settings.home).database_answers()


@pytest.mark.long
def test_a_backup_is_for_its_owners_eyes_only_and_none_that_leads_elsewhere_is_restored(shell: Shell) -> None:
    done = shell.run("steerboard backup /backups")
    assert done.returncode == 0, done.stderr
    backups = shell.folder / "backups"
    made = [backups, *backups.rglob("*")]
    assert {path.stat().st_mode & 0o777 for path in made if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o600}
    (backups / "blobs").rename(shell.folder / "elsewhere")
    (backups / "blobs").symlink_to(shell.folder / "elsewhere")
    refused = shell.run("steerboard restore /backups --home restored")
    assert refused.returncode == 1
    assert "is a link" in refused.stderr


def test_a_new_home_is_of_no_other_postgres(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    servers = EmbeddedServers(tmp_path, quick=True)
    (tmp_path / "postgres" / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(PostgresChanged, match=r"PostgreSQL 9\.6"):
        servers.start(valkey=False)


NOWHERE = {"STEERBOARD_DATABASE_URL": "postgresql://board@127.0.0.1:9/board"}
EMBEDDED = {"STEERBOARD_DATABASE_URL": ""}
REFUSED = {
    "gc-of-no-home": (["gc", "--home", "typo"], EMBEDDED, "unusable_database", "typo"),
    "backup-of-no-home": (["backup", "dest", "--with-key", "--home", "typo"], EMBEDDED, "unusable_database", "typo"),
    "rotation-of-no-home": (["secrets", "rotate", "--home", "typo"], EMBEDDED, "unusable_database", "typo"),
    "backup-of-a-database-away": (["backup", "dest"], NOWHERE, "database_unreachable", "127.0.0.1"),
    "backup-into-a-file": (["backup", "file/backups"], {}, "artifact_store_failed", "file"),
    "restore-of-nothing": (["restore", "dest"], {}, "bad_backup", "dest"),
}


@pytest.mark.parametrize(("arguments", "changes", "code", "named"), REFUSED.values(), ids=list(REFUSED))
def test_a_command_that_cannot_do_its_work_says_why_and_makes_nothing(
    arguments: list[str],
    changes: dict[str, str],
    code: str,
    named: str,
    settings: Settings,
    steerboard: Steerboard,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("no folder")
    before = set(tmp_path.iterdir())
    for name, value in {"STEERBOARD_START_SECONDS": "0.2", **changes}.items():
        monkeypatch.setenv(name, value)
    get_settings.cache_clear()
    done = steerboard("", "", *arguments)
    assert done.returncode == 1
    assert f"[{code}]" in done.stderr
    assert named in done.stderr
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", ["gc", "secrets rotate"])
def test_what_changes_a_database_leaves_one_of_another_schema_alone(
    command: str, settings: Settings, engine: Engine, steerboard: Steerboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    monkeypatch.setenv("STEERBOARD_START_SECONDS", "0.2")
    get_settings.cache_clear()
    done = steerboard("", "", *command.split())
    assert done.returncode == 1
    assert "[schema_not_ready]" in done.stderr


@pytest.mark.parametrize(("given", "seconds"), [("30m", 1800), ("12h", 43_200), ("14d", 1_209_600), ("0d", 0)])
def test_ages_are_read(given: str, seconds: int) -> None:
    assert duration(given).total_seconds() == seconds
