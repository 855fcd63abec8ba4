"""What methods that learn from preference pairs share: their configs, and the reference that most of them have."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import Count, NonNegative, Positive
from steerboard_contracts.models import POLICIES
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.method import Frozen
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.health import PAIR_RULES, HealthRules
from steerboard_contracts.watching.inspected_pairs import InspectPairs

WORKFLOW = {"source": "arXiv 2405.07863 (RLHF Workflow): learning rate 5e-7, batch 128"}

Reduction = Annotated[
    Literal["sum", "mean"],
    Field(
        description="Log-probs of a response are summed over its tokens, or averaged (length-normalised).",
        json_schema_extra={"source": "sum: arXiv 2305.18290; mean: arXiv 2411.15124 (Tulu 3)"},
    ),
]
Beta = Annotated[
    Positive | None,
    Field(
        description="Strength of the pull to the reference. By default 0.1 for sums of log-probs, 5 for means.",
        json_schema_extra={"source": "0.1: arXiv 2305.18290, Appendix B; 5: arXiv 2411.15124 (Tulu 3)"},
    ),
]
SftWeight = Annotated[
    NonNegative,
    Field(
        description="Supervised fine-tuning's weight: that of the chosen responses' negative log-likelihood, a mean "
        "over a response's tokens.",
        json_schema_extra={"source": "arXiv 2404.19733 (RPO): 1; 0, which leaves it out, is arXiv 2305.18290"},
    ),
]
Smoothing = Annotated[
    Finite,
    Field(
        ge=0,
        lt=0.5,
        description="Share of pairs whose sides are taken to be the wrong way round.",
        json_schema_extra={"source": "arXiv 2403.00409 (robust preference optimisation): 0.1 to 0.2"},
    ),
]

REFERENCE = Frozen(
    "reference",
    POLICIES,
    "The policy to stay near; by default the model that training starts from.",
    required=False,
    uses=("log_probs",),
)


class PairConfig(TrainingConfig):
    """The config of methods that make the chosen response of a pair likelier than the rejected one."""

    batch: Annotated[Count, Field(description="Pairs in one optimiser step.", json_schema_extra=WORKFLOW)] = 128
    learn: Annotated[Literal["last"], Field(description="The last turn of a pair is learned.")] = "last"
    share_prompt: Annotated[bool, Field(description="Compute the prompt of a pair once.")] = True
    inspect_pairs: InspectPairs = 64
    health: HealthRules = Field(default=PAIR_RULES)


class ReferencedPairConfig(PairConfig):
    """The config of methods that compare the policy with a reference, by log-ratios of whole responses."""

    lr: Annotated[Positive, Field(le=1, description="Learning rate at its peak.", json_schema_extra=WORKFLOW)] = 5e-7
    reduction: Reduction = "sum"
    sft_weight: SftWeight = 0.0


class BetaPairConfig(ReferencedPairConfig):
    """The config of methods whose rewards are beta times the log-ratio."""

    beta: Beta = None

    @property
    def strength(self) -> float:
        """beta, or its default for the reduction."""
        if self.beta is not None:
            return self.beta
        return 0.1 if self.reduction == "sum" else 5.0
