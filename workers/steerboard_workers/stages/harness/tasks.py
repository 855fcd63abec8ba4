"""Tasks of the harness, or of your own folder: all loaded before the first question, or refused."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import evaluate
from lm_eval.tasks import TaskManager

from steerboard_contracts.errors import BadInput, SteerboardError
from steerboard_contracts.files.local_folders import FolderNotAllowed, LocalFolders
from steerboard_contracts.run_kinds.academic import AcademicConfig
from steerboard_workers.stages.harness import sandbox

# Which the command line of the harness has by default.
SEED = 1234
# Functions of the harness that evaluate a model's text although their tasks do not declare it (`unsafe_code`), by the
# module that they are in: whether the text is code or an answer, Python runs it. Of version 0.4.13 these are all. Tasks
# that parse LaTeX (`minerva_math`, `leaderboard_math`, `putnam_axiom`) evaluate nothing but digits and operators.
_EVALUATING = {"lm_eval.tasks.score.math.": "reads the model's answers by sympy's parse_expr, which evaluates them"}
_HUB = (
    "Give the worker access to the Hugging Face hub (HF_TOKEN for datasets that ask for one), or fill its cache on a "
    "machine that has it and set HF_HOME and HF_HUB_OFFLINE=1."
)


class DatasetUnavailable(SteerboardError):
    """The data of a task is neither on this machine nor could it be fetched."""

    code = "benchmark_data_unavailable"
    title = "The data of a benchmark cannot be fetched"


@dataclass(frozen=True)
class Loaded:
    """One name of the config, as the harness's `evaluate` takes it: its tasks by name, and its groups."""

    name: str
    tasks: dict[str, Any]
    groups: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {"tasks": self.tasks, "groups": self.groups, "group_map": {}}


def folder_of(config: AcademicConfig, allowed: LocalFolders) -> Path | None:
    """The real path of the folder of tasks. Raises `FolderNotAllowed`."""
    if config.folder is None:
        return None
    try:
        with allowed.open(config.folder) as folder:
            return Path(folder.path)
    except FolderNotAllowed:
        raise FolderNotAllowed(
            f"there is no folder {config.folder[:200]!r} below those whose tasks may be run here",
            hint="The operator allows folders of tasks with STEERBOARD_TASK_ROOTS, on every worker.",
        ) from None


def load(config: AcademicConfig, folder: Path | None) -> Iterator[Loaded]:
    """Raises `BadInput` for a task that is not known or cannot be used, `DatasetUnavailable`, `SandboxUnavailable`."""
    _replace_code_eval()
    manager = TaskManager(include_path=[str(folder)] if folder else None, include_defaults=folder is None)
    if folder is not None and not set(config.tasks) <= set(manager.all_tasks):
        manager = TaskManager(include_path=[str(folder)])  # thousands of files, which takes a while
    for name in config.tasks:
        if name not in manager.task_index:
            near = difflib.get_close_matches(name, manager.all_tasks, 3)
            raise BadInput(
                f"there is no task {name!r}" + (f"; did you mean {' or '.join(near)}?" if near else ""),
                code="unknown_benchmark_task",
                hint="`lm_eval ls tasks` lists those of lm-evaluation-harness; your own are in `folder`.",
            )
        loaded = _loaded(manager, name)
        for task in loaded.tasks.values():
            _set_shots(task, config.shots_of(name))
            _check_code(task)
        yield loaded


def _loaded(manager: Any, name: str) -> Loaded:
    try:
        loaded = manager.load([name])
    except SteerboardError:
        raise
    except (OSError, ConnectionError) as error:
        why = f"{type(error).__name__}: {str(error)[:300]}"
        raise DatasetUnavailable(
            f"the {_data_of(manager, name)} of task {name} could not be fetched: {why}",
            hint=_HUB,
        ) from error
    except Exception as error:
        raise BadInput(
            f"task {name} cannot be loaded: {type(error).__name__}: {str(error)[:500]}",
            code="bad_benchmark_task",
            hint="The run's log has the traceback. A task may need a package that this environment does not have.",
        ) from error
    return Loaded(name, dict(loaded["tasks"]), dict(loaded.get("groups") or {}))


def _data_of(manager: Any, name: str) -> str:
    config = manager.task_index[name].cfg or {}
    parts = [str(config[key]) for key in ("dataset_path", "dataset_name") if config.get(key)]
    return " ".join(["dataset", *parts]) if parts else "data"


def _set_shots(task: Any, shots: int | None) -> None:
    """Sets the shots as the harness does: a task keeps a 0 of its own file."""
    own = task.get_config("num_fewshot")
    if shots is not None and own != 0:
        task.set_config(key="num_fewshot", value=shots)
    elif own is None:
        task.set_config(key="num_fewshot", value=0)
    task.set_fewshot_seed(seed=SEED)


def _check_code(task: Any) -> None:
    """A task that runs code has to run it by the metric that was replaced."""
    metrics = getattr(task, "_metric_fn_list", {})  # a task that is a class of its own may have none
    # The harness keeps a function that is a metric as its `__call__`.
    functions = [
        getattr(function, "__self__", function) for function in (*metrics.values(), task.config.process_results)
    ]
    modules = {str(getattr(function, "__module__", "")) for function in (*functions, *task.aggregation().values())}
    for evaluating, how in _EVALUATING.items():
        if any(module.startswith(evaluating) for module in modules):
            raise _unconfined(task, how)
    if not getattr(task, "UNSAFE_CODE", False):
        return
    sandbox.require()
    around = [getattr(function, "__globals__", {}).values() for function in functions]
    if not any(isinstance(value, sandbox.CodeEval) for values in around for value in values):
        raise _unconfined(task, "runs the model's code in its own way")


def _unconfined(task: Any, how: str) -> BadInput:
    return BadInput(
        f"task {task.config.task} {how}, which cannot be sandboxed",
        code="unconfined_code",
        hint="Only tasks that score by the metric code_eval, such as humaneval and mbpp, run in the sandbox.",
    )


def _replace_code_eval() -> None:
    original = evaluate.load
    if getattr(original, "confines_code", False):
        return

    def load_metric(path: str, *args: Any, **options: Any) -> Any:
        return sandbox.CodeEval() if path == "code_eval" else original(path, *args, **options)

    load_metric.confines_code = True  # type: ignore[attr-defined]
    evaluate.load = load_metric
