"""A model answers academic benchmarks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from steerboard_contracts.engine import WithEngine
from steerboard_contracts.fields import Count, Precision
from steerboard_contracts.models import POLICIES
from steerboard_contracts.pinned_endpoint import AsksEndpoint
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import models
from steerboard_contracts.specs.work import unknown

HARNESS = "0.4.13"
"""The version of lm-evaluation-harness (distribution `lm-eval`) that runs and figures are of."""

SUITE = {"gsm8k": 8, "mmlu": 5, "humaneval": 0, "truthfulqa_mc2": 0, "arc_challenge": 25, "mbpp": 0}
"""Tasks with their shots, of the RLHF Workflow (arXiv 2405.07863, Section 5.1)."""

_BY_LOG_PROBS = frozenset({"mmlu", "truthfulqa_mc2", "arc_challenge"})
"""The tasks of these that compare log-probs of given answers, which an endpoint does not provide."""

TaskName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")]
MOST_TASKS = 100


class AcademicConfig(WithEngine, AsksEndpoint):
    """Tasks that test a model's knowledge and skill, such as GSM8K and MMLU, by lm-evaluation-harness in a process of
    its own. Code that a model writes runs in a sandbox, or the task is refused."""

    run: Annotated[Literal["academic"], Field(description="The kind of run.")] = "academic"
    tasks: Annotated[
        list[TaskName],
        Field(
            default=list(SUITE),
            min_length=1,
            max_length=MOST_TASKS,
            description="Tasks or groups by their names in lm-evaluation-harness, or in `folder`.",
        ),
    ]
    shots: Annotated[
        dict[TaskName, Annotated[int, Field(ge=0, le=256)]],
        Field(
            default={},
            description="Examples before each question, by task. By default those of the suite (gsm8k 8, mmlu 5, "
            "arc_challenge 25, the others 0), else the task's own.",
        ),
    ]
    folder: Annotated[
        str | None,
        Field(
            max_length=4096,
            description="Folder of your own tasks as YAML, on every worker, below one that the operator allows "
            "(STEERBOARD_TASK_ROOTS). Their Python code is run.",
        ),
    ] = None
    limit: Annotated[Count | None, Field(description="Use only this many first items of each task, for a trial.")] = (
        None
    )
    chat_template: Annotated[
        bool, Field(description="Use the model's chat template, with the examples as earlier turns.")
    ] = False
    endpoint: Annotated[
        str | None,
        Field(
            description="Endpoint of the project, asked as a chat instead of a model, for tasks whose answers are "
            "written."
        ),
    ] = None
    batch_size: Annotated[
        Count, Field(description="Requests computed together, or in flight at an endpoint (32 at most).")
    ] = 8
    precision: Annotated[Precision, Field(description="`auto`: bf16 on a GPU, fp32 on a CPU.")] = "auto"

    @model_validator(mode="after")
    def _fits(self) -> AcademicConfig:
        if len(set(self.tasks)) < len(self.tasks):
            raise ValueError("a task is named twice")
        unknown = sorted(set(self.shots) - set(self.tasks))
        if unknown:
            raise ValueError(f"`shots` names {unknown[0]}, which is not one of the tasks")
        if self.endpoint is not None and self.folder is None:
            compared = [task for task in self.tasks if task in _BY_LOG_PROBS]
            if compared:
                raise ValueError(
                    f"`tasks`: {', '.join(compared)} compare log-probs of given answers, which an endpoint does not "
                    "give; name tasks whose answers are written, such as gsm8k, humaneval and mbpp"
                )
        return self

    @property
    def asked_by_template(self) -> bool:
        """Whether the questions go through a chat template: the model's own, or that of the endpoint's server."""
        return self.chat_template or self.endpoint is not None

    def shots_of(self, task: str) -> int | None:
        """The number of shots of a task; None for the task's own."""
        return self.shots.get(task, SUITE.get(task) if self.folder is None else None)


SPEC = RunKindSpec(
    run="academic",
    title="Academic benchmarks",
    about="GSM8K, MMLU, HumanEval, TruthfulQA, ARC, MBPP, or any other task of lm-evaluation-harness.",
    config=AcademicConfig,
    slots={"model": models(*POLICIES)},
    form=("tasks", "shots", "limit", "chat_template", "engine"),
    for_model=dict.fromkeys(sorted(POLICIES), "Run academic benchmarks"),
    # How many items its tasks have is known where the harness is.
    work=unknown,
    asks_endpoint="named",
    # Tasks of a folder change under the same name.
    may_change=("endpoint", "folder"),
    resumes="rows",
)
