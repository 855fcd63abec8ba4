"""A thing is named by its id, its name, or the end of its id, and only in its own project."""

from __future__ import annotations

import uuid

import pytest
from api_world import ApiWorld

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.platform.database import new_id, transaction

END = 8


def dataset(world: ApiWorld, name: str, id_: uuid.UUID, project: Project | None = None) -> None:
    with transaction(world.sessions) as session:
        fields = {"kind": "prompts", "rows": 1, "held_out_rows": 0, "content_hash": new_id().hex, "origin": {}}
        session.add(Dataset(id=id_, project_id=(project or world.project).id, name=name, **fields))


@pytest.mark.parametrize("digits", [6, 8, 12, 36])
def test_whatever_has_an_id_is_named_by_the_end_of_it(world: ApiWorld, digits: int) -> None:
    pipeline = world.start()
    ids = {
        "pipelines": pipeline["id"],
        "runs": pipeline["runs"][0]["id"],
        "datasets": world.get("datasets/hh")["id"],
    }
    for kind, id_ in ids.items():
        assert world.get(f"{kind}/{id_[-digits:]}")["id"] == id_
        assert world.get(f"{kind}/{id_[-digits:].upper()}")["id"] == id_


def test_a_recipe_and_a_filter_take_the_end_of_an_id_too(world: ApiWorld) -> None:
    ids = {"base": str(world.model("other")), "data": world.get("datasets/hh")["id"]}
    pipeline = world.start(*(f"{name}={id_[-END:]}" for name, id_ in ids.items()))
    assert len(world.get("runs", pipeline=pipeline["id"][-END:])["items"]) == 3


def test_an_end_that_several_ids_have_is_refused_with_the_candidates(world: ApiWorld) -> None:
    ids = [uuid.UUID(int=new_id().int >> 32 << 32 | 0xABCDEF01) for _ in range(2)]
    dataset(world, "one", ids[0])
    dataset(world, "two", ids[1])
    refused = world.get(f"datasets/{str(ids[0])[-END:]}", status=409)
    assert refused["code"] == "ambiguous_reference"
    assert [place["message"].split(",")[0] for place in refused["errors"]] == ["two", "one"]
    assert str(ids[0]) in [place["location"] for place in refused["errors"]]
    pipeline = world.post("pipelines", {"recipe": "demo", "set": [f"prompts={str(ids[0])[-END:]}"]}, status=409)
    assert pipeline["code"] == "ambiguous_reference"


def test_a_name_goes_before_the_end_of_an_id(world: ApiWorld) -> None:
    id_ = new_id()
    dataset(world, "other", id_)
    dataset(world, str(id_)[-END:], new_id())
    assert world.get(f"datasets/{str(id_)[-END:]}")["name"] == str(id_)[-END:]


def test_the_end_of_a_foreign_id_is_unknown(world: ApiWorld) -> None:
    with transaction(world.sessions) as session:
        foreign = Project(name="foreign", held_out_fraction=0.1, split_salt="x")
        session.add(foreign)
    id_ = new_id()
    dataset(world, "theirs", id_, foreign)
    assert world.get(f"datasets/{str(id_)[-END:]}", status=404)["code"] == "not_found"


@pytest.mark.parametrize("ref", ["abcde", "%25%25%25%25%25%25", "______", "0123456789abc", "ab-cdef"])
def test_what_is_no_end_of_an_id_matches_nothing(world: ApiWorld, ref: str) -> None:
    world.get(f"datasets/{ref}", status=404)


def test_runs_are_named_by_pipeline_and_stage_with_dots_in_both_and_shards_by_their_number(world: ApiWorld) -> None:
    world.dataset("prompts", "prompts")
    body = {"config": {"run": "generate", "shards": 2}, "inputs": {"model": "tiny", "data": "prompts"}}
    run = world.post("runs", body, status=201)
    assert world.get(f"runs/{run['name']}")["id"] == run["id"]
    assert world.get(f"runs/{run['name']}.1")["id"] == run["shards"][1]["id"]
