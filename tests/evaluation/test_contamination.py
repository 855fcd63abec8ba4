"""Prompts that also occur in what an entrant was trained on."""

from __future__ import annotations

from typing import Any

import pytest
from evaluation_world import EvaluationWorld

from steerboard.evaluation import contamination
from steerboard.platform.database import transaction

LONG = "please write a short poem about the red apple tree in front of the old green house by the river"


@pytest.fixture
def trained(world: EvaluationWorld) -> EvaluationWorld:
    """`sft` was trained on `train`; the prompt set `asked` shares some of it."""
    words = ("Say  RED!", f"{LONG} today", "say something new", "zebra")
    rows = [{"prompt": f"filler number {n} of many", "response": "red"} for n in range(30)]
    world.dataset(
        "train", [*rows, {"prompt": "say red", "response": "x"}, {"prompt": LONG, "response": "x"}], "instructions"
    )
    world.prompt_set("asked", [(word, []) for word in words])
    world.trained_on("sft", "train")
    return world


def seen(world: EvaluationWorld) -> dict[int, tuple[str, str]]:
    items = world.get("evaluations/eval/prompts", seen=True)["items"]
    return {prompt["position"]: (prompt["seen"]["match"], prompt["seen"]["dataset"]) for prompt in items}


def in_train(world: EvaluationWorld) -> dict[int, tuple[str, str]]:
    """What should be found: rows may have been held out, and those no one has learned from."""
    rows = world.get("datasets/train/samples", limit=100)["items"]
    train = {row["sample"]["prompt"][0]["content"] for row in rows if row["split"] == "train"}
    expected = {}
    if "say red" in train:
        expected[0] = ("exact", "train")
    if LONG in train:
        expected[1] = ("near", "train")
    return expected


def test_prompts_of_the_training_data_are_flagged_and_counted(trained: EvaluationWorld) -> None:
    trained.evaluate(prompts={"set": "asked"})
    detail: dict[str, Any] = trained.detail()["contamination"]
    wanted = in_train(trained)
    assert wanted
    assert seen(trained) == wanted
    assert [dataset["name"] for dataset in detail["checked"]] == ["train"]
    kinds = [match for match, _ in wanted.values()]
    assert (detail["exact"], detail["near"], detail["waiting"]) == (kinds.count("exact"), kinds.count("near"), False)
    others = trained.get("evaluations/eval/prompts", seen=False)["items"]
    assert {prompt["position"] for prompt in others} == set(range(4)) - set(wanted)


def test_held_out_rows_are_no_training_data(trained: EvaluationWorld) -> None:
    trained.evaluate(prompts={"dataset": "train", "split": "held_out"})
    assert trained.get("evaluations/eval/prompts")["items"]
    assert seen(trained) == {}


def test_named_datasets_are_looked_through_instead(trained: EvaluationWorld) -> None:
    trained.dataset("other", [{"prompt": f"zebra {n}"} for n in range(9)] + [{"prompt": "ZEBRA"}] * 1)
    trained.evaluate(prompts={"set": "asked"}, check_against=["other"])
    assert [dataset["name"] for dataset in trained.detail()["contamination"]["checked"]] == ["other"]
    assert set(seen(trained)) <= {3}


def test_none_named_means_none_looked_through(trained: EvaluationWorld) -> None:
    trained.evaluate(prompts={"set": "asked"}, check_against=[])
    assert trained.detail()["contamination"]["checked"] == []


def test_large_data_is_looked_through_in_the_background(
    trained: EvaluationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contamination, "ROWS_AT_ONCE", 10)
    trained.evaluate(prompts={"set": "asked"}, entrants=[{"model": "sft", "name": "one"}])
    waiting = trained.detail()
    assert (waiting["contamination"]["waiting"], seen(trained)) == (True, {})
    assert "the prompts are still being looked for in training data" in waiting["unfinished"]
    with transaction(trained.sessions) as first, transaction(trained.sessions) as second:
        assert contamination.check_next(first)
        assert not contamination.check_next(second), "two looked at once"
    assert seen(trained) == in_train(trained)
    after = trained.detail()
    assert (after["contamination"]["waiting"], after["version"] > waiting["version"]) == (False, True)
    with transaction(trained.sessions) as session:
        assert not contamination.check_next(session)


def test_a_later_entrants_training_data_counts_too(trained: EvaluationWorld) -> None:
    trained.evaluate("eval", {"model": "dt"}, prompts={"set": "asked"})
    assert trained.detail()["contamination"]["checked"] == []
    trained.post("evaluations/eval/entrants", {"model": "sft"})
    assert seen(trained) == in_train(trained)
