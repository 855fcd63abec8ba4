"""How far each entrant is from one model, to be drawn against what it gains: the frontier of reward and KL."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from steerboard_contracts.report.estimate import Estimate


class Divergence(BaseModel):
    """KL(entrant || model) of whole answers, in nats. `kind`: `estimate`, the mean over prompts of log pi(y|x) -
    log pi_model(y|x) of sampled answers; `same`, that model itself; `bound`, the most that the best of n of its answers
    can be away (arXiv 2401.01879, Theorem 3.1). `why`: where there is no figure, the reason."""

    entrant: str
    kl: Estimate
    kind: Literal["estimate", "same", "bound"]
    why: str | None = None


class BestOfNFrontier(BaseModel):
    """The best of n of the model's own sampled answers, chosen by the reward model itself; `kl` are upper bounds:
    ln n - (n - 1) / n. `alike`: entrants with one answer to each prompt that is drawn in the same way. Against them the
    best of n wins in n / (n + 1) of the cases, unless answers tie: n + 1 equal draws are equally likely to be the best
    one, whatever the reward."""

    reward_model: str
    entrant: str
    n: list[int]
    kl: list[float]
    reward: list[Estimate]
    alike: list[str] = []


class Frontier(BaseModel):
    """`kl_to`: the model; `entrants` in their order. Rewards and win rates are in the report's `methods`."""

    kl_to: str
    entrants: list[Divergence]
    best_of_n: list[BestOfNFrontier] = Field(
        [], description="Frontiers of entrants that are the model, with several samples."
    )
