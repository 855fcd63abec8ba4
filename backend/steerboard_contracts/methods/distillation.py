"""Knowledge distillation on the student's own answers: arXiv 2306.13649 (generalised knowledge distillation)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import Count, LearningRate, Positive
from steerboard_contracts.models import POLICIES
from steerboard_contracts.online.environments import EpisodicConfig
from steerboard_contracts.online.rewarded import REWARDS
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.method import Frozen, MethodSpec

DivergenceName = Literal["forward_kl", "reverse_kl", "jsd", "sampled_reverse_kl"]

PAPER = {"source": "arXiv 2306.13649"}
MINILLM = {"source": "arXiv 2306.08543 (MiniLLM), Appendix: learning rate 5e-6, batch 64, temperature 1"}
TEACHER = Frozen(
    "teacher",
    POLICIES,
    "The model whose distribution over the next token is learned. It needs the student's tokenizer.",
    instead="Or learn its answers as text, which any tokenizer can: `generate` with it, then train `sft` on them",
)


class DistillationConfig(EpisodicConfig):
    """Eq. 4 and 5 of arXiv 2306.13649: the divergence of the student from a teacher at every token of answers that the
    student itself has sampled, of a dataset's answers, or of both."""

    method: Annotated[Literal["distillation"], Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra=MINILLM)] = 5e-6
    batch: Annotated[Count, Field(description="Prompts in one step.", json_schema_extra=MINILLM)] = 64
    divergence: Annotated[
        DivergenceName,
        Field(
            description="forward_kl covers all that the teacher may write, reverse_kl seeks what it writes most, jsd "
            "is between them; all three are of the whole vocabulary. sampled_reverse_kl estimates reverse_kl from "
            "the sampled token alone, as the advantage of a policy gradient.",
            json_schema_extra={
                "source": "arXiv 2306.13649, Section 4: reverse_kl for instructions; sampled_reverse_kl: K. Lu, "
                "On-Policy Distillation (Thinking Machines, 2025)"
            },
        ),
    ] = "reverse_kl"
    beta: Annotated[
        Finite | None,
        Field(
            gt=0,
            lt=1,
            description="Weight of the teacher in the mixture that jsd compares both with: near 0 it acts as "
            "forward_kl, near 1 as reverse_kl. By default 0.5.",
            json_schema_extra={"source": "arXiv 2306.13649, Eq. 1: 0.1, 0.5 and 0.9"},
        ),
    ] = None
    on_policy: Annotated[
        Finite,
        Field(
            ge=0,
            le=1,
            description="Share of the prompts that the student answers itself. To the others the answers of the "
            "dataset are learned; with 0, nothing is sampled (supervised distillation).",
            json_schema_extra={"source": "arXiv 2306.13649, Algorithm 1: lambda, best at 1"},
        ),
    ] = 1.0
    alpha: Annotated[
        Finite,
        Field(
            gt=0,
            le=1,
            description="Weight of the distillation; the reward of the student's answers has the rest, and 1 needs no "
            "reward.",
            json_schema_extra={"source": "arXiv 2306.13649, Eq. 5"},
        ),
    ] = 1.0
    reducer: Annotated[
        Literal["token", "sequence"],
        Field(
            description="The loss is the mean over all tokens, or the mean over answers of the mean over their tokens.",
            json_schema_extra={"source": "token: GKDTrainer of TRL 1.16; sequence: arXiv 2306.13649, Section 2"},
        ),
    ] = "token"
    temperature: Annotated[
        Positive,
        Field(
            description="Temperature of the sampling, and of the distributions of student and teacher that are "
            "compared.",
            json_schema_extra=MINILLM,
        ),
    ] = 1.0

    @property
    def whole_vocabulary(self) -> bool:
        """Whether distributions are compared, and not only the log-probs of sampled tokens."""
        return self.divergence != "sampled_reverse_kl"

    @property
    def mixture(self) -> float:
        """beta of Eq. 1, by which divergences are told apart: 0 is the forward KL, 1 the reverse one."""
        of_jsd = 0.5 if self.beta is None else self.beta
        return {"forward_kl": 0.0, "jsd": of_jsd}.get(self.divergence, 1.0)

    def reward_fault(self, given: Collection[str]) -> str | None:
        if self.alpha < 1:
            return super().reward_fault(given)
        if self.sources(given):
            return "rewards have no effect with alpha 1: lower it, or give them the weight 0 to watch them"
        return None

    def kind_fault(self, kind: str) -> str | None:
        if self.on_policy == 1 or kind in ("instructions", "labelled"):
            return None
        return (
            f"on_policy {self.on_policy:g} learns answers of the dataset, and {kind} have no single one to a prompt: "
            "give instructions or labelled rows, or set on_policy to 1"
        )

    @model_validator(mode="after")
    def _fits_together(self) -> DistillationConfig:
        if self.beta is not None and self.divergence != "jsd":
            raise ValueError(f"beta has no effect with divergence {self.divergence}: it is the mixture of jsd")
        if not self.whole_vocabulary and self.on_policy < 1:
            raise ValueError(
                "sampled_reverse_kl is an expectation over the student's own tokens: it needs on_policy 1, or another "
                "divergence"
            )
        if self.alpha < 1 and self.answers < 2:
            raise ValueError("alpha below 1 compares the rewards of a prompt's answers: it needs answers of 2 or more")
        if self.alpha < 1 and self.on_policy == 0:
            raise ValueError("alpha below 1 rewards the student's own answers: it needs on_policy above 0")
        if self.refill:
            raise ValueError("refill has no effect: answers whose rewards tie still teach what the teacher thinks")
        if self.staleness and (self.alpha < 1 or not self.whole_vocabulary or self.on_policy < 1):
            raise ValueError(
                "staleness needs alpha 1, on_policy 1 and a divergence of the whole vocabulary: a policy gradient must "
                "be of the weights that sampled"
            )
        if self.whole_vocabulary and (self.strategy == "zero3" or self.placement.reference):
            where = "strategy zero3 spreads" if self.strategy == "zero3" else "placement.reference puts elsewhere"
            raise ValueError(
                f"{where} the teacher's head, which every step reads in whole: take divergence sampled_reverse_kl, or "
                "ddp or zero2 with the teacher on the devices that train"
            )
        return self


SPEC = MethodSpec(
    name="distillation",
    title="On-policy distillation",
    label="distillation",
    about="Learn a teacher's distribution over each token of answers that the student writes itself.",
    source="arXiv 2306.13649, Eq. 4 and 5",
    config=DistillationConfig,
    training="steerboard_workers.alignment.methods.distillation:Distillation",
    data=("prompts", "instructions", "labelled", "preferences"),
    use="Learn from a teacher by distillation",
    outputs=("policy",),
    frozen=(TEACHER, *REWARDS),
    changeable=("lr",),
    form=("divergence", "on_policy", "temperature", "max_new_tokens", "alpha"),
    first_metrics=(
        *("eval_divergence", "divergence", "eval_top_agreement", "top_agreement", "entropy", "teacher_entropy"),
        *("reward", "length", "ended", "on_policy_share", "loss"),
    ),
    place=116,
)
