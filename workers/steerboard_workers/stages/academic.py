"""The academic stage: tasks of lm-evaluation-harness, in an environment that has it.

Departures from the harness's command line: every answer is kept as soon as it is there, all tasks are loaded before the
first question, the model's code runs in a sandbox, and vLLM has a process and an environment of its own. Figures are
its own.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import random
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lm_eval.evaluator import evaluate

from steerboard_contracts.errors import BadInput
from steerboard_contracts.report.academic import AcademicResult, AcademicTask
from steerboard_contracts.run_kinds.academic import AcademicConfig
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.outputs import AcademicOutput
from steerboard_workers.stages.harness.answers import KEY, RecordedAnswers
from steerboard_workers.stages.harness.asked_model import check_askable, open_model
from steerboard_workers.stages.harness.likeness import Prompts
from steerboard_workers.stages.harness.results import tasks_of
from steerboard_workers.stages.harness.tasks import SEED, Loaded, folder_of, load
from steerboard_workers.stages.rows.resumable_rows import resumable_rows
from steerboard_workers.stages.runtime import Stage


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, AcademicConfig)
    stage.directory = stage.directory.resolve()
    folder = folder_of(config, stage.spec.folders)
    evaluated: list[AcademicTask] = []
    # The paths of data files in a task's YAML are relative to its folder.
    with ExitStack() as stack:
        stack.enter_context(contextlib.chdir(folder or Path.cwd()))
        kept = stack.enter_context(resumable_rows(stage, KEY))
        tasks = list(load(config, folder))
        check_askable(config, tasks)
        before = len(kept.rows)
        asking = ""
        answers = RecordedAnswers(
            kept, lambda done, total: stage.progress(done, total, "requests", asking), config.pinned_endpoint
        )
        model = stack.enter_context(open_model(stage, config, answers))
        prompts = Prompts(model)
        for loaded in tasks:
            asking = loaded.name
            with stage.phases.measure("generate"):
                results = _evaluated(config, model, loaded)
            evaluated += tasks_of(results, loaded, prompts, config.asked_by_template)
    result = AcademicResult(harness=importlib.metadata.version("lm_eval"), tasks=evaluated)
    with stage.output_file("academic.json") as path:
        path.write_text(result.model_dump_json(), encoding="utf-8")
    figures = {f"{task.task}.{figure.name}": figure.value for task in evaluated for figure in task.figures}
    return Succeeded(
        outputs=[AcademicOutput(path=stage.output_path("academic.json"))],
        summary={"items": sum(task.items for task in evaluated), "resumed_rows": before, **figures},
    )


def _evaluated(config: AcademicConfig, model: Any, loaded: Loaded) -> dict[str, Any]:
    """What the harness finds, from the seeds of its command line. Raises `BadInput` for what it refuses."""
    random.seed(0)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    try:
        results = evaluate(
            lm=model,
            task_dict=loaded.as_dict(),
            limit=config.limit,
            log_samples=True,
            apply_chat_template=config.asked_by_template,
            fewshot_as_multiturn=True,
            # Tasks that would run it elsewhere were refused.
            confirm_run_unsafe_code=True,
        )
    except (AssertionError, ValueError) as error:
        raise BadInput(
            f"task {loaded.name} cannot be run on this model: {str(error)[:500]}",
            code="bad_benchmark_task",
            hint="A model with a short window may need fewer shots. The run's log has the traceback.",
        ) from error
    assert results is not None
    return dict(results)
