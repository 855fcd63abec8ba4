"""What the answers of a step are worth: by reward models, by rules, or by both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.errors import BadInput, SteerboardError
from steerboard_contracts.online.environments import EpisodicConfig
from steerboard_contracts.online.reward_access import RewardAccess
from steerboard_contracts.online.reward_rules import ExactMatch, HttpReward, PythonReward, RegexMatch
from steerboard_contracts.online.rewarded import REWARD_MODELS, RewardedOnlineConfig
from steerboard_contracts.watching.health import INDEPENDENT_REWARD
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.objectives import Passes
from steerboard_workers.alignment.online.judge_scorer import JudgeScorer
from steerboard_workers.alignment.online.matching import SHOWN, TOO_SLOW, Found, Matcher
from steerboard_workers.alignment.online.outside import Scorer, from_main, scorer_of
from steerboard_workers.alignment.online.rows import RowTexts
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.alignment.rollouts import Rollout

Floats = NDArray[np.float64]
# Names of the sources that are models or judges.
_ASSESS = ("model", "judge")
# Among the rewards of an answer, what its environment gave it.
ENVIRONMENT = "environment"


class UnscoredAnswers(SteerboardError):
    """More answers than the config allows have no reward."""

    code = "unscored_answers"
    status = 422
    title = "Answers cannot be scored"


@dataclass(frozen=True)
class Scores:
    """The scores of n answers. `sources`: by name, (n,) of each reward as it was given; `total` (n,) the weighted sum
    of those with a weight. NaN: the answer could not be scored. `weights`: by name."""

    total: Floats
    sources: Mapping[str, Floats]
    weights: Mapping[str, float]

    def of(self, places: Sequence[int]) -> Scores:
        return Scores(
            self.total[places], {name: rewards[places] for name, rewards in self.sources.items()}, self.weights
        )

    @classmethod
    def joined(cls, parts: Sequence[Scores]) -> Scores:
        sources = {name: np.concatenate([part.sources[name] for part in parts]) for name in parts[0].sources}
        return cls(np.concatenate([part.total for part in parts]), sources, parts[0].weights)

    @property
    def unscored(self) -> float:
        return float(np.isnan(self.total).mean())

    def metrics(self) -> dict[str, float]:
        """Means over the answers with a reward: `reward` of all that count, `reward_NAME` of each source, and
        `independent_reward` of the judges and reward models of weight 0 together. Empty without any source."""
        if not self.sources:
            return {}
        total = {"reward": self.total} if any(self.weights.values()) else {}
        named = total | {f"reward_{name}": values for name, values in self.sources.items()}
        known = {name: values[~np.isnan(values)] for name, values in named.items()}
        means = {name: float(values.mean()) for name, values in known.items() if len(values)}
        # A rule of weight 0 counts something; only these assess the answer.
        watching = [name for name in self.sources if not self.weights[name] and name.startswith(_ASSESS)]
        apart = [means[f"reward_{name}"] for name in watching if f"reward_{name}" in means]
        independent = {INDEPENDENT_REWARD: sum(apart) / len(apart)} if apart and len(apart) == len(watching) else {}
        return means | independent | {"unscored": self.unscored}


class AnswerRewards:
    """`texts` of the rows that are answered. What comes from outside is opened at once, before anything is sampled."""

    def __init__(
        self, config: RewardedOnlineConfig, texts: RowTexts, passes: Passes, access: RewardAccess | None = None
    ) -> None:
        """Raises what `scorer_of` and `JudgeScorer` do."""
        self._config = config
        self._texts = texts
        self._passes = passes
        self._matcher = Matcher()
        self._environment = config.environment if isinstance(config, EpisodicConfig) else None
        access = access or RewardAccess()
        self._outside = {
            place: scorer_of(rule, access)
            for place, rule in enumerate(config.rules)
            if isinstance(rule, PythonReward | HttpReward)
        }
        self._judges = {place: JudgeScorer(rule, place, access.judges) for place, rule in config.judges.items()}

    @property
    def sources(self) -> int:
        """How many there are, whatever their weights."""
        return len(self._models) + len(self._config.rules) + (self._environment is not None)

    def check_given(self) -> None:
        """Called before anything is sampled: raises `BadInput` without any source of rewards."""
        fault = self._config.reward_fault(self._models)
        if fault is not None:
            raise BadInput(fault, code="no_reward")

    @property
    def _models(self) -> list[str]:
        """Known once the run's models are open, which is after its source is made."""
        return [model for model in REWARD_MODELS if self._passes.has(model)]

    def figures(self) -> dict[str, float]:
        """What each judge has cost the run so far: `judge_requests`, `judge_cached`, `judge_cost`."""
        names = ["judge", *(f"judge_{number}" for number in range(2, len(self._judges) + 1))]
        return {
            f"{name}_{figure}": value
            for name, judge in zip(names, self._judges.values(), strict=False)
            for figure, value in judge.figures.items()
        }

    def score(
        self,
        answers: Sequence[Rollout],
        examples: Sequence[Example],
        *,
        sampling: int | None = None,
        alone: bool = False,
    ) -> Scores:
        """examples: of each answer, with its ids as the response. `sampling`: its number in the run, by which judges
        that only watch are asked about a part; without it they are asked about all. `alone`: one answer to each prompt,
        so that judges that rank the answers to a prompt are left out.

        Raises `UnscoredAnswers`, `JudgeUnavailable`, and `BadInput` for a rule with a weight that takes too long on
        more answers than may be left out.
        """
        sources: dict[str, Floats] = {}
        weights: dict[str, float] = {}
        for model in self._models:
            of_model = self._of_model(model, answers, examples)
            name = _free(model.replace("reward", "model"), sources)
            sources[name], weights[name] = of_model, self._config.weight_of(model)
        if self._environment is not None:
            sources[ENVIRONMENT], weights[ENVIRONMENT] = np.array([a.reward for a in answers]), self._environment.weight
        for place, rule in enumerate(self._config.rules):
            if alone and place in self._judges and self._judges[place].groupwise:
                continue
            name = _free(rule.kind, sources)
            sources[name], weights[name] = self._of_place(place, answers, sampling), rule.weight
        # 0 x NaN is NaN: what only rides along must not take the reward of an answer that it cannot score.
        counted = {name: values for name, values in sources.items() if weights[name]}
        total = sum((weights[name] * values for name, values in counted.items()), np.zeros(len(answers)))
        self._check(total, counted, answers)
        return Scores(total, sources, weights)

    def _of_model(self, model: str, answers: Sequence[Rollout], examples: Sequence[Example]) -> Floats:
        """One with a tokenizer of its own is given the text of each answer; NaN where its window does not hold that."""
        renderer = self._passes.renderer(model)
        places = list(range(len(answers)))
        if renderer is not None and self._environment is not None:
            raise BadInput(
                f"the input {model} has another tokenizer, and would read the last answer of a rollout without its "
                "earlier turns",
                code="bad_config",
                hint="Give a reward model of the policy's tokenizer, or rewards by the environment alone.",
            )
        if renderer is not None:
            own = [self._in_tokens_of(renderer, answer) for answer in answers]
            places = [at for at, example in enumerate(own) if example is not None]
            examples = [example for example in own if example is not None]
        elif closing := self._passes.closing_ids(model):
            examples = [
                _closed(example, closing) if a.finished else example
                for example, a in zip(examples, answers, strict=True)
            ]
        rewards = np.full(len(answers), np.nan)
        rewards[list(places)] = [values[0] for values in self._passes.per_sequence(examples, model)]
        rewards[~np.isfinite(rewards)] = np.nan
        return rewards

    def _in_tokens_of(self, renderer: Renderer, answer: Rollout) -> Example | None:
        (group,) = renderer.render_groups([self._texts.prompts[answer.row]], [[answer.text]])
        if group is None:
            return None
        example = Example.of(answer.row, group)
        ids, closing = example.responses[0], len(renderer.closing_ids)
        end = len(ids) - closing - 1
        if group.tails[0] < closing or int(ids[end]) not in renderer.stop_ids:
            return None  # the window cut it, and the reward of its start is not its own
        # What a limit cut has no end, and must not get one.
        cut = not answer.finished and end > 0
        return replace(example, responses=(ids[:end],), prompt_supervised=None) if cut else example

    def _of_place(self, place: int, answers: Sequence[Rollout], sampling: int | None) -> Floats:
        """(n,) by the rule at `place`."""
        rule = self._config.rules[place]
        if place in self._judges:
            return self._from_judge(self._judges[place], answers, sampling)
        if place in self._outside:
            return self._from_outside(self._outside[place], answers)
        assert isinstance(rule, ExactMatch | RegexMatch)
        return self._of_rule(rule, answers)

    def _from_judge(self, judge: JudgeScorer, answers: Sequence[Rollout], sampling: int | None) -> Floats:
        rewards, groups = np.full(len(answers), np.nan), _groups(answers)
        places = list(range(len(answers))) if sampling is None else judge.asked_about(groups, sampling)
        if not places:
            return rewards
        some = [answers[place] for place in places]
        prompts, references = self._texts_of(some)
        numbers, texts = [groups[place] for place in places], [answer.text for answer in some]
        rewards[places] = from_main(lambda: judge.score(numbers, prompts, texts, references))
        return rewards

    def _texts_of(self, answers: Sequence[Rollout]) -> tuple[list[Any], list[str | None]]:
        """The prompts and the reference answers of answers."""
        rows = [answer.row for answer in answers]
        return [self._texts.prompts[row] for row in rows], [self._texts.references.get(row) for row in rows]

    def _from_outside(self, scorer: Scorer, answers: Sequence[Rollout]) -> Floats:
        prompts, references = self._texts_of(answers)
        most = int(self._config.max_unscored * len(answers))
        return np.array(from_main(lambda: scorer.score(prompts, [answer.text for answer in answers], references, most)))

    def _of_rule(self, rule: ExactMatch | RegexMatch, answers: Sequence[Rollout]) -> Floats:
        """Whether a pattern is too slow is a matter of time, which differs between processes: one finds out for all."""
        texts = [answer.text for answer in answers]
        if isinstance(rule, RegexMatch):
            matches = self._matches(rule, rule.pattern, texts)
            return np.array([np.nan if match is TOO_SLOW else float(match is not None) for match in matches])
        given: Sequence[Found] = texts
        if rule.extract is not None:
            given = self._matches(rule, rule.extract, texts, ignore_case=rule.ignore_case)
        return np.array(
            [_exact(text, self._texts.references.get(a.row), rule) for text, a in zip(given, answers, strict=True)]
        )

    def _matches(
        self, rule: ExactMatch | RegexMatch, pattern: str, texts: Sequence[str], *, ignore_case: bool = False
    ) -> list[Found]:
        most, needed = int(self._config.max_unscored * len(texts)), bool(rule.weight)
        return from_main(
            lambda: self._matcher.find(pattern, texts, ignore_case=ignore_case, most_lost=most, needed=needed)
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


def _exact(text: Found, reference: str | None, rule: ExactMatch) -> float:
    if reference is None or text is TOO_SLOW:
        return np.nan
    if text is None:
        return 0.0
    given, wanted = text.strip(), reference.strip()
    if rule.ignore_case:
        given, wanted = given.casefold(), wanted.casefold()
    return float(given == wanted)


def _closed(example: Example, closing: Sequence[int]) -> Example:
    """An answer with what the template writes behind its end."""
    return replace(example, responses=(np.concatenate([example.responses[0], np.array(closing, dtype=np.int32)]),))


def _groups(answers: Sequence[Rollout]) -> list[int]:
    """The number of the group of each answer. The answers to a prompt follow each other, numbered from 0; a row may be
    asked twice."""
    groups: list[int] = []
    for before, answer in zip([None, *answers], answers, strict=False):
        new = before is None or answer.row != before.row or answer.n <= before.n
        groups.append((groups[-1] if groups else -1) + new)
    return groups


def _free(name: str, taken: Mapping[str, Floats]) -> str:
    """`name`, or with a number where two sources are called the same."""
    number = 1
    while (free := name if number == 1 else f"{name}_{number}") in taken:
        number += 1
    return free
