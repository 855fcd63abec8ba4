from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from steerboard.cli.server import doctor
from steerboard.cli.server.doctor import Check
from steerboard.platform.settings import Settings


@pytest.fixture(autouse=True)
def _no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing torch takes seconds; one test looks at it by itself."""
    monkeypatch.setattr(doctor, "_WORKER_PACKAGES", ())
    facts = {"missing": [], "torch": "0", "devices": [], "threads": 1, "jemalloc": True}
    monkeypatch.setattr(doctor, "_PROBE", f"import json; print(json.dumps({facts!r}))")


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_a_sound_installation_passes_every_check(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEERBOARD_PORT", "0")
    checks = doctor.examine(settings.home)
    assert {check.name for check in checks} >= {"python", "home", "database", "migrations", "clock", "redis", "workers"}
    assert [check for check in checks if not check.ok] == []


def test_servers_that_do_not_answer_are_named_with_the_variable_to_correct(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEERBOARD_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    monkeypatch.setenv("STEERBOARD_REDIS_URL", "redis://127.0.0.1:1")
    checks = by_name(doctor.examine(settings.home))
    assert not checks["database"].ok
    assert "STEERBOARD_DATABASE_URL" in checks["database"].mend
    assert not checks["redis"].ok
    assert "STEERBOARD_REDIS_URL" in checks["redis"].mend


def test_a_database_that_was_not_migrated_is_noticed(settings: Settings, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM alembic_version"))
    assert not by_name(doctor.examine(settings.home))["migrations"].ok


def test_a_readable_secret_and_a_broken_store_are_noticed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    (settings.home / "client.json").write_text('{"url": "", "token": ""}')
    (settings.home / "client.json").chmod(0o644)
    (settings.home / "file").write_text("")
    monkeypatch.setenv("STEERBOARD_ARTIFACT_URL", f"file://{settings.home}/file/artifacts")
    checks = by_name(doctor.examine(settings.home))
    assert "chmod 600" in checks["home"].mend
    assert not checks["artifact store"].ok


def test_missing_worker_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_PROBE", 'print(\'{"missing": ["torch (ModuleNotFoundError)"]}\')')
    check = doctor._workers()
    assert not check.ok
    assert "torch" in check.found
    assert "make setup" in check.mend


def test_the_embedded_servers_are_really_started(tmp_path: Path) -> None:
    check = doctor._embedded(True, True)
    assert check.ok, check.found
    assert "PostgreSQL" in check.found
