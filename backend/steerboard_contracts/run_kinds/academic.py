"""A model answers academic benchmarks."""

from __future__ import annotations

from steerboard_contracts.configs.academic import AcademicConfig
from steerboard_contracts.models import POLICIES
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import models
from steerboard_contracts.specs.work import unknown

SPEC = RunKindSpec(
    run="academic",
    title="Academic benchmarks",
    about="GSM8K, MMLU, HumanEval, TruthfulQA, ARC, MBPP, or any other task of lm-evaluation-harness.",
    config=AcademicConfig,
    slots={"model": models(*POLICIES)},
    makes=None,
    makes_thing=None,
    form=("tasks", "shots", "limit", "chat_template", "engine"),
    for_model=dict.fromkeys(sorted(POLICIES), "Run academic benchmarks"),
    by_harness=True,
    reads_hub=True,
    reads_folders="tasks",
    decodes_at_once="batch_size",
    # How many items its tasks have is known where the harness is.
    work=unknown,
    asks_endpoint="named",
    # Tasks of a folder change under the same name.
    may_change=("endpoint", "folder"),
    stage="academic",
    resumes="rows",
    place=55,
)
