"""A dataset's own answers become the entrants of an evaluation, so that people can compare them."""

from __future__ import annotations

from typing import Any

from evaluation_world import EvaluationWorld

PAIRS = [{"prompt": f"say {n}", "chosen": f"red {n}", "rejected": f"blue {n}"} for n in range(5)]


def answers(world: EvaluationWorld, evaluation: str) -> list[dict[str, str]]:
    """The text by entrant, a mapping for each prompt."""
    page = world.get(f"evaluations/{evaluation}/prompts", limit=100)
    return [{said["entrant"]: said["turns"][0] for said in prompt["responses"]} for prompt in page["items"]]


def make(world: EvaluationWorld, dataset: str, status: int = 201) -> Any:
    return world.post(f"datasets/{dataset}/evaluation", None, status=status)


def test_the_sides_of_pairs_enter_by_name_and_a_campaign_asks_about_them(world: EvaluationWorld) -> None:
    world.dataset("pairs", [*PAIRS, {"prompt": "say 0", "chosen": "late", "rejected": "later"}], "preferences")
    preview = world.get("datasets/pairs/answers")
    assert preview == {
        "entrants": [{"name": "chosen", "prompts": 5}, {"name": "rejected", "prompts": 5}],
        "prompts": 5,
        "evaluation": None,
    }
    made = make(world, "pairs")
    assert (made["name"], made["entrants"], made["state"]) == ("pairs-answers-1", ["chosen", "rejected"], "answered")
    assert answers(world, made["name"])[:2] == [
        {"chosen": "red 0", "rejected": "blue 0"},
        {"chosen": "red 1", "rejected": "blue 1"},
    ]
    campaign = world.post(f"evaluations/{made['id']}/campaigns", {"task_type": "pairwise"})
    assert campaign["items"] == 5
    assert world.get("evaluations/pairs-answers-1/report")["prompts_from"] == "all rows of pairs"


def test_the_evaluation_is_made_once(world: EvaluationWorld) -> None:
    world.dataset("pairs", PAIRS, "preferences")
    first = make(world, "pairs")
    assert make(world, "pairs")["id"] == first["id"]
    assert world.get("datasets/pairs/answers")["evaluation"] == first["name"]


def test_answers_of_a_prompt_enter_in_their_order_and_equal_ones_once(world: EvaluationWorld) -> None:
    rows = [
        {"prompt": "say 1", "response": "red", "reward": 1.0},
        {"prompt": "say 2", "response": "green", "reward": 1.0},
        {"prompt": "say 1", "response": "red", "reward": 2.0},
        {"prompt": "say 1", "response": "blue", "reward": 3.0},
    ]
    world.dataset("graded", rows, "labelled")
    assert world.get("datasets/graded/answers")["entrants"] == [
        {"name": "answer-1", "prompts": 2},
        {"name": "answer-2", "prompts": 1},
    ]
    made = make(world, "graded")
    assert answers(world, made["name"]) == [{"answer-1": "red", "answer-2": "blue"}, {"answer-1": "green"}]


def test_more_answers_than_an_item_has_stay_out(world: EvaluationWorld) -> None:
    world.dataset("many", [{"prompt": "say 1", "response": f"red {n}"} for n in range(12)], "instructions")
    assert len(make(world, "many")["entrants"]) == 8


def test_a_dataset_without_answers_is_refused(world: EvaluationWorld) -> None:
    world.dataset("bare", [{"prompt": "say 1"}], "prompts")
    assert make(world, "bare", status=422)["code"] == "no_answers"
    tool = {"type": "function", "function": {"name": "say"}}
    row = {"prompt": [{"role": "user", "content": "say 1"}], "response": "red", "tools": [tool]}
    world.dataset("tools", [row], "instructions")
    assert make(world, "tools", status=422)["code"] == "empty_selection"
