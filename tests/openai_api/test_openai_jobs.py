"""Fine-tuning jobs by OpenAI's own client, up to the run that a worker would take."""

from __future__ import annotations

import itertools
from typing import Any

import httpx
import openai
import pytest
from openai_world import CHAT, PREFERENCES, PROMPTS, OpenAIWorld

from steerboard.platform.database import transaction
from steerboard.runs.state import claims
from steerboard.runs.state.transitions import move
from steerboard.runs.tables import Metric, Run

STRING_CHECK = {
    "type": "string_check",
    "name": "match",
    "input": "{{sample.output_text}}",
    "reference": "{{item.solution}}",
    "operation": "eq",
}
SCORE = {"type": "score_model", "name": "style", "model": "judge"}


def reinforcement(grader: dict[str, Any], **hyperparameters: Any) -> Any:
    return {"type": "reinforcement", "reinforcement": {"grader": grader, "hyperparameters": hyperparameters}}


def test_a_job_is_its_files_import_and_then_an_ordinary_run(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    file = world.upload(ours, CHAT)
    job = ours.fine_tuning.jobs.create(
        model="base",
        training_file=file,
        suffix="names",
        seed=7,
        metadata={"team": "a"},
        method={
            "type": "supervised",
            "supervised": {"hyperparameters": {"n_epochs": 2, "batch_size": "auto", "learning_rate_multiplier": 10}},
        },
    )
    assert (job.status, job.model, job.training_file, job.seed) == ("validating_files", "base", file, 7)
    assert (job.hyperparameters.n_epochs, job.hyperparameters.batch_size) == (2, "auto")
    world.import_files()
    job = ours.fine_tuning.jobs.retrieve(job.id)
    run = world.run_of(job)
    assert (job.status, run.state, run.method) == ("queued", "queued", "sft")
    assert run.name.startswith("base-names-")
    assert run.config["epochs"] == 2
    assert run.config["lr"] == pytest.approx(10 * 5e-6)
    assert (run.config["seed"], run.reuse) == (7, False)
    assert job.hyperparameters.batch_size == run.config["batch"]
    assert 1 < run.config["batch"] <= 4, "ten steps an epoch"
    assert job.metadata == {"team": "a"}
    assert [listed.id for listed in ours.fine_tuning.jobs.list(metadata={"team": "a"})] == [job.id]
    assert ours.fine_tuning.jobs.list(metadata={"team": "b"}).data == []


def test_a_file_that_is_a_dataset_already_gives_a_run_at_once(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    file = world.upload(ours, CHAT)
    first = ours.fine_tuning.jobs.create(model="base", training_file=file)
    world.import_files()
    second = ours.fine_tuning.jobs.create(model="base", training_file=file)
    assert second.status == "queued"
    assert second.id != first.id
    first = ours.fine_tuning.jobs.retrieve(first.id)
    assert second.steerboard["dataset_id"] == first.steerboard["dataset_id"]  # type: ignore[attr-defined]
    page = ours.fine_tuning.jobs.list(limit=1)
    assert ([job.id for job in page.data], page.has_more) == ([second.id], True)
    assert [job.id for job in ours.fine_tuning.jobs.list(limit=1)] == [second.id, first.id]


def test_preferences_are_learned_with_their_beta(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    method: Any = {"type": "dpo", "dpo": {"hyperparameters": {"beta": 0.3, "n_epochs": 1}}}
    job = ours.fine_tuning.jobs.create(model="base", training_file=world.upload(ours, PREFERENCES), method=method)
    world.import_files()
    job = ours.fine_tuning.jobs.retrieve(job.id)
    run = world.run_of(job)
    assert (run.config["beta"], run.config["epochs"], run.state) == (0.3, 1, "queued")
    assert job.method is not None
    assert job.method.type == "dpo"
    assert job.method.dpo is not None
    assert job.method.dpo.hyperparameters is not None
    assert job.method.dpo.hyperparameters.beta == 0.3


def test_graders_become_the_rewards_of_the_run(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    grader = {
        "type": "multi",
        "name": "both",
        "graders": {"style": SCORE, "match": STRING_CHECK},
        "calculate_output": "0.5 * style + 2 * match - style / 4",
    }
    method = reinforcement(grader, compute_multiplier=0.5, eval_interval=3, n_epochs=1)
    file = world.upload(ours, PROMPTS)
    job = ours.fine_tuning.jobs.create(model="base", training_file=file, method=method)
    world.import_files()
    job = ours.fine_tuning.jobs.retrieve(job.id)
    assert job.error is None
    run = world.run_of(job)
    assert run.config["reward_weights"] == [0.25]
    assert [(rule["kind"], rule["weight"]) for rule in run.config["rules"]] == [("exact_match", 2.0)]
    assert (run.config["answers"], run.config["evaluate_every"]) == (4, 3)
    headers = {"Authorization": f"Bearer {world.token}"}
    api = f"{world.url}/api/v1/projects/default"
    inputs = {one["name"]: one for one in httpx.get(f"{api}/runs/{run.id}", headers=headers).json()["inputs"]}
    assert set(inputs) == {"model", "data", "reward"}
    dataset = job.steerboard["dataset_id"]  # type: ignore[attr-defined]
    rows = httpx.get(f"{api}/datasets/{dataset}/samples", headers=headers).json()["items"]
    assert {row["sample"]["reference"] for row in rows} <= {str(n) for n in range(40)}
    assert len(rows) == 40


REFUSED: list[tuple[dict[str, Any], str, str | None]] = [
    ({"model": "nothing"}, "unknown_model", None),
    ({"model": "judge"}, "wrong_role", "model"),
    ({"training_file": "file-" + "0" * 32}, "not_found", None),
    ({"validation_file": "file-1"}, "unsupported_parameter", "validation_file"),
    ({"extra_body": {"n_steps": 3}}, "unsupported_parameter", "n_steps"),
    ({"integrations": [{"type": "wandb", "wandb": {"project": "x"}}]}, "unsupported_parameter", "integrations"),
    ({"suffix": "x" * 65}, "invalid_request", "suffix"),
    ({"hyperparameters": {"n_epochs": 0}}, "invalid_request", "hyperparameters.n_epochs"),
    ({"hyperparameters": {"beta": 0.1}}, "unsupported_parameter", "hyperparameters.beta"),
    ({"method": {"type": "distillation"}}, "unsupported_parameter", "method.type"),
    ({"method": reinforcement({"type": "python", "source": "x"})}, "unsupported_parameter", None),
    ({"method": reinforcement({**SCORE, "model": "base"})}, "wrong_role", None),
    ({"method": reinforcement(SCORE, reasoning_effort="low")}, "unsupported_parameter", None),
    ({"extra_body": {"steerboard": {"config": {"epoks": 3}}}}, "invalid_request", "epoks"),
    ({"extra_body": {"steerboard": {"config": {"method": "rwr"}}}}, "unsupported_parameter", "steerboard.config"),
]


def test_what_cannot_be_followed_is_refused_by_name(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    for changes, code, param in REFUSED:
        asked: dict[str, Any] = {"model": "base", "training_file": "file-" + "1" * 32, **changes}
        with pytest.raises(openai.APIStatusError) as refused:
            ours.fine_tuning.jobs.create(**asked)
        assert refused.value.status_code in (400, 404), changes
        assert refused.value.code == code, changes
        assert param in (None, refused.value.param), changes
    assert ours.fine_tuning.jobs.list().data == []


def test_rows_that_cannot_be_used_fail_the_job_with_their_lines(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    called = {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}
    rows = [*CHAT[:3], {"messages": [{"role": "user", "content": "Hi."}, called]}]
    job = ours.fine_tuning.jobs.create(model="base", training_file=world.upload(ours, rows))
    world.import_files()
    job = ours.fine_tuning.jobs.retrieve(job.id)
    assert job.status == "failed"
    assert job.error is not None
    assert (job.error.code, job.error.param) == ("bad_row", "training_file")
    assert "line 4" in job.error.message
    assert "a call of a tool without a name" in job.error.message
    events = ours.fine_tuning.jobs.list_events(job.id).data
    assert (events[0].level, events[0].message) == ("error", job.error.message)
    with pytest.raises(openai.ConflictError) as ended:
        ours.fine_tuning.jobs.cancel(job.id)
    assert ended.value.code == "job_not_started"


def test_a_job_is_cancelled_at_every_moment(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    file = world.upload(ours, CHAT)
    early = ours.fine_tuning.jobs.create(model="base", training_file=file)
    assert ours.fine_tuning.jobs.cancel(early.id).status == "cancelled"
    world.import_files()
    assert ours.fine_tuning.jobs.retrieve(early.id).status == "cancelled"
    late = ours.fine_tuning.jobs.create(model="base", training_file=file)
    world.import_files()
    assert ours.fine_tuning.jobs.pause(late.id).status == "paused"
    assert ours.fine_tuning.jobs.resume(late.id).status == "queued"
    cancelled = ours.fine_tuning.jobs.cancel(late.id)
    assert cancelled.status == "cancelled"
    assert world.run_of(cancelled).state == "cancelled"
    assert ours.fine_tuning.jobs.cancel(late.id).status == "cancelled", "twice is once"


def test_a_job_goes_with_its_run_and_not_with_its_import(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    api, headers = f"{world.url}/api/v1/projects/default", {"Authorization": f"Bearer {world.token}"}
    job = ours.fine_tuning.jobs.create(model="base", training_file=world.upload(ours, CHAT))
    world.import_files()
    for row in httpx.get(f"{api}/imports", headers=headers).json()["items"]:
        httpx.delete(f"{api}/imports/{row['id']}", headers=headers).raise_for_status()
    cancelled = ours.fine_tuning.jobs.cancel(job.id)
    run = cancelled.steerboard["run_id"]  # type: ignore[attr-defined]
    deleted = httpx.post(f"{api}/run-changes", headers=headers, json={"action": "delete", "runs": [run]})
    assert [one["why"] for one in deleted.json()["done"]] == [None]
    assert ours.fine_tuning.jobs.list().data == []


def test_a_repeated_request_with_its_key_is_one_job(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    file = world.upload(ours, CHAT)
    key = {"Idempotency-Key": "ci-1"}
    made = {ours.fine_tuning.jobs.create(model="base", training_file=file, extra_headers=key).id for _ in range(2)}
    assert len(made) == 1
    assert len(ours.fine_tuning.jobs.list().data) == 1


def test_a_deleted_file_leaves_its_job_and_dataset(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    file = world.upload(ours, CHAT)
    job = ours.fine_tuning.jobs.create(model="base", training_file=file)
    ours.files.delete(file)
    world.import_files()
    job = ours.fine_tuning.jobs.retrieve(job.id)
    assert (job.status, job.training_file) == ("queued", file)
    with pytest.raises(openai.NotFoundError):
        ours.fine_tuning.jobs.create(model="base", training_file=file)


def test_events_come_newest_first_page_by_page_with_the_metrics_between_the_states(
    world: OpenAIWorld, ours: openai.OpenAI
) -> None:
    job = ours.fine_tuning.jobs.create(model="base", training_file=world.upload(ours, CHAT))
    world.import_files()
    job = ours.fine_tuning.jobs.retrieve(job.id)
    run_id = world.run_of(job).id
    for attempt, steps in ((1, (1, 2)), (2, (3, 4, 5))):
        with transaction(world.sessions) as session:
            claims.claim_next(session, pool="default", owner="w", worker="w", devices=1, lease_seconds=60)
            for step in steps:
                for name, value in {"loss": 1 / step, "eval_loss": 2 / step, "wall_seconds": 10.0 * step}.items():
                    session.add(Metric(run_id=run_id, name=name, step=step, value=value, attempt=attempt))
        with transaction(world.sessions) as session:
            run = session.get_one(Run, run_id)
            move(session, run, "queued" if attempt == 1 else "failed", "the worker was lost", "worker_lost")
    whole = ours.fine_tuning.jobs.list_events(job.id, limit=100).data
    paged = list(ours.fine_tuning.jobs.list_events(job.id, limit=2))
    assert [event.id for event in paged] == [event.id for event in whole]
    kinds = [event.data["step"] if event.type == "metrics" else "" for event in whole]  # type: ignore[index]
    assert [step for step in kinds if step] == [5, 4, 3, 2, 1]
    assert kinds[0] == ""
    assert whole[0].level == "error"
    assert whole[-1].message.endswith(job.id)
    assert kinds.index(3) < kinds.index(2) - 1, "the loss of the worker lies between"
    times = [event.created_at for event in whole if event.type == "metrics"]
    assert [later - earlier for later, earlier in itertools.pairwise(times)] == [10] * 4
    failed = ours.fine_tuning.jobs.retrieve(job.id)
    assert failed.error is not None
    assert failed.error.code == "worker_lost"
    with pytest.raises(openai.BadRequestError):
        ours.fine_tuning.jobs.list_events(job.id, after="ftevent-nothing")


def test_scopes_of_tokens_hold_for_jobs(world: OpenAIWorld, ours: openai.OpenAI) -> None:
    file = world.upload(ours, CHAT)
    with world.client(world.token_of("read", "write")) as writer, pytest.raises(openai.PermissionDeniedError):
        writer.fine_tuning.jobs.create(model="base", training_file=file)
    with world.client(world.token_of("read", "run")) as runner:
        with pytest.raises(openai.PermissionDeniedError, match="write"):
            runner.fine_tuning.jobs.create(model="base", training_file=file)
    job = ours.fine_tuning.jobs.create(model="base", training_file=file)
    with world.client(world.token_of("read")) as reader:
        assert reader.fine_tuning.jobs.retrieve(job.id).id == job.id
        with pytest.raises(openai.PermissionDeniedError):
            reader.fine_tuning.jobs.cancel(job.id)
