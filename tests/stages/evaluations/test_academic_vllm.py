"""Academic benchmarks by vLLM: the harness in its environment, vLLM in its own, and what they find together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest
from hand_pipeline import HandPipeline

from steerboard.platform.processes import lm_eval, vllm
from steerboard_contracts.stage.events import STAGE_EVENT, Failed, StageEvent, Succeeded
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.stage.spec import STAGE_FILE
from steerboard_workers.stages.base import train_tokenizer
from support.models.lm_eval_environment import (
    CHOICES,
    FLEXIBLE,
    PYTHON,
    STRICT,
    needs_lm_eval,
    write_lookup_model,
    write_tasks,
)
from support.models.vllm_engine import PYTHON as VLLM_PYTHON
from support.models.vllm_engine import needs_vllm, write_models
from support.patience import PATIENCE, wait_until

pytestmark = [needs_lm_eval, needs_vllm, pytest.mark.long]
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
BY_VLLM = {"engine": "vllm", "vllm": {"eager": True}}


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> HandPipeline:
    folder = tmp_path_factory.mktemp("things")
    pipeline = HandPipeline(folder)
    write_tasks(folder / "tasks")
    beams = (folder / "tasks" / "sums.yaml").read_text().replace("task: sums", "task: beams")
    beams = beams.replace("do_sample: false", "num_beams: 2")
    (folder / "tasks" / "beams.yaml").write_text(beams)
    phrases = (folder / "tasks" / "choices.yaml").read_text().replace("task: choices", "task: phrases")
    (folder / "tasks" / "phrases.yaml").write_text(phrases.replace('["no", "yes"]', '["no 1 yes q3", "yes #2 no"]'))
    write_lookup_model(folder / "lookup")
    tokenizer = train_tokenizer([f"Question {n} yes no #{n} q{n} c{n}" for n in range(60)] * 5, 400, 160)
    write_models(folder, tokenizer)
    # Among its own ends are some that a text can have.
    settings = folder / "policy" / "generation_config.json"
    ends = [tokenizer.eos_token_id, *range(100, 200, 5)]
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "eos_token_id": ends}))
    for name, path in (("lookup", folder / "lookup"), ("random", folder / "policy")):
        pipeline.things[name] = ModelInput(name=name, path=str(path), content_hash=name)
    return pipeline


def prepared(things: HandPipeline, name: str, model: str = "lookup", **config: Any) -> Path:
    tasks = str(things.directory / "tasks")
    folder = things.prepare(name, {"run": "academic", "folder": tasks, **config}, {"model": model})
    assert VLLM_PYTHON is not None
    engine = {"python": str(VLLM_PYTHON), "variables": vllm.variables(VLLM_PYTHON, folder)}
    spec = {**json.loads((folder / STAGE_FILE).read_text()), "folders": {"roots": [tasks], "never": []}}
    (folder / STAGE_FILE).write_text(json.dumps({**spec, "vllm": engine if config.get("engine") == "vllm" else None}))
    return folder


def start(folder: Path) -> subprocess.Popen[str]:
    assert PYTHON is not None
    return subprocess.Popen(
        [PYTHON, "-m", "steerboard_workers.stages", folder],
        env={**os.environ, **lm_eval.variables(folder), **OFFLINE, "HF_HOME": str(folder.parent / "hf")},
        stdout=subprocess.PIPE,
        stderr=(folder / "log").open("a"),
        text=True,
    )


def ended(folder: Path) -> StageEvent:
    stdout, _ = start(folder).communicate(timeout=PATIENCE)
    assert stdout, (folder / "log").read_text()[-3000:]
    return STAGE_EVENT.validate_json(stdout.splitlines()[-1])


def finished(folder: Path) -> dict[str, Any]:
    last = ended(folder)
    assert isinstance(last, Succeeded), (last, (folder / "log").read_text()[-3000:])
    return last.summary


def kept_answers(folder: Path) -> dict[tuple[str, int], Any]:
    files = sorted((folder / "checkpoints").glob("a*-rows.jsonl"))
    lines = [line for path in files for line in path.read_text().splitlines() if line.endswith("}")]
    rows = [json.loads(line) for line in lines]
    assert len(rows) == len({(row["key"], row["n"]) for row in rows}), "a request was answered twice"
    return {(row["key"], row["n"]): row["answer"] for row in rows}


def end_of_log(folder: Path) -> str:
    return (folder / "log").read_text()[-3000:]


def servers_of(pid: int) -> list[int]:
    """The processes below it that have vLLM."""
    children = psutil.Process(pid).children(recursive=True)
    return [child.pid for child in children if "steerboard_workers.stages.harness.vllm_server" in child.cmdline()]


def test_a_model_of_known_answers_has_its_known_figures(things: HandPipeline) -> None:
    summary = finished(prepared(things, "known", tasks=["sums", "choices"], shots={"sums": 2}, **BY_VLLM))
    figures = {name: summary[name] for name in ("sums.strict", "sums.flexible", "choices.acc")}
    assert figures == {"sums.strict": STRICT, "sums.flexible": FLEXIBLE, "choices.acc": CHOICES}


def test_a_models_answers_and_log_probs_are_those_that_it_has_over_transformers(things: HandPipeline) -> None:
    # The two choices of `choices` are a token each, those of `phrases` several.
    tasks = {"tasks": ["sums", "choices", "phrases", "prose"], "shots": {"sums": 2, "choices": 1}, "limit": 12}
    by_vllm = prepared(things, "by-vllm", model="random", **tasks, **BY_VLLM)
    by_transformers = prepared(things, "by-transformers", model="random", **tasks)
    assert set(finished(by_vllm)) == set(finished(by_transformers))
    ours, theirs = kept_answers(by_vllm), kept_answers(by_transformers)
    assert set(ours) == set(theirs)
    kinds = {type(answer) for answer in theirs.values()}
    assert kinds == {str, list, float}, "a text, a log-prob with whether it is greedy, and that of a whole text"
    for place, answer in theirs.items():
        if isinstance(answer, float):
            # A text longer than the window: the pieces it is read in are two tokens shorter.
            assert ours[place] == pytest.approx(answer, rel=1e-4 if answer > -400 else 0.05)
        elif isinstance(answer, list):
            assert ours[place] == [pytest.approx(answer[0], abs=1e-3), answer[1]]
        else:
            assert ours[place] == answer
    assert len({answer for answer in ours.values() if isinstance(answer, str)}) > 1


def test_what_was_answered_before_a_kill_is_not_asked_again(things: HandPipeline) -> None:
    tasks = {"tasks": ["sums", "choices", "sampled"], "batch_size": 1, "limit": 20}
    undisturbed, folder = prepared(things, "whole", **tasks, **BY_VLLM), prepared(things, "killed", **tasks, **BY_VLLM)
    finished(undisturbed)
    process = start(folder)
    wait_until(lambda: len(kept_answers(folder)) >= 25, lambda: end_of_log(folder), pause=0.002, process=process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    before = len(kept_answers(folder))
    # A request a question, two a choice, two a question of which two answers are drawn.
    assert 25 <= before < 5 * 20
    assert finished(folder)["resumed_rows"] == before
    # Drawn with the same random numbers, too.
    assert kept_answers(folder) == kept_answers(undisturbed)


def test_a_vllm_that_dies_is_an_error_that_another_attempt_may_mend(things: HandPipeline) -> None:
    folder = prepared(things, "dead", tasks=["choices"], **BY_VLLM)
    process = start(folder)
    servers = wait_until(lambda: servers_of(process.pid), lambda: end_of_log(folder), pause=0.01, process=process)
    os.kill(servers[0], signal.SIGKILL)
    stdout, _ = process.communicate(timeout=PATIENCE)
    last = STAGE_EVENT.validate_json(stdout.splitlines()[-1])
    assert isinstance(last, Failed)
    assert (last.code, last.retryable) == ("engine_failed", True)
    assert "status -9" in last.detail


def test_a_generation_option_that_vllm_does_not_take_is_refused_before_the_first_question(things: HandPipeline) -> None:
    folder = prepared(things, "refused", tasks=["sums", "beams"], **BY_VLLM)
    last = ended(folder)
    assert isinstance(last, Failed), last
    assert (last.code, last.retryable) == ("bad_benchmark_task", False)
    assert "task beams asks for the generation option num_beams" in last.detail
    assert not kept_answers(folder)


def test_without_vllm_the_run_fails_and_names_the_way_out(things: HandPipeline) -> None:
    folder = prepared(things, "without", tasks=["sums"], **BY_VLLM)
    spec = json.loads((folder / STAGE_FILE).read_text())
    (folder / STAGE_FILE).write_text(json.dumps({**spec, "vllm": None}))
    last = ended(folder)
    assert isinstance(last, Failed)
    assert (last.code, "make setup-vllm" in str(last.hint)) == ("engine_missing", True)
