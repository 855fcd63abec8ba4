"""What configs are made of."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from steerboard_contracts.samples import Finite

RunKind = Literal[
    "base",
    "train",
    "generate",
    "mix",
    "score",
    "grade",
    "combine",
    "select",
    "evaluate",
    "benchmark",
    "academic",
    "answer",
    "reward",
    "judge",
    "compare",
    "check_rows",
    "push",
    "gguf",
    "history",
]
# auto: bf16 on a GPU, fp32 on a CPU. fast: bf16 on a CPU, too, if it multiplies in it natively (AVX512-BF16, AMX).
Precision = Literal["auto", "fp32", "bf16", "fast"]


def planned_bf16(precision: Precision, on_gpu: bool) -> bool:
    """Whether to plan for bf16. What a CPU is able to do is not known before its worker runs, so `fast` is planned as
    fp32 there, which takes more memory."""
    return precision == "bf16" or (precision != "fp32" and on_gpu)


Positive = Annotated[Finite, Field(gt=0)]
# A slower judge would be asked less than once in 100 minutes, and hold its process all that time.
RequestsPerMinute = Annotated[Finite, Field(ge=0.01, le=1_000_000)]
NonNegative = Annotated[Finite, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
LearningRate = Annotated[Positive, Field(le=1, description="Learning rate at its peak.")]

# How work is cut up, kept, paid and spread over devices: fields that change no result by more than rounding, so that a
# run may continue with other values.
EXECUTION_FIELDS = frozenset(
    {
        *("micro_tokens", "micro_batch", "gradient_checkpointing", "strategy", "offload", "placement"),
        *("batch_size", "sample_batch", "batch_tokens", "checkpoint_every", "checkpoint_seconds"),
        *("inspect_pairs", "inspect_groups", "inspect_group_steps", "probe", "health"),
        "judge_budget",
    }
)


class Config(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
