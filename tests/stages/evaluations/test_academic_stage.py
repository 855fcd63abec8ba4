"""Tasks of lm-evaluation-harness as a stage: figures that are known, and equal to its own command line's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hand_pipeline import HandPipeline

from steerboard.platform.processes import lm_eval
from steerboard_contracts.report.academic import AcademicResult, AcademicTask
from steerboard_contracts.stage.events import STAGE_EVENT, Failed, StageEvent, Succeeded
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.stage.spec import STAGE_FILE
from support.models.lm_eval_environment import (
    CHOICES,
    CODE,
    FLEXIBLE,
    ITEMS,
    PYTHON,
    STRICT,
    needs_lm_eval,
    write_lookup_model,
    write_tasks,
)
from support.patience import PATIENCE, wait_until

pytestmark = [needs_lm_eval, pytest.mark.long]
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> HandPipeline:
    folder = tmp_path_factory.mktemp("things")
    pipeline = HandPipeline(folder)
    write_tasks(folder / "tasks")
    path = write_lookup_model(folder / "lookup")
    pipeline.things["lookup"] = ModelInput(name="lookup", path=str(path), content_hash="lookup")
    return pipeline


def prepared(things: HandPipeline, name: str, **config: Any) -> Path:
    """A stage over the folder of tasks, which the operator allows."""
    tasks = str(things.directory / "tasks")
    folder = things.prepare(name, {"run": "academic", "folder": tasks, **config}, {"model": "lookup"})
    spec = json.loads((folder / STAGE_FILE).read_text())
    (folder / STAGE_FILE).write_text(json.dumps({**spec, "folders": {"roots": [tasks], "never": []}}))
    return folder


def start(folder: Path) -> subprocess.Popen[str]:
    assert PYTHON is not None
    return subprocess.Popen(
        [PYTHON, "-m", "steerboard_workers.stages", folder],
        env={**os.environ, **lm_eval.variables(folder), **OFFLINE, "HF_HOME": str(folder.parent / "hf")},
        stdout=subprocess.PIPE,
        stderr=(folder / "log").open("w"),
        text=True,
    )


def carried_out(folder: Path) -> list[StageEvent]:
    stdout, _ = start(folder).communicate(timeout=PATIENCE)
    assert stdout, (folder / "log").read_text()[-3000:]
    return [STAGE_EVENT.validate_json(line) for line in stdout.splitlines()]


def finished(folder: Path) -> dict[str, AcademicTask]:
    last = carried_out(folder)[-1]
    assert isinstance(last, Succeeded), (last, (folder / "log").read_text()[-3000:])
    result = AcademicResult.model_validate_json((folder / last.outputs[0].path).read_bytes())
    assert result.harness == "0.4.13"
    return {task.task: task for task in result.tasks}


def kept_rows(folder: Path) -> list[dict[str, Any]]:
    files = sorted((folder / "checkpoints").glob("a*-rows.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines() if line.endswith("}")]


def test_a_model_of_known_answers_has_its_known_figures(things: HandPipeline) -> None:
    tasks = finished(prepared(things, "known", tasks=["sums", "choices"], shots={"sums": 2}))
    sums, choices = tasks["sums"], tasks["choices"]
    assert [(figure.name, figure.value) for figure in sums.figures] == [("strict", STRICT), ("flexible", FLEXIBLE)]
    assert (sums.version, sums.shots, sums.template, sums.items, sums.of) == ("2.5", 2, False, ITEMS, ITEMS)
    assert [sum(figure.scores) / len(figure.scores) for figure in sums.figures] == [STRICT, FLEXIBLE]
    strict = sums.figures[0]
    assert strict.scores == [int(n % 5 < 3) for n in range(ITEMS)]
    assert strict.stderr == pytest.approx((STRICT * (1 - STRICT) / (ITEMS - 1)) ** 0.5)
    assert strict.interval is not None
    assert strict.interval.n == ITEMS
    assert [(figure.name, figure.value) for figure in choices.figures] == [("acc", CHOICES)]
    assert choices.shots == 0


def test_it_finds_what_the_harness_finds_on_its_command_line(things: HandPipeline, tmp_path: Path) -> None:
    folder = prepared(things, "ours", tasks=["sums", "choices"], shots={"sums": 3, "choices": 3}, batch_size=4)
    ours = finished(folder)
    tasks, model = things.directory / "tasks", things.things["lookup"].path
    arguments = {
        "--model": "hf",
        "--model_args": f"pretrained={model}",
        "--tasks": "sums,choices",
        "--include_path": str(tasks),
        "--num_fewshot": "3",
        "--batch_size": "4",
        "--device": "cpu",
        "--output_path": str(tmp_path / "theirs"),
    }
    command = [str(PYTHON), "-m", "lm_eval", "run", *(word for pair in arguments.items() for word in pair)]
    environment = {**os.environ, **OFFLINE, "HF_HOME": str(folder.parent / "hf")}
    done = subprocess.run(
        [*command, "--log_samples"], cwd=tasks, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = (tmp_path / "theirs").rglob("results_*.json")
    theirs = json.loads(path.read_text())
    for name, task in ours.items():
        row = theirs["results"][name]
        assert (task.shots, float(task.version or 0)) == (theirs["n-shot"][name], theirs["versions"][name])
        figures = {f"{figure.metric},{figure.filter}": figure for figure in task.figures}
        named = {key for key in row if "," in key and "_stderr" not in key}
        assert named == set(figures)
        for key, figure in figures.items():
            metric, filter_ = key.split(",")
            assert (figure.value, figure.stderr) == (row[key], row[f"{metric}_stderr,{filter_}"])
            (samples,) = (tmp_path / "theirs").rglob(f"samples_{name}_*.jsonl")
            lines = [json.loads(line) for line in samples.read_text().splitlines()]
            mine = sorted((line for line in lines if line["filter"] == filter_), key=lambda line: line["doc_id"])
            assert figure.scores == [line[metric] for line in mine]


def test_what_was_answered_before_a_kill_is_not_asked_again(things: HandPipeline) -> None:
    folder = prepared(things, "killed", tasks=["sums", "choices"], batch_size=1)
    process = start(folder)
    log = folder / "log"
    wait_until(lambda: len(kept_rows(folder)) >= 20, lambda: log.read_text()[-3000:], pause=0.002, process=process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    before = len(kept_rows(folder))
    # One request a question, two a choice.
    assert 20 <= before < 3 * ITEMS
    last = carried_out(folder)[-1]
    assert isinstance(last, Succeeded), last
    assert last.summary["resumed_rows"] == before
    rows = kept_rows(folder)
    assert len(rows) == 3 * ITEMS == len({(row["key"], row["n"]) for row in rows})
    assert (last.summary["sums.strict"], last.summary["choices.acc"]) == (STRICT, CHOICES)


def test_a_models_code_is_run_in_the_sandbox_and_nowhere_else(things: HandPipeline) -> None:
    tasks = finished(prepared(things, "code", tasks=["code"]))
    assert [(figure.name, figure.value) for figure in tasks["code"].figures] == [("passes", CODE)]
    last = carried_out(prepared(things, "unconfined", tasks=["unconfined"]))[-1]
    assert isinstance(last, Failed)
    assert last.code == "unconfined_code"


def test_a_task_of_the_harness_that_evaluates_answers_is_refused(things: HandPipeline) -> None:
    tasks = things.directory / "tasks"
    robust = (tasks / "sums.yaml").read_text().replace("task: sums", "task: robust")
    scoring = "process_results: !function lm_eval.tasks.score.math.utils_math.process_results"
    (tasks / "robust.yaml").write_text(f"{robust}\n{scoring}\n")
    folder = prepared(things, "robust", tasks=["robust"])
    last = carried_out(folder)[-1]
    assert isinstance(last, Failed), last
    assert (last.code, kept_rows(folder)) == ("unconfined_code", [])
    assert "task robust reads the model's answers by sympy's parse_expr" in last.detail


def test_a_group_has_the_items_of_all_its_tasks(things: HandPipeline) -> None:
    (both,) = finished(prepared(things, "group", tasks=["both"])).values()
    (figure,) = both.figures
    assert (both.task, both.parts, both.items, both.of, both.version) == ("both", 2, ITEMS + 20, ITEMS + 20, "3")
    assert (figure.name, figure.value) == ("acc", pytest.approx((45 + 15) / (ITEMS + 20)))
    assert figure.scores == [int(n % 4 > 0) for n in (*range(ITEMS), *range(20))]
    assert figure.stderr is not None


def test_by_its_chat_template_a_model_is_asked_in_another_way_and_that_is_kept(things: HandPipeline) -> None:
    task = finished(prepared(things, "template", tasks=["sums"], chat_template=True, limit=8))["sums"]
    # The table knows nothing that follows the template's last word.
    assert (task.template, task.items, task.of) == (True, 8, ITEMS)
    assert [figure.value for figure in task.figures] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("config", "code", "words"),
    [
        ({"tasks": ["sumss"]}, "unknown_benchmark_task", "did you mean sums"),
        ({"tasks": ["sums", "far"]}, "benchmark_data_unavailable", "steerboard-tests/nowhere"),
        ({"tasks": ["sums"], "folder": "/etc"}, "folder_not_allowed", "/etc"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_the_first_question(
    things: HandPipeline, config: dict[str, Any], code: str, words: str
) -> None:
    folder = prepared(things, code, **config)
    last = carried_out(folder)[-1]
    assert isinstance(last, Failed), last
    assert (last.code, last.retryable) == (code, False), last
    assert words in last.detail
    assert not kept_rows(folder)
