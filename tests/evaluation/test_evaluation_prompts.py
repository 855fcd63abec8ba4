"""The sources of prompts, who may ask for an evaluation, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from evaluation_world import SHORT, EvaluationWorld
from sqlalchemy import update

from steerboard.datasets.tables import SampleRow
from steerboard.evaluation.prompts import service as prompts
from steerboard.platform.database import transaction


def first_words(world: EvaluationWorld, name: str = "eval") -> list[str]:
    page = world.get(f"evaluations/{name}/prompts", limit=100)
    return [prompt["messages"][-1]["content"] for prompt in page["items"]]


ROWS: dict[str, list[dict[str, Any]]] = {
    "prompts": [{"prompt": f"say {n}", "reference": f"said {n}"} for n in range(40)],
    "instructions": [{"prompt": f"say {n}", "response": "red"} for n in range(40)],
    "preferences": [{"prompt": f"say {n}", "chosen": "red", "rejected": "blue"} for n in range(40)],
    "labelled": [{"prompt": f"say {n}", "response": "red", "reward": n} for n in range(40)],
}


def test_prompts_of_any_dataset_in_the_order_of_their_rows(world: EvaluationWorld) -> None:
    for kind, rows in ROWS.items():
        world.dataset(kind, [*rows, rows[0]], kind)
        assert world.evaluate(kind, prompts={"dataset": kind, "split": "all"}, entrants=[])["prompts"] == 40
        assert first_words(world, kind) == [f"say {n}" for n in range(40)]


def test_held_out_prompts_and_those_of_training_are_all_of_them(world: EvaluationWorld) -> None:
    world.dataset("data", ROWS["prompts"])
    for split in ("all", "train", "held_out"):
        world.evaluate(split, prompts={"dataset": "data", "split": split}, entrants=[])
    train, held_out = first_words(world, "train"), first_words(world, "held_out")
    assert sorted(train + held_out) == sorted(first_words(world, "all"))
    assert len(held_out) == world.get("datasets/data")["held_out_rows"] > 0


def test_held_out_prompts_are_taken_unless_others_are_asked_for_and_the_report_says_which(
    world: EvaluationWorld,
) -> None:
    world.dataset("data", ROWS["prompts"])
    made = world.evaluate(prompts={"dataset": "data"}, entrants=[])
    assert made["prompts"] == world.get("datasets/data")["held_out_rows"] > 0
    assert world.get("evaluations/eval/report")["prompts_from"] == "held-out rows of data"
    world.evaluate("whole", prompts={"dataset": "data", "split": "all"}, entrants=[])
    assert world.get("evaluations/whole/report")["prompts_from"] == "all rows of data"


def test_prompts_with_tools_are_refused_and_not_asked_without_them(world: EvaluationWorld) -> None:
    tool = {"type": "function", "function": {"name": "say"}}
    world.dataset("data", [{"prompt": [{"role": "user", "content": "say 1"}], "response": "red", "tools": [tool]}])
    problem = world.evaluate(prompts={"dataset": "data", "split": "all"}, entrants=[], status=422)
    assert problem["code"] == "prompt_with_tools"
    assert problem["detail"].startswith("row 0 is a conversation with tools")


def test_a_dataset_with_no_held_out_row_says_how_to_take_all_of_them(world: EvaluationWorld) -> None:
    world.dataset("data", ROWS["prompts"])
    with transaction(world.sessions) as session:
        session.execute(update(SampleRow).values(held_out=False))
    problem = world.evaluate(prompts={"dataset": "data"}, status=422)
    assert (problem["code"], problem["detail"]) == ("empty_selection", "no row of data is held out")
    assert "`all`" in problem["hint"]


def test_a_limit_draws_by_seed(world: EvaluationWorld) -> None:
    world.dataset("data", ROWS["prompts"])
    for name, seed in (("one", 0), ("two", 0), ("three", 1)):
        world.evaluate(name, prompts={"dataset": "data", "split": "all", "limit": 5, "seed": seed}, entrants=[])
    drawn = first_words(world, "one")
    assert len(drawn) == 5
    assert drawn == first_words(world, "two") != first_words(world, "three")
    assert drawn == sorted(drawn, key=lambda words: int(words.split()[1]))


def test_system_messages_earlier_turns_and_references_stay(world: EvaluationWorld) -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Say red."},
    ]
    world.dataset("data", [{"prompt": messages, "reference": "Red.", "question_id": 81, "category": "math"}])
    world.evaluate(prompts={"dataset": "data", "split": "all"})
    world.work_off()
    (prompt,) = world.get("evaluations/eval/prompts")["items"]
    assert prompt["messages"] == messages
    assert (prompt["reference"], prompt["question_id"], prompt["category"]) == (["Red."], "81", "math")
    assert world.detail()["categories"] == ["math"]


def test_pages_of_prompts_by_position_and_category(world: EvaluationWorld) -> None:
    rows = [{"prompt": f"say {n}", "category": "odd" if n % 2 else "even"} for n in range(10)]
    world.dataset("data", rows)
    world.evaluate(prompts={"dataset": "data", "split": "all"}, entrants=[])
    seen: list[int] = []
    after = -1
    while after is not None:
        page = world.get("evaluations/eval/prompts", after=after, limit=4)
        seen += [prompt["position"] for prompt in page["items"]]
        after = page["next"]
    assert seen == list(range(10))
    odd = world.get("evaluations/eval/prompts", category="odd")["items"]
    assert [prompt["position"] for prompt in odd] == [1, 3, 5, 7, 9]


def test_too_many_prompts_are_refused_with_a_way_out(world: EvaluationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "MOST_PROMPTS", 20)
    world.dataset("data", ROWS["prompts"])
    problem = world.evaluate(prompts={"dataset": "data", "split": "all"}, status=422)
    assert (problem["code"], "limit" in problem["hint"]) == ("too_many_prompts", True)
    world.evaluate(prompts={"dataset": "data", "split": "all", "limit": 20}, entrants=[])


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"prompts": {"set": "unknown"}}, 404, "unknown_prompt_set"),
    ({"prompts": {"dataset": "unknown"}}, 404, "not_found"),
    ({"prompts": {}}, 422, "invalid_request"),
    ({"entrants": [{"model": "unknown"}]}, 404, "unknown_model"),
    ({"entrants": [{"model": "reward"}]}, 422, "wrong_role"),
    ({"entrants": [{"model": "sft", "score": 5}]}, 422, "no_score_format"),
    ({"entrants": [{"model": "sft", "decoding": {"guidance": 3}}]}, 422, "no_guidance"),
    ({"entrants": [{"model": "dt", "score": "verbosity:2"}]}, 422, "unknown_attribute"),
    ({"entrants": [{"model": "dt", "score": "high"}]}, 422, "invalid_request"),
    ({"entrants": [{"model": "sft", "samples": 2, "decoding": "greedy"}]}, 422, "equal_samples"),
    ({"entrants": [{"model": "sft", "best_of": 4}]}, 422, "invalid_request"),
    ({"entrants": [{"model": "sft", "reward": "reward"}]}, 422, "invalid_request"),
    ({"entrants": [{"model": "sft", "best_of": 4, "reward": "reward", "samples": 2}]}, 422, "invalid_request"),
    ({"entrants": [{"model": "sft", "best_of": 4, "reward": "sft"}]}, 422, "wrong_role"),
    ({"entrants": [{"model": "sft", "best_of": 4, "reward": "reward", "decoding": "greedy"}]}, 422, "equal_samples"),
    ({"entrants": [{"model": "sft", "best_of": 4, "reward": "reward"}]}, 422, "several_turns"),
    ({"entrants": [{"model": "sft", "endpoint": "x"}]}, 422, "invalid_request"),
    ({"entrants": [{"model": "sft", "name": "a"}, {"model": "dt", "name": "a"}]}, 409, "name_taken"),
    ({"rewards": ["sft"]}, 422, "wrong_role"),
    ({"name": "no spaces"}, 422, "invalid_request"),
]


def test_what_cannot_be_evaluated_is_refused_as_a_whole(world: EvaluationWorld) -> None:
    for body, status, code in REFUSED:
        problem = world.post("evaluations", {"name": "e", "prompts": {"set": "two-turns"}, **body}, status=status)
        assert (body, problem["code"]) == (body, code)
    assert world.get("evaluations")["items"] == []
    assert world.work() is None


BEST_OF = {"model": "sft", "best_of": 4, "reward": "reward"}
AT_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"best_of": 1}, "best_of", "greater than or equal to 2"),
    ({"reward": None}, "reward", "give both `best_of` and the `reward` model"),
    ({"best_of": None}, "reward", "give both `best_of` and the `reward` model"),
    ({"samples": 2}, "best_of", "cannot be combined"),
    ({"reward": "sft"}, "reward", "is not a reward model"),
    ({"decoding": "greedy"}, "decoding", "needs a temperature above 0"),
    ({}, "best_of", "takes prompts of one turn"),
]


def test_what_best_of_n_cannot_take_is_refused_at_its_field(world: EvaluationWorld) -> None:
    world.evaluate("there", prompts={"set": "two-turns"}, entrants=[])
    for change, field, words in AT_FIELDS:
        asked = BEST_OF | change
        body = {"name": "e", "prompts": {"set": "two-turns"}, "entrants": [{"model": "dt"}, asked]}
        for path, given, place in (
            ("evaluations", body, "body.entrants.1"),
            ("evaluations/there/entrants", asked, "body"),
        ):
            (fault,) = world.post(path, given, status=422)["errors"]
            assert fault["location"] == f"{place}.{field}"
            assert words in fault["message"]


def test_names_are_taken_once(world: EvaluationWorld) -> None:
    world.evaluate()
    assert world.evaluate(status=409)["code"] == "name_taken"
    world.evaluate("two")
    taken = world.client.patch(world.url("evaluations/two"), json={"name": "eval"})
    assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")
    assert [evaluation["name"] for evaluation in world.get("evaluations")["items"]] == ["two", "eval"]


def test_the_same_model_twice_gets_names_of_its_own(world: EvaluationWorld) -> None:
    made = world.evaluate("eval", {"model": "sft"}, {"model": "sft", "samples": 2}, {"model": "sft", "name": "mine"})
    assert made["entrants"] == ["sft", "sft-2", "mine"]
    assert world.detail()["entrants"][1]["decoding"]["temperature"] == 1.0


def test_mt_bench_temperatures_go_by_category(world: EvaluationWorld) -> None:
    world.evaluate("eval", {"model": "sft", "decoding": "by_category"})
    decoding = world.detail()["entrants"][0]["decoding"]
    assert decoding["temperature"] == 0.7
    assert (decoding["temperatures"]["math"], decoding["temperatures"]["stem"]) == (0.0, 0.1)


def test_who_may_only_read_starts_and_changes_nothing(world: EvaluationWorld) -> None:
    world.evaluate()
    reader = world.token("read")
    body = {"name": "x", "prompts": {"set": "two-turns"}}
    assert world.post("evaluations", body, status=403, headers=reader)["code"] == "missing_scope"
    for path, sent in (("entrants", {"model": "dt"}), ("rewards", {"model": "reward"})):
        world.post(f"evaluations/eval/{path}", sent, status=403, headers=reader)
    assert world.client.patch(world.url("evaluations/eval"), json={}, headers=reader).status_code == 403
    assert world.client.delete(world.url("evaluations/eval"), headers=reader).status_code == 403
    assert world.client.get(world.url("evaluations/eval"), headers=reader).status_code == 200
    ranker = world.token("write")
    assert world.client.get(world.url("evaluations/eval"), headers=ranker).status_code == 403


def test_another_projects_evaluation_is_not_there(world: EvaluationWorld) -> None:
    made = world.evaluate()
    assert world.client.post("/api/v1/projects", json={"name": "other"}).status_code == 201
    for ref in (made["id"], "eval"):
        answer = world.client.get(f"/api/v1/projects/other/evaluations/{ref}")
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_evaluation")
    assert world.client.get("/api/v1/projects/other/evaluations").json()["items"] == []


def test_a_retried_request_starts_nothing_twice(world: EvaluationWorld) -> None:
    body = {"name": "e", "prompts": {"set": "two-turns"}, "entrants": [{"model": "sft", "decoding": SHORT}]}
    first = world.post("evaluations", body, headers={"Idempotency-Key": "k"})
    again = world.post("evaluations", body, headers={"Idempotency-Key": "k"})
    assert first == again
    assert len(world.get("runs", kind="answer")["items"]) == 1


def test_changes_leave_a_trace(world: EvaluationWorld) -> None:
    world.evaluate()
    world.post("evaluations/eval/entrants", {"model": "dt"})
    world.client.delete(world.url("evaluations/eval"))
    actions = [entry["action"] for entry in world.get("audit")["items"]]
    assert actions[:3] == ["evaluation.delete", "evaluation.add_entrant", "evaluation.create"]
