"""Runs over HTTP."""

from __future__ import annotations

import uuid
from typing import Any

from api_world import ApiWorld
from sqlalchemy import select

from steerboard.accounts.tables import AuditEntry, Project
from steerboard.platform.database import transaction
from steerboard.registry.tables import Model
from steerboard.runs.tables import Metric, Run, WorkerRow
from steerboard_contracts.methods import methods


def test_runs_are_listed_newest_first_by_page_and_filter(world: ApiWorld) -> None:
    world.start()
    world.start()
    world.work()
    everything = world.get("runs")["items"]
    assert [run["name"] for run in everything] == ["reward", "sft", "chosen"] * 2
    first = world.get("runs", limit=4)
    second = world.get("runs", limit=4, cursor=first["next"])
    assert [*first["items"], *second["items"]] == everything
    assert [run["name"] for run in world.get("runs", kind="mix")["items"]] == ["chosen", "chosen"]
    assert len(world.get("runs", kind=["mix", "train"])["items"]) == 6
    assert [run["state"] for run in world.get("runs", state="succeeded")["items"]] == ["succeeded"]
    assert len(world.get("runs", pipeline="small-2")["items"]) == 3
    assert world.get("runs", status=404, pipeline="small-9")["code"] == "not_found"
    assert world.get("runs", status=422, state="asleep")["code"] == "invalid_request"


def test_a_run_tells_its_whole_story(world: ApiWorld) -> None:
    world.start()
    world.work(fail="bad_row", seconds=1.5)
    detail = world.get("runs/small-1.chosen")
    assert [step["to_state"] for step in detail["timeline"]] == ["pending", "queued", "running", "failed"]
    (attempt,) = detail["attempts"]
    assert (attempt["worker"], attempt["outcome"], attempt["device_seconds"]) == ("w1", "failed", 1.5)
    assert detail["error"]["code"] == "bad_row"
    (given,) = detail["inputs"]
    assert (given["name"], given["type"], given["label"]) == ("parts.0", "dataset", "hh")
    assert world.get(f"runs/{detail['id']}") == detail


def test_inputs_of_equal_content_are_known_to_be_equal_under_other_names(world: ApiWorld) -> None:
    """The second pipeline reuses what the first one made."""
    world.start()
    before = {input_["name"]: input_["content"] for input_ in world.get("runs/small-1.sft")["inputs"]}
    assert before["data"] is None
    world.work()
    world.start()
    first, second = (
        {input_["name"]: (input_["id"], input_["content"]) for input_ in world.get(f"runs/{name}.sft")["inputs"]}
        for name in ("small-1", "small-2")
    )
    assert first["data"][0] != second["data"][0]
    assert first["data"][1] == second["data"][1] is not None
    assert first["model"] == second["model"]


def test_a_finished_run_shows_what_it_made(world: ApiWorld) -> None:
    world.start()
    world.work()
    (made,) = world.get("runs/small-1.chosen")["outputs"]
    assert made["type"] == "dataset"
    assert made["id"]
    assert made["label"]


def test_unknown_runs_are_problems(world: ApiWorld) -> None:
    for ref in ("nope", "small-1.nope", "0193a1b2-0000-7000-8000-000000000000"):
        assert world.get(f"runs/{ref}", status=404)["code"] == "not_found"


def test_metrics_come_by_name_and_down_sampled_without_hiding_spikes(world: ApiWorld) -> None:
    run = world.start()["runs"][0]["id"]
    world.metric(run, "loss", [float(step) for step in range(1, 1001)])
    world.metric(run, "spike", [100.0 if step == 500 else 0.0 for step in range(1, 1001)])
    world.metric(run, "short", [3.0, 2.0, 1.0])
    series = {curve["name"]: curve for curve in world.get(f"runs/{run}/metrics", points=10)}
    assert set(series) == {"loss", "spike", "short"}
    assert series["loss"]["steps"] == 1000
    assert [point["step"] for point in series["loss"]["points"]] == list(range(100, 1001, 100))
    assert series["loss"]["points"][0] == {"step": 100, "value": 50.5, "low": 1.0, "high": 100.0}
    assert max(point["high"] for point in series["spike"]["points"]) == 100.0
    assert [point["value"] for point in series["short"]["points"]] == [3.0, 2.0, 1.0]
    only = world.get(f"runs/{run}/metrics", name="short")
    assert [curve["name"] for curve in only] == ["short"]
    whole = world.get(f"runs/{run}/metrics", name="loss", points=5000)[0]["points"]
    assert [point["value"] for point in whole] == [float(step) for step in range(1, 1001)]


def test_metrics_come_in_groups_what_the_method_names_first(world: ApiWorld) -> None:
    run = world.start()["runs"][0]["id"]
    with transaction(world.sessions) as session:
        session.get_one(Run, uuid.UUID(run)).method = "dpo"
    names = ["lr", "eval_reward_std", "wall_seconds", "device/cpu_cores/w", "eval_loss", "pair_accuracy"]
    for name in names:
        world.metric(run, name, [1.0, 2.0])
    assert [(curve["name"], curve["group"]) for curve in world.get(f"runs/{run}/metrics")] == [
        ("pair_accuracy", "first"),
        ("eval_loss", "first"),
        ("eval_reward_std", "held_out"),
        ("device/cpu_cores/w", "device"),
        ("wall_seconds", "cost"),
        ("lr", "training"),
    ]


def test_steps_far_apart_keep_points_of_their_own_while_there_are_few_enough(world: ApiWorld) -> None:
    run = world.start()["runs"][0]["id"]
    with transaction(world.sessions) as session:
        rows = [(step, float(step)) for step in (0, 1, 2, 2**31 - 1)]
        session.add_all(Metric(run_id=uuid.UUID(run), name="rare", step=s, value=v, attempt=1) for s, v in rows)
    every = world.get(f"runs/{run}/metrics", points=4)[0]["points"]
    assert [point["step"] for point in every] == [0, 1, 2, 2**31 - 1]
    fewer = world.get(f"runs/{run}/metrics", points=3)[0]
    assert [(point["step"], point["value"]) for point in fewer["points"]] == [(2, 1.0), (2**31 - 1, 2.0**31 - 1)]
    assert fewer["steps"] == 4


def test_logs_are_read_in_order_page_by_page(world: ApiWorld) -> None:
    run = world.start()["runs"][0]["id"]
    world.log(run, *(f"line {i}" for i in range(7)))
    first = world.get(f"runs/{run}/logs", limit=5)
    second = world.get(f"runs/{run}/logs", limit=5, cursor=first["next"])
    assert [line["message"] for line in first["items"] + second["items"]] == [f"line {i}" for i in range(7)]
    assert second["next"] is None
    assert world.get(f"runs/{run}/logs", level="error")["items"] == []


def test_the_end_of_a_log_is_read_backwards(world: ApiWorld) -> None:
    run = world.start()["runs"][0]["id"]
    world.log(run, *(f"line {i}" for i in range(7)))
    last = world.get(f"runs/{run}/logs", limit=5, newest_first=True)
    before = world.get(f"runs/{run}/logs", limit=5, newest_first=True, cursor=last["next"])
    assert [line["message"] for line in last["items"] + before["items"]] == [f"line {i}" for i in reversed(range(7))]
    assert before["next"] is None


def test_a_queued_run_is_cancelled_at_once_and_resumed(world: ApiWorld) -> None:
    world.start()
    cancelled = world.post("runs/small-1.chosen/cancel")
    assert cancelled["state"] == "cancelled"
    assert "token:" in cancelled["reason"]
    assert world.post("runs/small-1.chosen/resume")["state"] == "queued"
    assert world.post("runs/small-1.chosen/resume", status=409)["code"] == "run_not_resumable"


def test_a_running_run_is_asked_to_stop(world: ApiWorld) -> None:
    world.start()
    world.claim()
    asked = world.post("runs/small-1.chosen/cancel")
    assert asked["state"] == "running"
    assert asked["cancel_requested_at"] is not None


def test_a_finished_run_cannot_be_cancelled(world: ApiWorld) -> None:
    world.start()
    world.work()
    assert world.post("runs/small-1.chosen/cancel", status=409)["code"] == "run_not_active"


def test_a_run_of_its_own_is_started_by_names(world: ApiWorld) -> None:
    world.model("tuned", "policy")
    body = {"config": {"run": "generate", "prompts": ["Hello?"], "scores": [5, -5]}, "inputs": {"model": "tuned"}}
    made = world.post("runs", body, status=201)
    assert made["name"] == "generate-1"
    assert made["config"]["scores"] == [5.0, -5.0]
    assert made["state"] == "queued"
    assert world.post("runs", body, status=201)["name"] == "generate-2"
    assert world.get("runs/generate-2")["pipeline_id"] is None


def test_one_idempotency_key_starts_one_run(world: ApiWorld) -> None:
    body = {"config": {"run": "generate", "prompts": ["Hello?"]}, "inputs": {"model": "tiny"}}
    first = world.post("runs", body, status=201, **{"Idempotency-Key": "k"})
    assert world.post("runs", body, status=201, **{"Idempotency-Key": "k"})["id"] == first["id"]


def test_a_wrong_run_is_refused_with_every_field_at_fault(world: ApiWorld) -> None:
    world.model("judge", "reward")
    body = {
        "config": {"run": "generate", "prompts": ["a"], "shards": 0, "nonsense": 1},
        "inputs": {"model": "judge", "data": "hi", "stuff": "x"},
    }
    problem = world.post("runs", body, status=422)
    assert problem["code"] == "invalid_run"
    assert {error["location"] for error in problem["errors"]} == {
        "config.shards",
        "config.nonsense",
        "config.prompts",
        "inputs.model",
        "inputs.data",
        "inputs.stuff",
    }
    assert world.get("runs")["items"] == []


def test_runs_without_kind_or_inputs_are_refused(world: ApiWorld) -> None:
    world.dataset("answers", "instructions")
    for body, location in [
        ({"config": {}}, "config.run"),
        ({"config": {"run": "train", "method": "magic"}}, "config.method"),
        ({"config": {"run": "score"}, "inputs": {"data": "hh"}}, "inputs.reward"),
        ({"config": {"run": "generate"}, "inputs": {"model": "tiny"}}, "inputs.data"),
        ({"config": {"run": "mix", "parts": [{}, {}]}, "inputs": {"parts.0": "hh"}}, "config.parts"),
        (
            {
                "config": {"run": "mix", "makes": "preferences", "parts": [{}, {}]},
                "inputs": {"parts.0": "hh", "parts.1": "answers"},
            },
            "inputs.parts.1",
        ),
        ({"config": {"run": "select", "weights": [1, 2]}, "inputs": {"data.0": "hh"}}, "config.weights"),
        ({"config": {"run": "select"}, "inputs": {"data.0": "hh"}}, "inputs.data.0"),
        ({"config": {"run": "train", "method": "rloo"}, "inputs": {"model": "tiny", "data": "hh"}}, "inputs"),
    ]:
        problem = world.post("runs", body, status=422)
        assert location in {error["location"] for error in problem["errors"]}, problem


def test_answers_that_leave_no_room_in_the_models_window_are_refused_at_the_launch(world: ApiWorld) -> None:
    world.model("judge", "reward")
    small = world.model("small")
    with transaction(world.sessions) as session:
        row = session.get(Model, small)
        assert row is not None
        row.info = {**row.info, "max_length": 64}
    inputs = {"model": "small", "data": "hh", "reward": "judge"}
    config = {"run": "train", "method": "ppo", "max_new_tokens": 64}
    (fault,) = world.post("runs", {"config": config, "inputs": inputs}, status=422)["errors"]
    assert fault["location"] == "config.max_new_tokens"
    assert "the model has 64 tokens for both; ask for at most 32" in fault["message"]
    world.post("runs", {"config": {**config, "max_new_tokens": 32}, "inputs": inputs}, status=201)


def test_texts_to_learn_besides_rewards_and_their_coefficient_are_given_together(world: ApiWorld) -> None:
    world.dataset("texts", "instructions")
    world.dataset("kept", "instructions", rows=1)
    world.model("judge", "reward")

    def launched(coefficient: float, status: int, **further: str) -> Any:
        config = {"run": "train", "method": "ppo", "ptx_coefficient": coefficient}
        inputs = {"model": "tiny", "data": "hh", "reward": "judge", **further}
        return world.post("runs", {"config": config, "inputs": inputs}, status=status)

    for coefficient, further, words in [
        (27.8, {}, "ptx_coefficient needs a dataset"),
        (0, {"pretraining": "texts"}, "`pretraining` has no effect with ptx_coefficient 0"),
    ]:
        (fault,) = launched(coefficient, 422, **further)["errors"]
        assert fault["location"] == "inputs"
        assert words in fault["message"]
    (wrong,) = launched(1, 422, pretraining="hh")["errors"]
    assert (wrong["location"], "of kind preferences" in wrong["message"]) == ("inputs.pretraining", True)
    held_out = launched(1, 422, pretraining="kept")
    assert (held_out["code"], held_out["errors"][0]["location"]) == ("no_training_rows", "inputs.pretraining")
    assert world.get("runs")["items"] == []
    made = launched(27.8, 201, pretraining="texts")
    assert {input_["name"]: input_["label"] for input_ in made["inputs"]}["pretraining"] == "texts"


def test_a_model_that_compares_and_one_that_scores_are_not_taken_for_each_other(world: ApiWorld) -> None:
    """The refusal names the input, and what each of them is for."""
    world.model("compares", role="preference")
    world.model("scores", role="reward")
    world.dataset("answers", "instructions")
    for config, inputs, place, words in [
        ({"run": "score"}, {"data": "answers", "reward": "compares"}, "inputs.reward", "as the `judge` of a selection"),
        ({"run": "select"}, {"data.0": "answers", "judge": "scores"}, "inputs.judge", "select by their rewards"),
    ]:
        problem = world.post("runs", {"config": config, "inputs": inputs}, status=422)
        (fault,) = (error for error in problem["errors"] if error["location"] == place)
        assert words in fault["message"]
        assert problem["code"] == "invalid_run"


def test_answers_without_rewards_are_selected_from_by_a_judge_alone(world: ApiWorld) -> None:
    world.model("compares", role="preference")
    world.dataset("answers", "instructions", fields=("group", "candidate"))
    alone = world.post("runs", {"config": {"run": "select"}, "inputs": {"data.0": "answers"}}, status=422)
    assert "of kind labelled" in alone["errors"][0]["message"]
    judged = {"data.0": "answers", "judge": "compares"}
    assert world.post("runs", {"config": {"run": "select"}, "inputs": judged}, status=201)["kind"] == "select"


def test_a_clone_is_the_same_run_with_changes(world: ApiWorld) -> None:
    world.start()
    world.work()
    world.work()
    original = world.get("runs/small-1.sft")
    clone = world.post("runs/small-1.sft/clone", {"config": {"lr": 0.5}, "name": "again"}, status=201)
    assert clone["name"] == "again"
    assert clone["config"] == {**original["config"], "lr": 0.5}
    # The original waited for a stage; the clone takes the resulting dataset.
    assert {input_["name"]: input_["type"] for input_ in clone["inputs"]} == {"data": "dataset", "model": "model"}
    assert clone["pipeline_id"] is None
    problem = world.post("runs/small-1.sft/clone", {"config": {"lr": "much"}}, status=422)
    assert problem["errors"][0]["location"] == "config.lr"


def test_a_run_whose_inputs_are_not_made_yet_cannot_be_cloned(world: ApiWorld) -> None:
    world.start()
    assert world.post("runs/small-1.reward/clone", {}, status=422)["code"] == "unusable_input"


def test_schemas_describe_what_the_server_accepts(world: ApiWorld) -> None:
    train = world.get("schemas/train")
    assert [card["method"] for card in train] == list(methods())
    (rwr,) = [card for card in train if card["method"] == "rwr"]
    assert "beta" in rwr["config_schema"]["properties"]
    (score,) = world.get("schemas/score")
    assert {slot["name"]: slot["allowed"] for slot in score["inputs"]} == {
        "data": ["instructions", "labelled"],
        "reward": ["reward"],
    }
    assert world.get("schemas/dance", status=422)["code"] == "invalid_request"


def test_changes_to_runs_leave_audit_rows(world: ApiWorld) -> None:
    body = {"config": {"run": "generate", "prompts": ["Hello?"]}, "inputs": {"model": "tiny"}}
    world.post("runs", body, status=201)
    world.post("runs/generate-1/clone", {}, status=201)
    world.post("runs/generate-1/cancel")
    world.post("runs/generate-1/resume")
    with transaction(world.sessions) as session:
        actions = session.scalars(select(AuditEntry.action).order_by(AuditEntry.id)).all()
    assert actions == ["run.start", "run.clone", "run.cancel", "run.resume"]


def test_another_projects_runs_do_not_exist(world: ApiWorld) -> None:
    run = world.start()["runs"][0]["id"]
    with transaction(world.sessions) as session:
        other = Project(name="other", split_salt="s", held_out_fraction=0.1)
        session.add(other)
    headers = world.token("admin", project=other)
    for path in (f"runs/{run}", f"runs/{run}/logs", f"runs/{run}/metrics"):
        assert world.client.get(f"/api/v1/projects/other/{path}", headers=headers).status_code == 404
    for action in ("cancel", "resume"):
        url = f"/api/v1/projects/other/runs/{run}/{action}"
        assert world.client.post(url, headers=headers).status_code == 404
    assert world.get(f"runs/{run}")["state"] == "queued"


def test_scopes_are_kept(world: ApiWorld) -> None:
    run = world.start()["runs"][0]["id"]
    reader = world.token("read", "write")
    assert world.client.get(world.url(f"runs/{run}"), headers=reader).status_code == 200
    for path in ("runs", f"runs/{run}/cancel", f"runs/{run}/resume", f"runs/{run}/clone"):
        answer = world.client.post(world.url(path), headers=reader, json={"config": {}})
        assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope"), path


def test_workers_and_queues_are_shown(world: ApiWorld) -> None:
    world.start()
    claim = world.claim()
    with transaction(world.sessions) as session:
        session.add(WorkerRow(name="w1", pool="default", host="here", pid=7, devices={"count": 1}, run_id=claim.run_id))
    (worker,) = world.client.get("/api/v1/system/workers").json()
    assert (worker["name"], worker["alive"], worker["run_id"]) == ("w1", True, str(claim.run_id))
    run = world.get(f"runs/{claim.run_id}")
    assert worker["busy"] is True
    assert worker["run"] == {
        "id": run["id"],
        "project": "default",
        "name": run["name"],
        "kind": "mix",
        "method": None,
        "pipeline": {"id": run["pipeline_id"], "name": "small-1"},
    }
    (queue,) = world.client.get("/api/v1/system/queues").json()
    assert (queue["pool"], queue["pending"], queue["queued"], queue["running"], queue["workers"]) == (
        "default",
        2,
        0,
        1,
        1,
    )
    with transaction(world.sessions) as session:
        other = Project(name="other", split_salt="s", held_out_fraction=0.1)
        session.add(other)
    headers = world.token("read", project=other)
    (seen,) = world.client.get("/api/v1/system/workers", headers=headers).json()
    assert (seen["busy"], seen["run_id"], seen["run"]) == (True, None, None)


def test_runs_of_two_pipelines_are_told_apart_by_their_pipeline(world: ApiWorld) -> None:
    first, second = world.start(), world.start()
    runs = world.get("runs")["items"]
    assert [run["pipeline"] for run in runs if run["name"] == "chosen"] == [
        {"id": pipeline["id"], "name": pipeline["name"]} for pipeline in (second, first)
    ]
    assert {run["pipeline"]["name"] for run in first["runs"]} == {first["name"]}
    assert world.get(f"runs/{runs[0]['id']}")["pipeline"]["name"] == second["name"]
    alone = world.post("runs", {"config": {"run": "generate", "prompts": ["Hi"]}, "inputs": {"model": "tiny"}}, 201)
    assert alone["pipeline"] is None


def test_every_endpoint_declares_its_problems_and_is_documented(world: ApiWorld) -> None:
    paths = world.client.get("/api/v1/openapi.json").json()["paths"]
    ours = {path: verbs for path, verbs in paths.items() if any(p in path for p in ("/runs", "/pipelines", "/recipes"))}
    assert len(ours) >= 14
    for path, verbs in ours.items():
        for verb, operation in verbs.items():
            assert operation.get("summary") or operation.get("description"), path
            for status in ("401", "403"):
                assert "application/problem+json" in operation["responses"][status]["content"], (path, verb)
            if "{run}" in path or "{pipeline}" in path:
                assert "404" in operation["responses"], (path, verb)
