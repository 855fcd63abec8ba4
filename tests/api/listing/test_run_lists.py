"""The list of runs over HTTP and on the command line: filters, sorts, columns, views, tags and notes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from api_world import ApiWorld

from support.processes.command_line import Steerboard


@pytest.fixture
def shell(steerboard: Steerboard, url: str, token: str) -> Callable[..., Any]:
    """A command that must succeed; its JSON."""

    def run(*arguments: str) -> Any:
        done = steerboard(url, token, *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def runs(world: ApiWorld) -> dict[str, str]:
    """The stages of `small-1` by name; two of them have a loss."""
    made = {run["name"]: run["id"] for run in world.start()["runs"]}
    world.metric(made["sft"], "eval_loss", [2.0, 1.0, 1.5])
    world.metric(made["reward"], "eval_loss", [3.0, 0.5])
    return made


def names(page: Any) -> list[str]:
    return [run["name"] for run in page["items"]]


def test_one_filter_serves_the_api_and_the_command_line(
    world: ApiWorld, runs: dict[str, str], shell: Callable[..., Any], steerboard: Steerboard, url: str, token: str
) -> None:
    asked = "eval_loss < 1.2 method:reward_model"
    assert names(world.get("runs", filter=asked)) == ["reward"]
    listed = shell("runs", "list", "--filter", asked, "--column", "eval_loss.min")
    assert [(run["name"], run["values"]) for run in listed] == [("reward", {"eval_loss.min": 0.5})]
    mistaken = steerboard(url, token, "runs", "list", "--filter", "eval_los < 1.2")
    assert mistaken.returncode == 1
    assert "filter, character 1" in mistaken.stderr
    assert "did you mean `eval_loss`?" in mistaken.stderr


def test_a_mistake_in_a_filter_is_a_problem_with_its_place(world: ApiWorld, runs: dict[str, str]) -> None:
    problem = world.get("runs", status=422, filter="sft eval_los < 1.2")
    assert problem["code"] == "bad_filter"
    assert (problem["position"], problem["length"], problem["suggestions"][0]) == (4, 8, "eval_loss")
    assert world.get("runs", status=422, sort="nothing")["errors"][0]["location"] == "sort, character 1"
    assert world.get("runs", status=422, sort="tag")["code"] == "bad_filter"
    assert world.get("runs", status=422, column="nothing")["code"] == "bad_filter"


def test_columns_sort_the_list_and_come_with_it(world: ApiWorld, runs: dict[str, str]) -> None:
    page = world.get("runs", sort="eval_loss", column=["eval_loss", "eval_loss.best", "lr"])
    assert names(page) == ["reward", "sft", "chosen"]
    assert page["items"][0]["values"]["eval_loss.best"] == 0.5
    assert page["items"][1]["values"]["eval_loss"] == 1.5
    assert page["items"][2]["values"]["eval_loss"] is None
    known = {one["name"]: one for one in world.get("run-columns")}
    assert known["eval_loss"]["better"] == "low"
    assert known["lr"]["source"] == "setting"
    assert known["state"]["source"] == "run"


def test_a_cursor_of_another_sort_is_refused(world: ApiWorld, runs: dict[str, str]) -> None:
    cursor = world.get("runs", sort="name", limit=1)["next"]
    assert world.get("runs", status=422, sort="-name", cursor=cursor)["code"] == "bad_cursor"


def test_tags_and_notes_are_found_and_kept_for_everyone(world: ApiWorld, runs: dict[str, str]) -> None:
    changed = world.client.patch(
        world.url(f"marks/run/{runs['sft']}"), json={"add_tags": ["good", "good"], "notes": "Watch the *spike*."}
    )
    assert changed.status_code == 200, changed.text
    assert changed.json()["tags"] == ["good"]
    assert "<em>spike</em>" in changed.json()["notes_html"]
    for asked in ("tag:good", "spike", "notes ~ spike", "has:notes"):
        assert names(world.get("runs", filter=asked)) == ["sft"], asked
    assert world.get("runs/small-1.sft")["marks"]["tags"] == ["good"]
    assert world.get("marks/run/tags") == [{"tag": "good", "count": 1}]
    bad = world.client.patch(world.url("marks/run/small-1.sft"), json={"add_tags": ["a,b"]})
    assert bad.status_code == 422


def test_favourites_are_ones_own(world: ApiWorld, runs: dict[str, str]) -> None:
    path = world.url(f"marks/run/{runs['sft']}/favourite")
    assert world.client.put(path).status_code == 204
    assert names(world.get("runs", filter="is:favourite")) == ["sft"]
    other = world.client.get(world.url("runs"), params={"filter": "is:favourite"}, headers=world.token("read"))
    assert other.json()["items"] == []
    assert world.client.delete(path).status_code == 204
    assert names(world.get("runs", filter="is:favourite")) == []


def test_a_view_keeps_filter_sort_and_columns(world: ApiWorld, runs: dict[str, str], shell: Callable[..., Any]) -> None:
    query = {"filter": "eval_loss > 0", "sort": "eval_loss", "columns": ["eval_loss"], "widths": {"eval_loss": 120}}
    kept = world.client.put(world.url("run-views/losses"), json={"query": query})
    assert kept.status_code == 200, kept.text
    assert [view["query"] for view in world.get("run-views")] == [query]
    listed = shell("runs", "list", "--view", "losses")
    assert [run["values"]["eval_loss"] for run in listed] == [0.5, 1.5]
    refused = world.client.put(world.url("run-views/bad"), json={"query": {"filter": "(a"}})
    assert refused.json()["code"] == "bad_filter"
    narrow = world.client.put(world.url("run-views/narrow"), json={"query": {"widths": {"eval_loss": 3}}})
    assert narrow.status_code == 422
    # What every list has is no column to add on the command line.
    whole = {**query, "columns": ["name", "eval_loss", "key_metric", "state"]}
    assert world.client.put(world.url("run-views/whole"), json={"query": whole}).status_code == 200
    assert [list(run["values"]) for run in shell("runs", "list", "--view", "whole")] == [["eval_loss"]] * 2
    assert world.client.delete(world.url("run-views/whole")).status_code == 204
    assert world.client.delete(world.url("run-views/losses")).status_code == 204
    assert world.get("run-views") == []


def test_archived_runs_leave_the_list_until_they_are_asked_for(world: ApiWorld, runs: dict[str, str]) -> None:
    done = world.post("run-changes", {"action": "archive", "runs": [runs["sft"]]})
    assert [one["run"]["name"] for one in done["done"]] == ["small-1.sft"]
    assert "sft" not in names(world.get("runs"))
    assert names(world.get("runs", filter="is:archived")) == ["sft"]
    world.post("run-changes", {"action": "restore", "runs": [runs["sft"]]})
    assert "sft" in names(world.get("runs"))


def test_models_datasets_and_pipelines_are_found_by_tag_and_notes(world: ApiWorld, runs: dict[str, str]) -> None:
    for type_, name in (("model", "tiny"), ("dataset", "hh"), ("pipeline", "small-1")):
        marked = world.client.patch(world.url(f"marks/{type_}/{name}"), json={"tags": ["keep"], "notes": "from *Anna*"})
        assert marked.status_code == 200, marked.text
        for asked in ({"tag": "keep"}, {"search": "anna"}, {"search": name[:3]}):
            names = [one["name"] for one in world.get(f"{type_}s", **asked)["items"]]
            assert names == [name], (type_, asked)
        assert world.get(f"{type_}s", tag="other")["items"] == []
        world.client.patch(world.url(f"marks/{type_}/{name}"), json={"archived": True})
        assert world.get(f"{type_}s")["items"] == []
        assert len(world.get(f"{type_}s", archived=True)["items"]) == 1


def test_one_search_finds_everything_that_has_a_page(world: ApiWorld, runs: dict[str, str]) -> None:
    for number in range(12):
        world.dataset(f"pairs-{number}")
    hits = world.get("search", q="small")
    assert [(one["type"], one["name"]) for one in hits] == [
        ("pipeline", "small-1"),
        *(("run", f"small-1.{name}") for name in ("reward", "sft", "chosen")),
    ]
    assert [one["name"] for one in world.get("search", q="tin")][-1:] == ["tiny"]
    assert len([one for one in world.get("search", q="pairs") if one["type"] == "dataset"]) == 8
    assert [one["name"] for one in world.get("search", q="pairs-0") if one["type"] == "dataset"] == ["pairs-0"]
    assert world.get("search", q="nothing like it") == []


def test_a_name_in_full_comes_first_however_many_newer_ones_contain_it(world: ApiWorld, runs: dict[str, str]) -> None:
    world.dataset("exact")
    for number in range(9):
        world.dataset(f"exact-{number}")
    found = [one["name"] for one in world.get("search", q="exact") if one["type"] == "dataset"]
    assert found == ["exact", *(f"exact-{number}" for number in range(8, 1, -1))]
    for query in ("small-1.sft", "sft"):
        (first, *_) = [one["name"] for one in world.get("search", q=query) if one["type"] == "run"]
        assert first == "small-1.sft"
