"""Datasets that take too much to clean: another process cleans them, within limits, and refuses them by name."""

from __future__ import annotations

from typing import Any

import pytest
from cleaning_world import BASE, ROWS, Cleaning

from steerboard.datasets.cleaning import jobs
from steerboard.datasets.errors import CleaningTimedOut
from steerboard.datasets.imports.execution import jobs as import_jobs
from steerboard.datasets.imports.execution.faults import FAULTS
from steerboard.datasets.imports.execution.limits import bounded_time
from steerboard_files.errors import TooMuchWork

# A text of so many different words that comparing it with others takes many times its size.
SWOLLEN = " ".join(f"w{number}" for number in range(300_000))
WIDE = [{"prompt": "Where to?", "chosen": SWOLLEN, "rejected": "No."}, *ROWS]


@pytest.fixture
def apart(cleaning: Cleaning, monkeypatch: pytest.MonkeyPatch) -> Cleaning:
    """Every dataset is a large one."""
    monkeypatch.setattr(jobs, "ROWS_AT_ONCE", 0)
    return cleaning


def refused(apart: Cleaning, path: str) -> tuple[str, int, str]:
    answer = apart.client.post(f"{BASE}/pairs/{path}", json={})
    problem = answer.json()
    return problem["code"], answer.status_code, problem["hint"]


@pytest.mark.long
@pytest.mark.parametrize(("path", "megabytes"), [("cleaning/preview", 25), ("cleaning", 45)], ids=["parsing", "words"])
def test_cleaning_that_takes_all_memory_ends_by_name_and_stores_nothing(
    apart: Cleaning, monkeypatch: pytest.MonkeyPatch, path: str, megabytes: int
) -> None:
    apart.dataset(WIDE)
    monkeypatch.setenv("STEERBOARD_IMPORT_MEMORY_MB", str(megabytes))
    code, status, hint = refused(apart, path)
    assert (code, status) == ("cleaning_out_of_memory", 422)
    assert "STEERBOARD_IMPORT_MEMORY_MB" in hint
    assert [dataset["name"] for dataset in apart.client.get(BASE).json()["items"]] == ["pairs"]
    monkeypatch.delenv("STEERBOARD_IMPORT_MEMORY_MB")
    assert apart.clean()["rows"] > 0


@pytest.mark.long
def test_cleaning_that_takes_too_long_is_stopped_and_stores_nothing(
    apart: Cleaning, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart.dataset(WIDE)
    monkeypatch.setenv("STEERBOARD_IMPORT_SECONDS", "0.001")
    code, status, hint = refused(apart, "cleaning")
    assert (code, status) == ("cleaning_timed_out", 422)
    assert "STEERBOARD_IMPORT_SECONDS" in hint
    assert [dataset["name"] for dataset in apart.client.get(BASE).json()["items"]] == ["pairs"]
    monkeypatch.delenv("STEERBOARD_IMPORT_SECONDS")
    assert apart.clean()["rows"] > 0


def test_time_that_ran_out_is_named_whatever_the_work_makes_of_it() -> None:
    @bounded_time(0.001, FAULTS["cleaning"].timed_out)
    def connect() -> None:
        try:
            while True:
                pass
        except TooMuchWork as error:
            raise RuntimeError("no connection") from error

    with pytest.raises(CleaningTimedOut):
        connect()


@pytest.mark.long
def test_a_process_that_dies_while_it_cleans_is_reported_as_such(
    apart: Cleaning, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart.dataset()
    # What the process cannot read ends it.
    monkeypatch.setattr(import_jobs.Job, "model_dump_json", lambda _: "{}")
    assert refused(apart, "cleaning")[:2] == ("cleaning_interrupted", 500)


@pytest.mark.long
def test_cleaning_takes_one_of_the_places_of_imports(apart: Cleaning, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []
    processes = apart.client.app.state.import_processes  # type: ignore[attr-defined]
    run = processes.run

    def noted(settings: Any, job: import_jobs.Job, upload: Any) -> Any:
        taken.append((job.what, job.work, job.large))
        return run(settings, job, upload)

    monkeypatch.setattr(processes, "run", noted)
    apart.dataset()
    apart.preview()
    apart.clean()
    assert taken == [("cleaning_preview", "cleaning", True), ("cleaning", "cleaning", True)]
