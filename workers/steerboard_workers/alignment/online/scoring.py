"""What the answers of a step are worth: by reward models, by rules, or by both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.errors import BadInput, SteerboardError
from steerboard_contracts.policy_gradient import REWARD_MODELS, RewardedOnlineConfig
from steerboard_contracts.reward_rules import ExactMatch, RewardRule
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.objectives import Passes
from steerboard_workers.alignment.online.matching import SHOWN, Matcher
from steerboard_workers.alignment.rollouts import Rollout

Floats = NDArray[np.float64]


class UnscoredAnswers(SteerboardError):
    """More answers than the config allows have no reward."""

    code = "unscored_answers"
    status = 422
    title = "Answers cannot be scored"


@dataclass(frozen=True)
class Scores:
    """Of n answers. `sources`: by name, (n,) of each reward as it was given; `total` (n,) their weighted sum. NaN: the
    answer could not be scored."""

    total: Floats
    sources: Mapping[str, Floats]

    @property
    def unscored(self) -> float:
        return float(np.isnan(self.total).mean())

    def metrics(self) -> dict[str, float]:
        """Means over the answers with a reward: `reward` of all, and `reward_NAME` of each source."""
        named = {"reward": self.total} | {f"reward_{name}": values for name, values in self.sources.items()}
        known = {name: values[~np.isnan(values)] for name, values in named.items()}
        return {name: float(values.mean()) for name, values in known.items() if len(values)} | {
            "unscored": self.unscored
        }


class AnswerRewards:
    """`references`: by number of a row, its reference answer, where it has one."""

    def __init__(self, config: RewardedOnlineConfig, references: Mapping[int, str], passes: Passes) -> None:
        self._config = config
        self._references = references
        self._passes = passes
        self._matcher = Matcher()

    def check_given(self) -> None:
        """Before anything is sampled: raises `BadInput` without any source of rewards."""
        if not self._models and not self._config.rules:
            raise BadInput(
                "nothing gives the answers a reward",
                code="no_reward",
                hint=f"Give a reward model as the input {REWARD_MODELS[0]}, or rules in the config.",
            )

    @property
    def _models(self) -> list[str]:
        """Known once the run's models are open, which is after its source is made."""
        return [model for model in REWARD_MODELS if self._passes.has(model)]

    def score(self, answers: Sequence[Rollout], examples: Sequence[Example]) -> Scores:
        """examples: of each answer, with its ids as the response.

        Raises `BadInput` for a rule that takes too long, and `UnscoredAnswers`.
        """
        sources: dict[str, Floats] = {}
        total = np.zeros(len(answers))
        for model in self._models:
            of_model = np.array([one[0] for one in self._passes.per_sequence(examples, model)], dtype=np.float64)
            of_model[~np.isfinite(of_model)] = np.nan
            sources[_free(model.replace("reward", "model"), sources)] = of_model
            total += self._config.weight_of(model) * of_model
        for rule in self._config.rules:
            of_rule = self._of_rule(rule, answers)
            sources[_free(rule.kind, sources)] = of_rule
            total += rule.weight * of_rule
        self._check(total, sources, answers)
        return Scores(total, sources)

    def _of_rule(self, rule: RewardRule, answers: Sequence[Rollout]) -> Floats:
        texts = [answer.text for answer in answers]
        if not isinstance(rule, ExactMatch):
            return np.array([found is not None for found in self._matcher.find(rule.pattern, texts)], dtype=np.float64)
        given: Sequence[str | None] = texts
        if rule.extract is not None:
            given = self._matcher.find(rule.extract, texts, ignore_case=rule.ignore_case)
        return np.array(
            [_exact(text, self._references.get(a.row), rule) for text, a in zip(given, answers, strict=True)]
        )

    def _check(self, total: Floats, sources: Mapping[str, Floats], answers: Sequence[Rollout]) -> None:
        without = np.flatnonzero(np.isnan(total))
        if len(without) <= self._config.max_unscored * len(total):
            return
        first = answers[without[0]]
        by = ", ".join(name for name, values in sources.items() if np.isnan(values[without[0]]))
        raise UnscoredAnswers(
            f"{len(without)} of {len(total)} answers have no reward, the first one of row {first.row} by {by}: "
            f"{first.text[:SHOWN]!r}",
            hint="exact_match needs a reference answer in every row, and a reward model finite numbers. Or raise "
            "max_unscored.",
        )


def _exact(text: str | None, reference: str | None, rule: ExactMatch) -> float:
    if reference is None:
        return np.nan
    if text is None:
        return 0.0
    given, wanted = text.strip(), reference.strip()
    if rule.ignore_case:
        given, wanted = given.casefold(), wanted.casefold()
    return float(given == wanted)


def _free(name: str, taken: Mapping[str, Floats]) -> str:
    """`name`, or with a number where two sources are called the same."""
    number = 1
    while (found := name if number == 1 else f"{name}_{number}") in taken:
        number += 1
    return found
