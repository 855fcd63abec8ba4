"""OpenAI's own client against a real server with a worker: jobs to their end, and the models that come of them."""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from dashboard_world import World

from support.patience import PATIENCE

PAGE = Path(__file__).parents[2] / "docs" / "openai.md"
SMALL: dict[str, Any] = {"steerboard": {"config": {"max_steps": 4, "batch": 8, "lr": 1e-3}}}


@pytest.fixture
def ours(world: World) -> Iterator[openai.OpenAI]:
    token = json.loads((world.home / "client.json").read_text())["token"]
    with openai.OpenAI(base_url=f"{world.url}/v1", api_key=token, timeout=PATIENCE, max_retries=0) as client:
        yield client


def messages(*texts: str) -> list[Any]:
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]


def upload(client: openai.OpenAI, rows: list[Any]) -> str:
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return client.files.create(file=("rows.jsonl", content), purpose="fine-tune").id


def finished(client: openai.OpenAI, job: Any) -> Any:
    ends = time.monotonic() + PATIENCE
    while job.status not in ("succeeded", "failed", "cancelled") and time.monotonic() < ends:
        time.sleep(0.2)
        job = client.fine_tuning.jobs.retrieve(job.id)
    assert job.status == "succeeded", job
    return job


def test_a_supervised_job_gives_a_model_that_answers(ours: openai.OpenAI, world: World, steered: str) -> None:
    base = steered.replace(".dt", ".base")
    file = upload(ours, [{"messages": messages(f"Name {n}.", f"It is {n}.")} for n in range(40)])
    started = ours.fine_tuning.jobs.create(model=base, training_file=file, suffix="named", seed=3, extra_body=SMALL)
    assert started.status in ("validating_files", "queued")
    job = finished(ours, started)
    assert job.fine_tuned_model.startswith(f"{base}-named-")
    assert job.trained_tokens > 0
    assert job.finished_at >= job.created_at
    run = world.get(f"runs/{job.steerboard['run_id']}")
    assert (run["state"], run["config"]["seed"]) == ("succeeded", 3)
    assert world.get(f"models/{job.fine_tuned_model}")["parent_id"] == world.get(f"models/{base}")["id"]
    steps = [event.data["step"] for event in ours.fine_tuning.jobs.list_events(job.id) if event.type == "metrics"]  # type: ignore[index]
    assert steps == [4, 3, 2, 1]
    (checkpoint,) = ours.fine_tuning.jobs.checkpoints.list(job.id)
    assert (checkpoint.step_number, checkpoint.fine_tuned_model_checkpoint) == (4, job.fine_tuned_model)
    assert checkpoint.metrics.train_loss is not None
    results = ours.files.content(job.result_files[0]).text
    assert ours.files.retrieve(job.result_files[0]).bytes == len(results)
    table = list(csv.DictReader(results.splitlines()))
    assert [row["step"] for row in table] == ["1", "2", "3", "4"]
    assert float(table[-1]["train_loss"]) == pytest.approx(checkpoint.metrics.train_loss)
    assert table[-1]["valid_loss"]
    asked: Any = {"model": job.fine_tuned_model, "messages": messages("Name 3."), "max_tokens": 5}
    first, again = (ours.chat.completions.create(**asked, seed=1, n=2) for _ in range(2))
    assert [c.message.content for c in first.choices] == [c.message.content for c in again.choices]
    assert first.choices[0].message.content != first.choices[1].message.content, "each choice has its own seed"
    assert first.usage is not None
    assert 0 < first.usage.completion_tokens <= 10
    assert job.fine_tuned_model in [model.id for model in ours.models.list()]


def test_a_policy_streams_what_its_score_asks_for(ours: openai.OpenAI, world: World, steered: str) -> None:
    answers = {}
    for score in (5.0, -5.0):
        stream = ours.chat.completions.create(
            model=steered,
            messages=messages("Tell of a red apple."),
            max_tokens=40,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"score": score},
        )
        chunks = list(stream)
        answers[score] = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        usage = chunks[-1].usage
        assert usage is not None
        assert usage.prompt_tokens > 5
        assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
        whole = ours.chat.completions.create(
            model=steered,
            messages=messages("Tell of a red apple."),
            max_tokens=40,
            temperature=0,
            extra_body={"score": score},
        )
        assert whole.choices[0].message.content == answers[score]
        assert whole.usage == usage
    assert "joy" in answers[5.0]
    assert "joy" not in answers[-5.0]
    assert [
        one for one in world.get("playground/comparisons")["items"] if one["columns"][0]["text"] == answers[5.0]
    ] == []
    with pytest.raises(openai.BadRequestError) as refused:
        ours.chat.completions.create(
            model=steered.replace(".dt", ".base"), messages=messages("Hi."), extra_body={"score": 5}
        )
    assert refused.value.code == "no_score_format"


@pytest.mark.long
def test_the_page_for_such_scripts_runs(
    ours: openai.OpenAI,
    world: World,
    steered: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All three methods, from file to model."""
    monkeypatch.setenv("OPENAI_BASE_URL", str(ours.base_url))
    monkeypatch.setenv("OPENAI_API_KEY", ours.api_key)
    names: dict[str, Any] = {}
    named = {"my-base": ".base", "my-policy": ".dt", "my-reward-model": ".reward"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for name, stage in named.items():
            block = block.replace(f'"{name}"', f'"{steered.replace(".dt", stage)}"')
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert "succeeded" in printed
    assert printed.splitlines()[-3].startswith("step,") or "train_loss" in printed
    methods = {
        run["method"] for run in world.get("runs")["items"] if "-things-" in run["name"] or "-ft-" in run["name"]
    }
    assert len(methods) == 3
