"""What commands list is readable at 80 and at 40 columns, plain through a pipe, and every id in it is taken back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from api_world import ApiWorld
from sqlalchemy import update

from steerboard.platform.database import transaction
from steerboard.runs.tables import Pipeline, Run
from support.processes.command_line import Steerboard
from support.processes.terminal import ESCAPES, on_terminal

PIPELINE = "offline-rlhf-12"
LISTS = (
    ("runs", "list"),
    ("pipelines", "list"),
    ("pipelines", "show", PIPELINE),
    ("datasets", "list"),
    ("tokens", "list"),
    ("recipes", "list"),
)

Shell = Callable[..., str]


@pytest.fixture
def shell(steerboard: Steerboard, url: str, token: str, world: ApiWorld, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Three pipelines with a stage of the same name, one run, and data with names of the usual length."""
    world.dataset("anthropic-hh-rlhf-helpful-base")
    for _ in range(3):
        world.start()
    world.post("tokens", {"name": "continuous-integration", "scopes": ["read", "run"]}, status=201)
    with transaction(world.sessions) as session:
        session.execute(update(Pipeline).where(Pipeline.name == "small-1").values(name=PIPELINE))
        session.execute(update(Run).where(Run.name == "reward").values(reason="the worker was lost; another follows"))

    monkeypatch.setenv("STEERBOARD_URL", url)
    monkeypatch.setenv("STEERBOARD_TOKEN", token)

    def run(*arguments: str, code: int = 0) -> str:
        done = steerboard(url, token, *arguments)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.long
@pytest.mark.parametrize("columns", [80, 40])
def test_lists_fit_the_terminal_that_they_are_shown_on(shell: Shell, columns: int) -> None:
    for command in LISTS:
        shown = on_terminal(columns, *command)
        lines = ESCAPES.sub("", shown).splitlines()
        assert lines, command
        assert max(map(len, lines)) <= columns, shown
        assert not any(letter in shown for letter in "─│┃━┏"), shown
        for row in shell(*command).splitlines():
            name = row.split("\t")[0]
            assert any(line.split() and line.split()[0] == name for line in lines), (name, shown)


def test_runs_of_equal_stages_are_told_apart(shell: Shell) -> None:
    names = [line.split("\t")[0] for line in shell("runs", "list").splitlines()]
    assert len(set(names)) == len(names) == 9
    assert {f"{PIPELINE}.sft", "small-2.sft", "small-3.sft"} <= set(names)
    assert f"{PIPELINE}.reward " in shell("runs", "show", f"{PIPELINE}.reward")


def test_a_pipe_gets_whole_ids_and_no_colours_whatever_the_environment_says(
    shell: Shell, world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    rows = [line.split("\t") for line in shell("runs", "list").splitlines()]
    assert {len(row) for row in rows} == {7}
    assert {row[5] for row in rows} == {run["id"] for run in world.get("runs")["items"]}
    assert "the worker was lost; another follows" in {row[6] for row in rows}


def test_nothing_to_list_is_nothing_in_a_pipe_and_a_sentence_for_a_person(
    steerboard: Steerboard, url: str, token: str
) -> None:
    for command in (("runs", "list"), ("pipelines", "list"), ("models", "list"), ("evaluations", "list")):
        done = steerboard(url, token, *command)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.startswith("No ")


def test_a_pipe_gets_the_totals_of_a_pipeline_as_the_last_row(shell: Shell, world: ApiWorld) -> None:
    world.work(seconds=2.5)
    pipeline = world.get(f"pipelines/{PIPELINE}")
    *stages, total = [line.split("\t") for line in shell("pipelines", "show", PIPELINE).splitlines()]
    assert len(stages) == len(pipeline["runs"])
    assert total[:3] == [PIPELINE, "pipeline", pipeline["state"]]
    assert float(total[3]) > 0
    assert float(total[4]) == pipeline["device_seconds"] > 0
    assert total[5] == pipeline["id"]


@pytest.mark.long
def test_colours_are_left_out_where_they_are_not_wanted(shell: Shell) -> None:
    colour = re.compile(r"\x1b\[[0-9;]*(?:3[0-9]|9[0-9])[0-9;]*m")
    assert colour.search(on_terminal(80, "tokens", "list"))
    assert not colour.search(on_terminal(80, "tokens", "list", NO_COLOR="1"))


def test_the_id_that_a_terminal_shows_names_the_run_for_every_command(shell: Shell, world: ApiWorld) -> None:
    run = world.get(f"runs/{PIPELINE}.chosen")
    shown = ESCAPES.sub("", on_terminal(120, "runs", "list"))
    (line,) = [line for line in shown.splitlines() if line.startswith(f"{PIPELINE}.chosen ")]
    end = next(word for word in line.split() if run["id"].endswith(word))
    assert len(end) == 8
    assert f"id         {run['id']}" in shell("runs", "show", end)
    shell("runs", "logs", end)
    shell("runs", "metrics", end)
    assert shell("runs", "cancel", end) == f"{PIPELINE}.chosen: cancelled\n"
    assert shell("runs", "resume", end) == f"{PIPELINE}.chosen: queued\n"
    pipeline = json.loads(shell("pipelines", "list", "--json", "--limit", "1"))[0]
    assert shell("pipelines", "cancel", pipeline["id"][-8:]).startswith(f"{pipeline['name']}: cancelled")


def test_a_training_run_is_paused_changed_and_resumed_by_command(shell: Shell, world: ApiWorld) -> None:
    with transaction(world.sessions) as session:
        session.execute(update(Run).where(Run.name == "reward", Run.kind == "train").values(state="queued"))
    name = "small-2.reward"
    assert shell("runs", "pause", name) == f"{name}: paused\n"
    assert shell("runs", "change", name, "lr=2e-5") == f"{name}: lr 2e-05\n"
    assert world.get(f"runs/{name}")["changeable"] == {"lr": 2e-5}
    assert shell("runs", "change", name, "epochs=3", code=1) == ""
    assert shell("runs", "pause", name, "--wait") == f"{name}: paused\n"
    assert shell("runs", "resume", name) == f"{name}: pending\n"  # what it learns from is not made yet
    assert shell("runs", "pause", f"{PIPELINE}.chosen", code=1) == ""


def test_what_a_user_types_stays_one_name_whatever_is_in_it(shell: Shell) -> None:
    for name in ("../tokens", "a/b", "a?b", "a#b", "%2e%2e", "\x1b[1m"):
        for command in (("runs", "show"), ("pipelines", "show"), ("models", "show"), ("datasets", "show")):
            assert shell(*command, name, code=1) == ""


def test_a_run_on_a_terminal_counts_interruptions_apart_from_failed_attempts(shell: Shell, world: ApiWorld) -> None:
    world.work(fail="worker_lost")
    (run,) = [run for run in world.get("runs")["items"] if run["interruptions"]]
    assert (run["failed_attempts"], run["interruptions"]) == (0, 1)
    shown = shell("runs", "show", run["id"])
    assert "attempts   1 of at most 10 interruptions" in shown
    assert "attempt 1  interrupted on w1" in shown
