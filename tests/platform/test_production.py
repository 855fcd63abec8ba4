"""Production starts only with what a server needs, and never with a secret that anyone could guess."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from steerboard.app.main import create_app
from steerboard.platform.security import production
from steerboard.platform.security.production import MissingSetting, UnsafeSetting
from steerboard.platform.settings import BadSetting, Settings, get_settings

KEY = "k3J9-xQpR7vLz2WmTn8YbUc5HdFg1SaE"
GOOD = {
    "STEERBOARD_ENVIRONMENT": "production",
    "STEERBOARD_SECRET_KEY": KEY,
    "STEERBOARD_DATABASE_URL": "postgresql://board:Xq81-vv0Pz@db:5432/board",
    "STEERBOARD_REDIS_URL": "rediss://:Zr72-kk1Qw@cache:6379/0",
    "STEERBOARD_ARTIFACT_URL": "s3://board/artifacts",
    "STEERBOARD_PUBLIC_URL": "https://board.internal",
}


def settings_of(monkeypatch: pytest.MonkeyPatch, changes: Mapping[str, str | None]) -> Settings:
    for name, value in {**GOOD, **changes}.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    return Settings()


def test_good_settings_are_good(monkeypatch: pytest.MonkeyPatch) -> None:
    production.check(settings_of(monkeypatch, {}))


def test_in_development_nothing_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    production.check(settings_of(monkeypatch, dict.fromkeys(GOOD)))


@pytest.mark.parametrize("value", [None, ""], ids=["absent", "empty"])
@pytest.mark.parametrize("name", [name for name in GOOD if name != "STEERBOARD_ENVIRONMENT"])
def test_a_setting_that_is_not_there_is_named(name: str, value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingSetting) as refused:
        production.check(settings_of(monkeypatch, {name: value}))
    assert [place.location for place in refused.value.errors] == [name]


UNSAFE = {
    "short-key": ("STEERBOARD_SECRET_KEY", "k3J9xQpR7vLz2WmT"),
    "default-key": ("STEERBOARD_SECRET_KEY", "changeme"),
    "placeholder-key": ("STEERBOARD_SECRET_KEY", "change-me-to-32-or-more-random-characters"),
    "one-letter-key": ("STEERBOARD_SECRET_KEY", "a" * 64),
    "default-database-password": ("STEERBOARD_DATABASE_URL", "postgresql://postgres:postgres@db/board"),
    "escaped-database-password": ("STEERBOARD_DATABASE_URL", "postgresql://postgres:change%2Dme@db/board"),
    "empty-database-password": ("STEERBOARD_DATABASE_URL", "postgresql://postgres:@db/board"),
    "default-database-password-in-the-query": (
        "STEERBOARD_DATABASE_URL",
        "postgresql://board@db/board?sslmode=require&password=postgres",
    ),
    "no-url-at-all": ("STEERBOARD_DATABASE_URL", "postgresql://board:Xq81-vv0Pz@[db/board"),
    "no-address-at-all": ("STEERBOARD_PUBLIC_URL", "https://[board"),
    "other-database": ("STEERBOARD_DATABASE_URL", "sqlite:///board.db"),
    "default-redis-password": ("STEERBOARD_REDIS_URL", "redis://:Redis@cache:6379"),
    "store-of-an-example": ("AWS_SECRET_ACCESS_KEY", "minioadmin"),
    "password-beside-the-url": ("PGPASSWORD", "mysecretpassword"),
    "clear-address": ("STEERBOARD_PUBLIC_URL", "http://board.internal"),
    "short-metrics-token": ("STEERBOARD_METRICS_TOKEN", "abc"),
}


@pytest.mark.parametrize(("name", "value"), UNSAFE.values(), ids=list(UNSAFE))
def test_an_unsafe_setting_is_named_and_its_value_is_not_repeated(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(monkeypatch, {name: value})
    with pytest.raises(UnsafeSetting) as refused:
        production.check(settings)
    assert [place.location for place in refused.value.errors] == [name]
    if len(value) > 5:
        assert value not in str(refused.value)
    with pytest.raises(UnsafeSetting):
        create_app(settings)


def test_this_machine_itself_may_do_without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    production.check(settings_of(monkeypatch, {"STEERBOARD_PUBLIC_URL": "http://localhost:8700"}))


def test_what_the_hint_generates_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsafeSetting) as refused:
        production.check(settings_of(monkeypatch, {"STEERBOARD_SECRET_KEY": "changeme"}))
    code = re.search(r"-c '(.*)'", refused.value.hint or "")
    assert code is not None
    generated: list[str] = []
    exec(code.group(1), {"print": generated.append})
    production.check(settings_of(monkeypatch, {"STEERBOARD_SECRET_KEY": generated[0]}))


def test_a_setting_that_cannot_be_read_is_named_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEERBOARD_PORT", "hunter2")
    get_settings.cache_clear()
    with pytest.raises(BadSetting) as refused:
        get_settings()
    get_settings.cache_clear()
    assert [place.location for place in refused.value.errors] == ["STEERBOARD_PORT"]
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("threads", ["0", "-2"])
def test_a_stage_has_at_least_one_thread(monkeypatch: pytest.MonkeyPatch, threads: str) -> None:
    monkeypatch.setenv("STEERBOARD_STAGE_THREADS", threads)
    get_settings.cache_clear()
    with pytest.raises(BadSetting) as refused:
        get_settings()
    get_settings.cache_clear()
    (place,) = refused.value.errors
    assert (place.location, place.message) == (
        "STEERBOARD_STAGE_THREADS",
        "Input should be greater than or equal to 1",
    )
