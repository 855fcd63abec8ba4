"""How much of an answer its condition explains: nats an answer that a policy gains by being asked for the true one.

With s the condition of an answer y to a prompt x, and p the policy, three differences are averaged over held-out rows:

- over the mixture, log p(y|x,s) - log sum_k w_k p(y|x,s_k): the mutual information I of condition and answer given the
  prompt, where p is the true distribution and conditions do not depend on prompts (where they do, the divergence of the
  answers' true mixture from this one is added; a policy that is not the true distribution can give less, and less
  than 0);
- over a shuffled condition, log p(y|x,s) - log p(y|x,s') with s' of another row: I + L, where L is the lautum
  information (Palomar and Verdu, "Lautum Information", 2008), the same divergence with its sides exchanged;
- over the opposite one, s mirrored: the mean divergence of p(.|x,s) from p(.|x,-s), usually the largest of them.

All are 0 for a policy that ignores the condition.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from steerboard_contracts.report.estimate import Estimate
from steerboard_statistics.bootstrap import ratio_interval

Floats = NDArray[np.float64]


def mean_gain(own: ArrayLike, other: ArrayLike, prompts: Sequence[Hashable], *, seed: int = 0) -> Estimate:
    """Mean nats by which answers are likelier under their own condition than under another: log-probs (n,) each, sums
    over an answer's tokens. The interval is over prompts, which `prompts` (n,) names; `n` counts them."""
    gains = np.asarray(own, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    place = {prompt: number for number, prompt in enumerate(dict.fromkeys(prompts))}
    of_row = [place[prompt] for prompt in prompts]
    return ratio_interval(np.bincount(of_row, gains), np.bincount(of_row), seed=seed)


def mixture_log_probs(log_probs: ArrayLike, weights: ArrayLike) -> Floats:
    """log sum_k w_k p(y|x,s_k) of each row: log-probs (n, k) under k conditions of `weights` (k,), which add up to 1.
    Returns (n,)."""
    mixed: Floats = scipy.special.logsumexp(np.asarray(log_probs, dtype=np.float64), axis=1, b=np.asarray(weights))
    return mixed
