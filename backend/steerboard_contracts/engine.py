"""Which engine computes answers and rewards, and how vLLM does."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import Config, Positive
from steerboard_contracts.samples import Finite

EngineName = Literal["transformers", "vllm"]


class VllmOptions(Config):
    """How vLLM runs a model; only `engine: vllm` reads them. None is meant to change a result, except `quantisation`
    and `kv_cache`, which round."""

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
    speculative_tokens: Annotated[
        int | None,
        Field(
            ge=1,
            le=32,
            description="Guess so many tokens ahead by repetitions of earlier text, and check them in one pass; null "
            "guesses none. Needs a GPU.",
            json_schema_extra={"source": "prompt lookup: arXiv 2304.04487; the check keeps probabilities: 2211.17192"},
        ),
    ] = None
    quantisation: Annotated[
        Literal["none", "fp8_per_tensor", "fp8_per_block"],
        Field(description="Round weights to FP8 while they are loaded, and activations as they come; needs a GPU."),
    ] = "none"
    kv_cache: Annotated[
        Literal["auto", "fp8"], Field(description="Keep the cache of earlier tokens in FP8; needs a GPU.")
    ] = "auto"
    load_seconds: Annotated[
        Positive, Field(description="An engine that has not started after this time has failed.")
    ] = 1800.0
    step_seconds: Annotated[Positive, Field(description="An engine without a step for this time has failed.")] = 300.0

    @property
    def rounds(self) -> bool:
        """Whether it samples from other probabilities than the model has in its own precision."""
        return self.quantisation != "none" or self.kv_cache != "auto"


class WithEngine(Config):
    engine: Annotated[
        EngineName, Field(description="What computes: `vllm` needs its own environment (`make setup-vllm`).")
    ] = "transformers"
    vllm: Annotated[VllmOptions, Field(description="Options of vLLM, if it is the engine.")] = VllmOptions()
