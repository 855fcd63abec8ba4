"""`board.push_model` and `board.push_dataset` against a server with a worker and a hub; and the figures on the card."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from pushed_things import PushWorld
from sqlalchemy.orm import Session, sessionmaker

import steerboard_client as sb
from steerboard.accounts.tables import Project
from support.rows.evaluation_rows import Evaluated
from support.servers.push_hub import WRITES, PushHub


@pytest.fixture
def worker(world: PushWorld) -> Iterator[None]:
    """Takes every run, like a worker of the pool."""
    ended = threading.Event()

    def take() -> None:
        while not ended.wait(0.1):
            world.work_off()

    thread = threading.Thread(target=take)
    thread.start()
    yield
    ended.set()
    thread.join()


@pytest.fixture
def board(hub: PushHub, world: PushWorld, url: str, token: str) -> sb.Board:
    world.client.put(world.url("hub-token"), json={"token": WRITES})
    return sb.connect(url, token)


def test_a_model_and_a_dataset_are_pushed_from_python(
    board: sb.Board, hub: PushHub, steered: uuid.UUID, rows: Any, worker: None
) -> None:
    pushes = [
        board.push_model("dt", "lab/dt", licence="apache-2.0"),
        board.push_dataset(board.dataset("hh"), "lab/hh", private=False, card="---\ntags: [steerboard]\n---\n# Mine\n"),
    ]
    for run, repo in zip(pushes, ("lab/dt", "datasets/lab/hh"), strict=True):
        run.wait(progress=False)
        assert run.info.summary is not None
        assert run.info.summary["url"] == f"{hub.url}/{repo}"
    model, data = hub.repositories["model", "lab/dt"], hub.repositories["dataset", "lab/hh"]
    assert (model.private, data.private) == (True, False)
    card = (model.files() or {})["README.md"].decode()
    assert yaml.safe_load(card.split("---\n")[1])["license"] == "apache-2.0"
    assert (data.files() or {})["README.md"].endswith(b"# Mine\n")
    assert pushes[0].info.summary["commit"] == model.head


def test_a_push_that_cannot_be_is_an_error_with_its_code(board: sb.Board, steered: uuid.UUID) -> None:
    with pytest.raises(sb.ApiError) as refused:
        board.push_model("dt", "lab/dt", weights="adapter")
    assert refused.value.code == "not_an_adapter"
    with pytest.raises(sb.ApiError) as wrong:
        board.push_model("dt", "no-owner")
    assert wrong.value.status == 422


def test_the_card_on_the_hub_has_the_figures_of_the_evaluation_with_intervals(
    board: sb.Board,
    hub: PushHub,
    steered: uuid.UUID,
    worker: None,
    sessions: sessionmaker[Session],
    project: Project,
) -> None:
    made = Evaluated(sessions, project, name="held-out", prompts=20)
    made.entrant("sft")
    made.entrant("dt", source="model", model_id=steered)
    made.scores({"sft": [4] * 20, "dt": [6] * 16 + [2] * 4})
    report = board.evaluation("held-out").report()
    board.push_model("dt", "lab/dt").wait(progress=False)
    card = (hub.repositories["model", "lab/dt"].files() or {})["README.md"].decode()
    assert "Evaluation `held-out` on 20 prompts" in card
    assert "Win rates are against `sft`" in card
    (row,) = [line for line in card.splitlines() if "win rate by judge judge" in line]
    rate = next(row for row in report.methods if row.entrant == "dt").judge_win_rate["judge"]
    assert rate.value == pytest.approx(0.8)
    assert f"{rate.value:.3f}" in row
    assert f"[{rate.low:.3f}, {rate.high:.3f}]" in row
    assert "| 20 |" in row
