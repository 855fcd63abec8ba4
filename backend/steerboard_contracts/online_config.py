"""The config of methods that learn from the model's own answers."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field, model_validator

from steerboard_contracts.engine import EngineName, VllmOptions
from steerboard_contracts.fields import Count, Positive
from steerboard_contracts.placement import Placement
from steerboard_contracts.samples import Finite
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.health import ONLINE_RULES, HealthRules
from steerboard_contracts.wording import counted


class OnlineConfig(TrainingConfig):
    """The config of methods that learn from answers that are sampled from the weights in training."""

    batch: Annotated[Count, Field(description="Prompts in one step.")] = 128
    max_steps: Annotated[
        Count | None,
        Field(description="Stop after this many optimiser steps. A launch is refused where its epochs have fewer."),
    ] = None
    max_skipped: Annotated[
        Finite,
        Field(
            ge=0,
            le=1,
            description="Steps in which all answers to a prompt are worth the same may leave the model as it is; a "
            "larger share of the run's steps fails it.",
        ),
    ] = 0.0
    answers: Annotated[int, Field(ge=1, le=256, description="Answers sampled per prompt.")] = 1
    temperature: Annotated[Positive, Field(description="Temperature of the sampling; all tokens may be drawn.")] = 1.0
    max_new_tokens: Annotated[
        Count | None, Field(description="Tokens of an answer; by default 256, or half of a smaller model's window.")
    ] = None
    health: HealthRules = Field(default=ONLINE_RULES)
    sample_batch: Annotated[Count, Field(description="Answers that a process samples at the same time.")] = 64
    engine: Annotated[
        EngineName,
        Field(
            description="Engine that samples: the model in training itself, or `vllm` in a separate process, which "
            "gets the "
            "current weights before each sampling."
        ),
    ] = "transformers"
    vllm: Annotated[VllmOptions, Field(description="Options of vLLM, if it is the engine.")] = VllmOptions()
    staleness: Annotated[
        int,
        Field(
            ge=0,
            le=8,
            description="1: vLLM, or rollout engines apart, sample the next answers while the policy learns the last "
            "ones, so what it learns is of the policy one sampling ago. More: so many samplings are begun ahead, which "
            "evens out how long each takes, and what is learned is of the policy that many samplings ago. 0: it waits.",
        ),
    ] = 0
    placement: Annotated[
        Placement,
        Field(description="Which roles have devices of their own, by Ray; `colocated`: none has."),
    ] = Placement()

    @model_validator(mode="after")
    def _can_sample(self) -> OnlineConfig:
        if self.keep == "best":
            raise ValueError(
                "keep best chooses by the held-out loss, and a method that learns from its own answers has none to "
                "choose by: their reward and KL say how good it is. Leave it out"
            )
        if self.strategy == "zero3" and not self.samples_apart:
            raise ValueError(
                "strategy zero3 would gather all weights for every sampled token: sampling in training needs engine "
                "vllm, engines apart (placement.rollout), or ddp or zero2, with offload optimiser or lora where memory "
                "is short"
            )
        if self.strategy == "zero3" and self.lora is not None:
            raise ValueError(
                "lora with strategy zero3 cannot be merged for an engine: use zero2, or train without lora"
            )
        if self.staleness and not self.samples_apart:
            raise ValueError(
                "staleness needs engine vllm or placement.rollout: the model in training cannot sample while it learns"
            )
        if self.samples_apart and self.lora is not None and self.lora.quantise != "none":
            raise ValueError(
                f"lora.quantise {self.lora.quantise} leaves no whole weights to give to another process: sample by the "
                "model in training (engine transformers, placement.rollout 0), or use lora without quantise"
            )
        if self.engine == "vllm" and self.vllm.quantisation != "none":
            raise ValueError(
                f"vllm.quantisation {self.vllm.quantisation} would round weights once, and a run that trains them "
                "replaces them before each sampling: leave it out; kv_cache fp8 is possible"
            )
        if self.max_length is not None and (self.max_new_tokens or 0) >= self.max_length:
            raise ValueError(
                f"max_new_tokens {self.max_new_tokens} leaves no room for a prompt within max_length {self.max_length}"
            )
        return self

    def most_steps(self, rows: int) -> int:
        return super().most_steps(rows) * self._steps_of_a_sampling

    def steps_fault(self, rows: int) -> str | None:
        most = self.most_steps(rows)
        if self.max_steps is None or self.max_steps <= most:
            return None
        samplings = math.ceil(self.max_steps / self._steps_of_a_sampling)
        enough = (samplings - 1) * self.batch // max(1, rows) + 1
        return (
            f"max_steps is {self.max_steps:,}, and {counted(self.epochs, 'epoch')} of {counted(rows, 'training row')} "
            f"with batch {self.batch} {'has' if self.epochs == 1 else 'have'} {counted(most, 'step')} at most: raise "
            f"epochs to {enough}, or lower max_steps"
        )

    @property
    def _steps_of_a_sampling(self) -> int:
        return int(getattr(self, "updates", 1) * getattr(self, "minibatches", 1))

    def room_fault(self, window: int) -> str | None:
        if self.max_length is not None or (self.max_new_tokens or 0) < window:
            return None
        return (
            f"max_new_tokens {self.max_new_tokens} leaves no room for a prompt: the model has {window} tokens for "
            f"both; ask for at most {window // 2}"
        )

    @property
    def rewards_outside(self) -> bool:
        """Whether its answers are rewarded by code of an operator's folder, or by a server."""
        return False

    @property
    def replays_routes(self) -> bool:
        """Whether the trained model sends tokens to the experts that the engine chose for them."""
        return False

    @property
    def samples_apart(self) -> bool:
        """Whether another process samples than one that trains."""
        return self.engine == "vllm" or self.placement.rollout > 0
