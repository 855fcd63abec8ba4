"""Starting recipes, and pipelines as a whole, over HTTP."""

from __future__ import annotations

import threading

from api_world import EMPTY_REPORT, RECIPE, ApiWorld
from sqlalchemy import select

from steerboard.accounts.tables import AuditEntry, Project
from steerboard.platform.database import transaction
from steerboard.runs.tables import Pipeline, Run


def states(pipeline: dict) -> dict[str, str]:
    return {run["name"]: run["state"] for run in pipeline["runs"]}


def test_a_start_creates_the_pipeline_with_all_its_runs_in_order(world: ApiWorld) -> None:
    made = world.start("sft.lr=1e-3")
    assert made["name"] == "small-1"
    assert [run["name"] for run in made["runs"]] == ["chosen", "sft", "reward"]
    assert states(made) == {"chosen": "queued", "sft": "pending", "reward": "pending"}
    assert made["state"] == "queued"
    assert made["recipe_text"] == RECIPE
    assert made["settings"]["overrides"] == ["base=tiny", "data=hh", "sft.lr=1e-3"]
    detail = world.get("runs/small-1.sft")
    assert detail["config"]["lr"] == 1e-3
    assert {input_["name"]: (input_["type"], input_["label"]) for input_ in detail["inputs"]} == {
        "data": ("run", "chosen"),
        "model": ("model", "tiny"),
    }


def test_names_count_up(world: ApiWorld) -> None:
    assert [world.start()["name"], world.start()["name"], world.start("name=other")["name"]] == [
        "small-1",
        "small-2",
        "other-1",
    ]


def test_starts_at_the_same_time_get_different_names(world: ApiWorld) -> None:
    names: list[str] = []
    threads = [threading.Thread(target=lambda: names.append(world.start()["name"])) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names) == [f"small-{i}" for i in range(1, 7)]


def test_the_same_idempotency_key_starts_one_pipeline(world: ApiWorld) -> None:
    body = {"text": RECIPE, "set": ["base=tiny", "data=hh"]}
    first = world.post("pipelines", body, status=201, **{"Idempotency-Key": "ci-7"})
    again = world.post("pipelines", body, status=201, **{"Idempotency-Key": "ci-7"})
    assert first == again
    assert len(world.get("pipelines")["items"]) == 1
    other = {**body, "set": ["base=tiny", "data=hh", "name=x"]}
    assert world.post("pipelines", other, status=409, **{"Idempotency-Key": "ci-7"})["code"] == "idempotency_key_reused"


def test_a_wrong_recipe_starts_nothing_and_names_every_line(world: ApiWorld) -> None:
    text = RECIPE.replace("method: sft", "method: stf").replace("size: 10", "size: ten")
    problem = world.post("pipelines", {"text": text, "set": ["base=tiny", "data=hi"]}, status=422)
    assert problem["code"] == "invalid_recipe"
    assert {error["location"] for error in problem["errors"]} == {
        "inputs.data (--set data=hi)",
        "stages.sft.method (line 6)",
        "stages.chosen.size (line 7)",
    }
    assert world.get("pipelines")["items"] == []
    assert world.get("runs")["items"] == []


def test_a_failure_half_way_through_a_start_leaves_nothing(world: ApiWorld) -> None:
    # The plan is made first; the model is gone by the time its run is created.
    with transaction(world.sessions) as session:
        from steerboard.recipes import service
        from steerboard.recipes.planning.plan import make_plan
        from steerboard.runs.launch.catalogue import ProjectCatalogue

        catalogue = ProjectCatalogue(session, world.project, None, None)
        planned = make_plan(RECIPE, ["base=tiny", "data=hh"], catalogue)
    broken = planned.stages[1].inputs
    broken["model"] = type(broken["model"])(world.project.id, "gone", "base")
    try:
        with transaction(world.sessions) as session:
            service.start(session, session.get_one(Project, world.project.id), planned, "tester")
    except Exception as error:
        failure = error
    assert "not in project" in str(failure)
    with transaction(world.sessions) as session:
        assert session.scalars(select(Pipeline)).all() == []
        assert session.scalars(select(Run)).all() == []


def test_checking_shows_the_whole_plan_and_starts_nothing(world: ApiWorld) -> None:
    plan = world.post("recipes/check", {"text": RECIPE, "set": ["base=tiny", "data=hh"]})
    sft = next(stage for stage in plan["stages"] if stage["name"] == "sft")
    assert sft["config"]["batch"] == 128
    assert sft["inputs"] == {"model": {"type": "model", "name": "tiny"}, "data": {"type": "stage", "name": "chosen"}}
    assert world.get("pipelines")["items"] == []


def test_a_draft_with_a_fault_answers_with_its_stages_and_starts_nothing(world: ApiWorld) -> None:
    body = {"text": RECIPE, "set": ["base=tiny", "data=hh", "sft.lr=fast"]}
    draft = world.post("recipes/draft", body)
    assert [stage["name"] for stage in draft["stages"]] == ["chosen", "sft", "reward"]
    assert draft["faults"] == [
        {
            "field": "stages.sft.lr",
            "location": "stages.sft.lr (--set sft.lr=fast)",
            "message": "should be a valid number, got 'fast'",
            "line": None,
            "column": None,
        }
    ]
    assert world.post("recipes/draft", {"text": RECIPE, "set": ["base=tiny", "data=hh", "sft.lr=.nan"]})["faults"]
    assert world.post("recipes/check", body, status=422)["code"] == "invalid_recipe"
    assert world.get("pipelines")["items"] == []


def test_shipped_recipes_can_be_listed_read_checked_and_started_by_name(world: ApiWorld) -> None:
    listed = {recipe["name"]: recipe for recipe in world.get("recipes")}
    assert "offline-rlhf" in listed
    assert listed["offline-rlhf"]["description"]
    assert world.get("recipes/offline-rlhf") == listed["offline-rlhf"]
    body = {"recipe": "offline-rlhf", "set": ["base=tiny", "preferences=hh"]}
    notes = world.post("recipes/check", body)["notes"]
    assert any("independent" in note for note in notes)
    assert len(world.post("pipelines", body, status=201)["runs"]) == 11
    assert world.get("recipes/offline-rlf", status=404)["code"] == "unknown_recipe"
    assert "did you mean" in world.post("pipelines", {"recipe": "offline-rlf"}, status=404)["detail"]


def test_a_request_gives_a_name_or_a_text(world: ApiWorld) -> None:
    assert world.post("pipelines", {}, status=422)["code"] == "invalid_request"
    assert world.post("pipelines", {"recipe": "demo", "text": RECIPE}, status=422)["code"] == "invalid_request"


def test_a_pipelines_state_follows_its_runs(world: ApiWorld) -> None:
    world.start()
    claim = world.claim()
    assert claim
    assert world.get("pipelines/small-1")["state"] == "running"


def test_a_pipeline_that_ran_through_has_succeeded_with_its_cost(world: ApiWorld) -> None:
    world.start()
    for _ in range(3):
        world.work(seconds=2.5)
    made = world.get("pipelines/small-1")
    assert made["state"] == "succeeded"
    assert made["stages"] == {"succeeded": 3}
    assert made["device_seconds"] == 7.5
    assert made["ended_at"] is not None


def test_a_failed_stage_fails_the_pipeline_and_says_which(world: ApiWorld) -> None:
    world.start()
    world.work()
    world.work(fail="bad_row")
    made = world.get("pipelines/small-1")
    assert made["state"] == "failed"
    assert states(made) == {"chosen": "succeeded", "sft": "failed", "reward": "failed"}
    failed = {run["name"]: run for run in made["runs"]}
    assert failed["sft"]["reason_code"] == "bad_row"
    assert "it went wrong" in failed["sft"]["reason"]
    assert failed["reward"]["reason_code"] == "upstream_failed"
    assert world.get("runs/small-1.sft")["failed_device_seconds"] == 2.0


def test_cancelling_a_pipeline_cancels_all_that_has_not_ended(world: ApiWorld) -> None:
    world.start()
    world.work()
    cancelled = world.post("pipelines/small-1/cancel")
    assert cancelled["state"] == "cancelled"
    assert states(cancelled) == {"chosen": "succeeded", "sft": "cancelled", "reward": "cancelled"}
    assert world.post("pipelines/small-1/cancel")["state"] == "cancelled"


def test_pages_of_pipelines_are_newest_first_and_complete(world: ApiWorld) -> None:
    for _ in range(5):
        world.start()
    first = world.get("pipelines", limit=2)
    second = world.get("pipelines", limit=2, cursor=first["next"])
    third = world.get("pipelines", limit=2, cursor=second["next"])
    names = [pipeline["name"] for page in (first, second, third) for pipeline in page["items"]]
    assert names == [f"small-{i}" for i in (5, 4, 3, 2, 1)]
    assert third["next"] is None
    assert world.get("pipelines", status=422, cursor="!")["code"] == "bad_cursor"


def test_starting_and_cancelling_leave_audit_rows(world: ApiWorld) -> None:
    world.start()
    world.post("pipelines/small-1/cancel")
    with transaction(world.sessions) as session:
        entries = session.scalars(select(AuditEntry).order_by(AuditEntry.id)).all()
    assert [entry.action for entry in entries] == ["pipeline.start", "pipeline.cancel"]
    assert entries[0].detail["stages"] == ["chosen", "sft", "reward"]


def test_the_report_has_every_stage_even_before_there_are_figures(world: ApiWorld) -> None:
    world.start()
    world.work()
    report = world.get("pipelines/small-1/report")
    assert [(s["name"], s["status"]) for s in report["stages"]] == [
        ("chosen", "succeeded"),
        ("sft", "queued"),
        ("reward", "pending"),
    ]
    assert report["stages"][0]["device_seconds"] == 2.0
    assert report["methods"] == []
    assert report["warnings"] == ["the recipe has no evaluation"]


def test_a_report_that_an_older_steerboard_kept_is_shown_as_it_was(world: ApiWorld) -> None:
    text = RECIPE + "  judge: {run: evaluate, entrants: [sft], rewards: [reward], data: $data}\n"
    world.start(text=text)
    before = world.get("pipelines/small-1/report")
    assert before["warnings"] == ["no figures yet: judge is pending"]
    for _ in range(3):
        world.work()
    world.kept_report("small-1.judge", EMPTY_REPORT)
    report = world.get("pipelines/small-1/report")
    assert report["reward_model"]["held_out_accuracy"] == 0.9
    assert [stage["name"] for stage in report["stages"]] == ["chosen", "sft", "reward", "judge"]
    assert world.get("pipelines/small-1/report", stage="judge") == report
    assert report["summary"] is None
    assert (report["evaluation"], report["units"], report["units_of"]) == (None, "z", "the labelled data")
    no_gate = world.post("pipelines/small-1/gate", {"rules": []}, status=404)
    assert no_gate["code"] == "no_evaluation"
    assert world.get("pipelines/small-1/report", status=404, stage="sft")["code"] == "not_found"


def test_a_report_says_in_words_what_the_command_line_does(world: ApiWorld) -> None:
    world.start(text=RECIPE + "  judge: {run: evaluate, entrants: [sft], rewards: [reward], data: $data}\n")
    for _ in range(3):
        world.work()
    row = {"n": 9, "length_mean": 4.0, "truncated": 0.0, "distinct_1": 1.0, "distinct_2": 1.0, "device_seconds": 2.0}
    row |= {"win_rate_vs_baseline": None, "independent_win_rate_vs_baseline": None}
    methods = [
        {"method": "sft", "entrant": "s", "score": None, "reward_mean": 0.0, "reward_low": -0.1, "reward_high": 0.1},
        {"method": "rwr", "entrant": "r", "score": None, "reward_mean": 1.0, "reward_low": 0.9, "reward_high": 1.1},
    ]
    control = {"requested": [-5.0, 5.0], "achieved": [1.0, -1.0], "spearman": -1.0}
    document = {**EMPTY_REPORT, "methods": [row | figures for figures in methods], "control": control}
    world.kept_report("small-1.judge", document)
    report = world.get("pipelines/small-1/report")
    assert report["baseline"] == "SFT"
    summary = report["summary"]
    assert summary == {
        "verdict": "An earlier version made this report, which does not say whether there is a winner.",
        "cost": "",
        "checks": [{"text": "Spearman of requested and achieved is at least 0.9", "met": False}],
    }
    (shown,) = world.get("runs/small-1.judge")["outputs"]
    assert shown["document"] == report["report"]
    assert shown["document"]["headline"]["text"] == summary["verdict"]
    assert shown["document"]["recipe"]["checks"] == summary["checks"]
    assert {row["entrant"]: row["reward"]["reward model"]["value"] for row in shown["document"]["methods"]} == {
        "s": 0.0,
        "r": 1.0,
    }


def test_win_rates_of_a_report_that_names_sft_in_its_fields_are_against_the_baseline(world: ApiWorld) -> None:
    world.start(text=RECIPE + "  judge: {run: evaluate, entrants: [sft], rewards: [reward], data: $data}\n")
    for _ in range(3):
        world.work()
    row = {"n": 9, "length_mean": 4.0, "truncated": 0.0, "distinct_1": 1.0, "distinct_2": 1.0, "device_seconds": 2.0}
    row |= {"method": "rwr", "entrant": "r", "score": None, "reward_mean": 1.0, "reward_low": 0.9, "reward_high": 1.1}
    former = {"win_rate_vs_sft": 0.7, "independent_win_rate_vs_sft": 0.6, "judge_win_rate_vs_sft": 0.5}
    world.kept_report("small-1.judge", {**EMPTY_REPORT, "methods": [row | former]})
    (method,) = world.get("pipelines/small-1/report")["methods"]
    assert {name: value for name, value in method.items() if "win_rate" in name} == {
        "win_rate_vs_baseline": 0.7,
        "independent_win_rate_vs_baseline": 0.6,
        "judge_win_rate_vs_baseline": 0.5,
    }


def test_another_projects_pipelines_do_not_exist(world: ApiWorld) -> None:
    made = world.start()
    with transaction(world.sessions) as session:
        other = Project(name="other", split_salt="s", held_out_fraction=0.1)
        session.add(other)
    headers = world.token("admin", project=other)
    for ref in (made["id"], made["name"]):
        answer = world.client.get(f"/api/v1/projects/other/pipelines/{ref}", headers=headers)
        assert answer.status_code == 404
    assert world.client.get(world.url("pipelines"), headers=headers).status_code == 404


def test_scopes_are_kept(world: ApiWorld) -> None:
    reader, runner = world.token("read"), world.token("read", "run")
    body = {"text": RECIPE, "set": ["base=tiny", "data=hh"]}
    assert world.client.post(world.url("recipes/check"), json=body, headers=reader).status_code == 200
    refused = world.client.post(world.url("pipelines"), json=body, headers=reader)
    assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope")
    assert world.client.post(world.url("pipelines"), json=body, headers=runner).status_code == 201
    assert world.client.post(world.url("pipelines/small-1/cancel"), headers=reader).status_code == 403
    assert world.client.get(world.url("pipelines"), headers={"Authorization": ""}).status_code == 401
