"""The config of training runs: what all methods share. What each adds is in `methods`."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.conditions.score_words import Writing
from steerboard_contracts.fields import Config, Count, LearningRate, NonNegative, Positive, Precision
from steerboard_contracts.lora import LoraConfig
from steerboard_contracts.prompts import TemplateName
from steerboard_contracts.samples import Finite
from steerboard_contracts.watching.health import HealthRules
from steerboard_contracts.watching.probing import ProbeConfig

Strategy = Literal["ddp", "zero2", "zero3"]

# Where a default comes from; launch forms show it next to the field.
PAPER = {"source": "arXiv 2308.12050, Hyperparameters"}


class TrainingConfig(Config):
    """What all methods share. Lengths are in tokens."""

    run: Annotated[Literal["train"], Field(description="The kind of run.")] = "train"
    method: Annotated[str, Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra=PAPER)] = 5e-6
    batch: Annotated[
        Count,
        Field(
            description="Sequences (pairs for a reward model) in one optimiser step.",
            json_schema_extra=PAPER,
        ),
    ] = 128
    epochs: Annotated[Positive, Field(description="Passes over the training rows; may be a fraction.")] = 1.0
    max_steps: Annotated[Count | None, Field(description="Stop after this many optimiser steps.")] = None
    warmup_ratio: Annotated[
        Finite,
        Field(
            ge=0,
            le=1,
            description="Share of the steps in which the learning rate rises to its peak.",
            json_schema_extra={"source": "RLHF Workflow, its reward and preference models: cosine, warm-up 0.03"},
        ),
    ] = 0.03
    min_lr_ratio: Annotated[
        Finite, Field(ge=0, le=1, description="Learning rate at the end of the cosine, as a share of the peak.")
    ] = 0.0
    weight_decay: Annotated[
        NonNegative, Field(description="Decay of the weights by AdamW; norms and biases are not decayed.")
    ] = 0.0
    adam_beta1: Annotated[Finite, Field(ge=0, lt=1, description="Decay of the gradient's mean in AdamW.")] = 0.9
    adam_beta2: Annotated[Finite, Field(ge=0, lt=1, description="Decay of the squared gradient's mean in AdamW.")] = (
        0.95
    )
    max_grad_norm: Annotated[Positive, Field(description="Longer gradients are clipped to this norm.")] = 1.0
    max_length: Annotated[
        Count | None, Field(description="Maximum tokens of a sequence; the model's own by default.")
    ] = None
    too_long: Annotated[
        Literal["truncate", "drop", "refuse"],
        Field(
            description="What happens to rows of more tokens. truncate: the prompt loses its beginning, a response its "
            "end where it takes more than half of the tokens; drop: they are left out; refuse: the run fails before "
            "its first step."
        ),
    ] = "truncate"
    micro_tokens: Annotated[Count, Field(description="Token budget of one forward pass, padding included.")] = 2048
    micro_batch: Annotated[Count | None, Field(description="At most this many sequences in one forward pass.")] = None
    batching: Annotated[
        Literal["auto", "padded", "packed", "padding_free"],
        Field(description="How sequences share a forward pass; `auto` takes what the model and the device allow."),
    ] = "auto"
    precision: Annotated[
        Precision,
        Field(
            description="`auto`: bf16 on a GPU, fp32 on a CPU; `fast`: bf16 wherever the device multiplies in it "
            "natively."
        ),
    ] = "auto"
    gradient_checkpointing: Annotated[
        bool, Field(description="Compute activations again in the backward pass: slower, with less memory.")
    ] = False
    strategy: Annotated[
        Strategy,
        Field(
            description="How the devices of a worker share a run: replicas of the model (ddp), or with DeepSpeed also "
            "its gradients and optimiser states (zero2) or the weights too (zero3) spread over them."
        ),
    ] = "ddp"
    offload: Annotated[
        Literal["none", "optimiser", "all"],
        Field(description="With zero2 or zero3: keep the optimiser, with zero3 also the weights, in host memory."),
    ] = "none"
    lora: Annotated[
        LoraConfig | None,
        Field(description="Low-rank adapters (and a reward model's head) are learned, instead of all weights."),
    ] = None
    router_aux_loss: Annotated[
        NonNegative | None,
        Field(
            description="Coefficient of the load-balancing loss of a mixture of experts, which is added to the loss. "
            "By default that of the model's config; 0 turns it off.",
            json_schema_extra={"source": "the loss: arXiv 2101.03961, Eq. 4; the default: router_aux_loss_coef of TRL"},
        ),
    ] = None
    router_balance: Annotated[
        Literal["batch", "pass"],
        Field(
            description="Tokens that the experts' loads are counted over: those of the whole optimiser step, which "
            "takes another forward pass where it is cut into several, or those of each forward pass.",
            json_schema_extra={"source": "arXiv 2501.11873"},
        ),
    ] = "batch"
    expert_kernels: Annotated[
        Literal["grouped", "plain"],
        Field(
            description="grouped: the experts of a layer are one product where the device has such a kernel. plain: "
            "one expert after the other, as is done elsewhere."
        ),
    ] = "grouped"
    freeze_router: Annotated[
        bool, Field(description="Leave the routers of a mixture of experts as they are, and its balance alone.")
    ] = False
    learn: Annotated[Literal["last", "all"], Field(description="Which assistant turns are learned.")] = "last"
    template: Annotated[
        TemplateName | None, Field(description="How a conversation becomes text; the model's own by default.")
    ] = None
    seed: Annotated[int, Field(description="Seed of the order of the samples and all other randomness.")] = 0
    deterministic: Annotated[
        bool,
        Field(
            description="Use only kernels that give the same result in every run on the same GPU, which are slower. "
            "On a CPU all are."
        ),
    ] = False
    evaluate_every: Annotated[
        Annotated[int, Field(ge=0)] | None,
        Field(
            description="Optimiser steps; 0 evaluates only at the end. By default ten times in a run, or as often as "
            "costs a tenth of its time, in short runs 30%; methods that sample answers do so only at the end."
        ),
    ] = None
    keep: Annotated[
        Literal["last", "best"],
        Field(
            description="Which weights are saved: the last ones, or those of the evaluation with the lowest held-out "
            "loss."
        ),
    ] = "last"
    evaluate_rows: Annotated[Count, Field(description="At most this many held-out rows, drawn once.")] = 512
    checkpoint_every: Annotated[int, Field(ge=0, description="Optimiser steps; 0 turns it off.")] = 200
    checkpoint_seconds: Annotated[NonNegative, Field(description="Also after this many seconds; 0 turns it off.")] = (
        300.0
    )
    probe: Annotated[
        ProbeConfig | None,
        Field(description="Answer a few prompts before training and at every evaluation, to be read step by step."),
    ] = None

    health: HealthRules = Field(default=[])

    def input_fault(self, given: Collection[str]) -> str | None:
        """What the inputs of the names `given` lack, beyond what each slot asks for itself."""
        return None

    def kind_fault(self, kind: str) -> str | None:
        """Why rows of a kind that the method takes do not do with these settings, and what to do."""
        return None

    def most_steps(self, rows: int) -> int:
        """Optimiser steps of all epochs, where none of so many training rows is left out."""
        return math.ceil(rows * self.epochs / self.batch)

    def steps_fault(self, rows: int) -> str | None:
        """Why so many training rows cannot give the steps that are asked for, where that fails a run."""
        return None

    def room_fault(self, window: int) -> str | None:
        """Why answers find no room, where the model to train has so many tokens for prompt and answer together."""
        return None

    def for_start(self, template: TemplateName, form: ConditionFormat | None) -> Self:
        """The config with what depends on the model to train: its template, and how it is asked already. Raises
        `BadInput` (`bad_config`) where that does not fit the other fields."""
        return self

    @property
    def keeps_full_rate(self) -> bool:
        """Whether adapters are trained at the method's default rate, which is one for all weights."""
        return self.lora is not None and self.lr == type(self).model_fields["lr"].default

    @property
    def score_tokens(self) -> Writing | None:
        """How the model to train is asked, where that takes tokens which it gets at the start of training."""
        return None

    @model_validator(mode="after")
    def _ways_fit(self) -> TrainingConfig:
        if self.offload != "none" and self.strategy == "ddp":
            raise ValueError("offload needs strategy zero2 or zero3")
        if self.lora is not None and self.lora.quantise != "none" and self.strategy != "ddp":
            raise ValueError("a quantised base needs strategy ddp: DeepSpeed cannot spread its 4-bit weights")
        if self.lora is not None and self.lora.targets == "experts" and self.strategy == "zero3":
            raise ValueError("lora.targets experts needs strategy ddp or zero2: zero3 spreads what peft adds them to")
        if self.freeze_router and self.router_aux_loss:
            raise ValueError("freeze_router leaves the routers nothing to learn from router_aux_loss: leave one out")
        if self.offload == "all" and self.strategy != "zero3":
            raise ValueError("offload of all needs strategy zero3; zero2 can offload the optimiser")
        if self.probe is not None and self.strategy == "zero3":
            raise ValueError("probe needs strategy ddp or zero2: zero3 would gather all weights for every token")
        if self.keep == "best" and self.evaluate_every == 0:
            raise ValueError(
                "keep best chooses among evaluations, and evaluate_every 0 makes one at the end only: raise it, or "
                "leave it out"
            )
        return self
