"""Which engine computes answers and rewards, and how vLLM does."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import Config, Positive
from steerboard_contracts.samples import Finite

EngineName = Literal["transformers", "vllm"]


class VllmOptions(Config):
    """How vLLM runs a model; only `engine: vllm` reads them. None of them is meant to change a result."""

    tensor_parallel: Annotated[
        int, Field(ge=1, le=64, description="GPUs over which the weights are spread; the worker must own them.")
    ] = 1
    memory_fraction: Annotated[
        Finite,
        Field(
            gt=0,
            le=1,
            description="Largest share of each GPU's memory for weights and cache; a model in training keeps its own. "
            "On a CPU nothing reads it.",
        ),
    ] = 0.9
    prefix_caching: Annotated[bool, Field(description="Compute a common beginning of prompts only once.")] = True
    max_model_len: Annotated[
        int | None, Field(ge=16, description="Tokens of prompt and answer together; the model's window by default.")
    ] = None
    eager: Annotated[
        bool, Field(description="Neither compile nor capture graphs: a quicker start, a slower engine.")
    ] = False
    load_seconds: Annotated[
        Positive, Field(description="An engine that has not started after this time has failed.")
    ] = 1800.0
    step_seconds: Annotated[Positive, Field(description="An engine without a step for this time has failed.")] = 300.0


class WithEngine(Config):
    engine: Annotated[
        EngineName, Field(description="What computes: `vllm` needs its own environment (`make setup-vllm`).")
    ] = "transformers"
    vllm: Annotated[VllmOptions, Field(description="Options of vLLM, if it is the engine.")] = VllmOptions()
