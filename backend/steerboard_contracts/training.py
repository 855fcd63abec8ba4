"""The config of training runs: what all methods share. What each adds is in `methods`."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.conditions.score_words import Writing
from steerboard_contracts.engine import EngineName, VllmOptions
from steerboard_contracts.fields import Config, Count, LearningRate, NonNegative, Positive, Precision
from steerboard_contracts.placement import Placement
from steerboard_contracts.prompts import TemplateName
from steerboard_contracts.samples import Finite
from steerboard_contracts.watching.health import ONLINE_RULES, HealthRules
from steerboard_contracts.watching.probing import ProbeConfig
from steerboard_contracts.wording import counted

Strategy = Literal["ddp", "zero2", "zero3"]

# Where a default comes from; launch forms show it next to the field.
PAPER = {"source": "arXiv 2308.12050, Hyperparameters"}


_GUIDE = {"source": "LoRA Without Regret (Thinking Machines Lab, 2025)"}


class LoraConfig(Config):
    """Low-rank adapters, arXiv 2106.09685: W + alpha / rank B A, of which A and B are learned."""

    rank: Annotated[
        int,
        Field(
            ge=1,
            le=1024,
            description="Columns of A and B; the more, the more it can learn. Online methods do with few, much data to "
            "imitate needs many.",
            json_schema_extra=_GUIDE,
        ),
    ] = 16
    alpha: Annotated[
        Positive,
        Field(
            description="The update is multiplied with alpha / rank, with rslora alpha / sqrt(rank).",
            json_schema_extra=_GUIDE,
        ),
    ] = 32.0
    rslora: Annotated[
        bool,
        Field(
            description="Rank-stabilised: alpha / sqrt(rank), so that the update of a high rank is not too small.",
            json_schema_extra={"source": "rsLoRA, arXiv 2312.03732"},
        ),
    ] = False
    dora: Annotated[
        bool,
        Field(
            description="Weight-decomposed: the norm of each row of the weights is learned apart from its direction. "
            "Slower than plain adapters.",
            json_schema_extra={"source": "DoRA, arXiv 2402.09353"},
        ),
    ] = False
    dropout: Annotated[
        Finite,
        Field(
            ge=0,
            lt=1,
            description="Dropout of what goes into the adapters. Like the model's own, it is off in methods that "
            "compare with a reference, and must be 0 where answers are sampled in training.",
        ),
    ] = 0.0
    targets: Annotated[
        Literal["linear", "attention", "experts"],
        Field(
            description="All linear layers, or those of the attention only, which learn less. experts: all linear "
            "layers and every expert of a mixture, whose adapters each have this rank.",
            json_schema_extra=_GUIDE,
        ),
    ] = "linear"
    quantise: Annotated[
        Literal["none", "nf4"],
        Field(
            description="nf4: hold the base's linear layers in 4 bits while it trains; what is saved is not quantised.",
            json_schema_extra={"source": "QLoRA, arXiv 2305.14314"},
        ),
    ] = "none"
    merge: Annotated[
        bool, Field(description="Save a whole model with the adapters folded in; otherwise adapters over their base.")
    ] = True

    @model_validator(mode="after")
    def _experts_can_be_adapted(self) -> LoraConfig:
        given = {"dora": self.dora, "dropout": self.dropout, "quantise": self.quantise != "none"}
        fault = next((name for name, is_set in given.items() if is_set), None)
        if self.targets == "experts" and fault is not None:
            raise ValueError(
                f"targets experts does not go with {fault}: the experts of a layer are one parameter, of which peft "
                "computes a plain update only. Leave it out, or use targets linear"
            )
        return self

    @property
    def scale(self) -> float:
        """What B A is multiplied with."""
        return self.alpha / (math.sqrt(self.rank) if self.rslora else self.rank)


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
    weight_decay: Annotated[NonNegative, Field(description="AdamW's; norms and biases are not decayed.")] = 0.0
    adam_beta1: Annotated[Finite, Field(ge=0, lt=1, description="AdamW's decay of the gradient's mean.")] = 0.9
    adam_beta2: Annotated[Finite, Field(ge=0, lt=1, description="AdamW's decay of the squared gradient's mean.")] = 0.95
    max_grad_norm: Annotated[Positive, Field(description="Longer gradients are scaled down to this norm.")] = 1.0
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
        Field(description="Learn low-rank adapters (and a reward model's head) only, instead of all weights."),
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


class OnlineConfig(TrainingConfig):
    """The config of methods that learn from answers that are sampled from the weights in training."""

    batch: Annotated[Count, Field(description="Prompts in one step.")] = 128
    max_steps: Annotated[
        Count | None,
        Field(
            description="Stop after this many optimiser steps. A run whose epochs have fewer fails before the first."
        ),
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
    def samples_apart(self) -> bool:
        """Whether another process samples than one that trains."""
        return self.engine == "vllm" or self.placement.rollout > 0
