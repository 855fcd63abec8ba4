"""The notebooks of the docs, run by Jupyter against a server with a worker; an annotator ranks meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from dashboard_world import World
from nbclient import NotebookClient

from support.patience import PATIENCE, wait_until

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"


@pytest.fixture
def folder(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where the kernel works, signed in as the command line is on this machine."""
    for name in ("STEERBOARD_URL", "STEERBOARD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STEERBOARD_HOME", str(world.home))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return tmp_path


@pytest.fixture
def annotator(world: World) -> Iterator[threading.Thread]:
    """Ranks what the notebook puts up, the longer answer first."""
    stop = threading.Event()
    ranking = threading.Thread(target=_rank, args=(world, stop), daemon=True)
    ranking.start()
    yield ranking
    stop.set()
    ranking.join()


def _rank(world: World, stop: threading.Event) -> None:
    def campaign() -> Any:
        made = world.client.get("evaluations/notebook-ranking/campaigns")
        return next(iter(made.json()["items"]), None) if made.is_success else None

    started = wait_until(lambda: stop.is_set() or campaign(), "the notebook asked for no ranking")
    if stop.is_set():
        return
    link = f"rankings/{started['id']}/next"
    while not stop.is_set():
        tasks = world.client.post(link, json={}).json()["items"]
        if not tasks:
            return
        (task,) = tasks
        ranks = [1, 2] if len(task["answers"]) == 2 else [1]
        body = {"ranks": ranks, "seconds": 2, "submission": task["id"]}
        world.client.post(f"rankings/tasks/{task['id']}/submit", json=body).raise_for_status()


def run(name: str, folder: Path) -> str:
    """Everything that its cells print or show."""
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "notebooks are kept without their outputs"
    NotebookClient(notebook, timeout=int(PATIENCE), resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)


def test_the_notebooks_lead_from_rows_to_the_next_reward_model(folder: Path, annotator: threading.Thread) -> None:
    shown = run("first-run.ipynb", folder)
    assert "+5 " in shown
    assert "/pipelines/notebook-" in shown
    assert (folder / "notebook-policy" / "config.json").is_file()
    shown = run("next-reward-model.ipynb", folder)
    assert "rankings" in shown
    assert "chosen" in shown
