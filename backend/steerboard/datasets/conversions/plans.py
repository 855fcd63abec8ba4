"""What each conversion makes of a dataset's rows. The same plan is counted before, and written after the decision."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from types import MappingProxyType
from typing import Literal, NamedTuple

from steerboard.datasets.conversions.facts import Fact
from steerboard_contracts.samples import SampleKind

ConversionName = Literal[
    "chosen_responses",
    "thumbs_from_pairs",
    "desirable_responses",
    "pairs_from_thumbs",
    "pairs_from_ranks",
    "best_against_worst",
    "best_responses",
    "thumbs_from_scores",
    "all_responses",
    "prompts_only",
    "pinned_rewards",
]
Lost = Literal[
    "equal_sides",
    "undesirable",
    "alone",
    "one_sided",
    "tied",
    "not_extreme",
    "not_best",
    "at_mean",
    "repeated",
    "no_reward",
]


class Made(NamedTuple):
    """One new row. `rows`: the row it is taken from, or those of the chosen and the rejected answer. `side`: which
    answer of a pair it is."""

    rows: tuple[int, ...]
    first: Fact
    side: Literal["chosen", "rejected"] | None = None
    desirable: bool | None = None
    margin: float | None = None


@dataclass
class Plan:
    """`lost`: rows of which no new row is made, by why. `tied`: comparisons that decide nothing: pairs of equal
    scores, or prompts whose best and worst answer have the same one."""

    made: list[Made] = field(default_factory=list)
    lost: Counter[Lost] = field(default_factory=Counter)
    tied: int = 0

    @property
    def gained(self) -> int:
        """New rows beyond one for each row that is used."""
        return max(0, len(self.made) - len({row for one in self.made for row in one.rows}))


@dataclass(frozen=True)
class Conversion:
    name: ConversionName
    title: str
    about: str
    takes: SampleKind
    gives: SampleKind
    plan: Callable[[Sequence[Fact]], Plan]


def _rewarded(plan: Callable[[Sequence[Fact]], Plan]) -> Callable[[Sequence[Fact]], Plan]:
    """Of the rows that have a reward; others are lost."""

    def planned(facts: Sequence[Fact]) -> Plan:
        given = [fact for fact in facts if fact.reward is not None]
        made = plan(given)
        if lost := len(facts) - len(given):
            made.lost["no_reward"] = lost
        return made

    return planned


def _chosen(facts: Sequence[Fact]) -> Plan:
    """Several pairs may have the same chosen answer: it is learned once."""
    plan, seen = Plan(), set()
    for fact in facts:
        key = (fact.prompt, fact.answer)
        if key in seen:
            plan.lost["repeated"] += 1
            continue
        seen.add(key)
        plan.made.append(Made((fact.row,), fact, side="chosen"))
    return plan


def _thumbs_of_pairs(facts: Sequence[Fact]) -> Plan:
    plan = Plan()
    for fact in facts:
        if fact.equal_sides:
            plan.lost["equal_sides"] += 1
            continue
        plan.made.append(Made((fact.row,), fact, side="chosen", desirable=True))
        plan.made.append(Made((fact.row,), fact, side="rejected", desirable=False))
    return plan


def _desirable(facts: Sequence[Fact]) -> Plan:
    kept = [fact for fact in facts if fact.desirable]
    plan = _each(kept)
    if lost := len(facts) - len(kept):
        plan.lost["undesirable"] = lost
    return plan


def _pairs_of_thumbs(facts: Sequence[Fact]) -> Plan:
    plan = Plan()
    for answers in _by_prompt(facts):
        up, down = [one for one in answers if one.desirable], [one for one in answers if not one.desirable]
        pairs = [(one, other) for one, other in product(up, down) if one.answer != other.answer]
        plan.made += [Made((one.row, other.row), one) for one, other in pairs]
        if up and down:
            _lose_unused(plan, answers, [fact for pair in pairs for fact in pair], "equal_sides")
        else:
            plan.lost["alone" if len(answers) == 1 else "one_sided"] += len(answers)
    return plan


def _pairs_of_ranks(facts: Sequence[Fact]) -> Plan:
    plan = Plan()
    for answers in _by_prompt(facts):
        different = [(one, other) for one, other in combinations(answers, 2) if one.answer != other.answer]
        ranked = [(one, other) if _reward(one) > _reward(other) else (other, one) for one, other in different]
        pairs = [(best, worst) for best, worst in ranked if _reward(best) > _reward(worst)]
        plan.tied += len(different) - len(pairs)
        plan.made += [_pair(best, worst) for best, worst in pairs]
        why: Lost = "alone" if len(answers) == 1 else "tied" if different else "equal_sides"
        _lose_unused(plan, answers, [fact for pair in pairs for fact in pair], why)
    return plan


def _extremes(facts: Sequence[Fact]) -> Plan:
    plan = Plan()
    for answers in _by_prompt(facts):
        best, worst = max(answers, key=_reward), min(answers, key=_reward)
        if len(answers) == 1:
            plan.lost["alone"] += 1
        elif best.answer == worst.answer and best.row != worst.row:
            plan.lost["equal_sides"] += len(answers)
        elif _reward(best) <= _reward(worst):
            plan.tied += 1
            plan.lost["tied"] += len(answers)
        else:
            plan.made.append(_pair(best, worst))
            _lose_unused(plan, answers, [best, worst], "not_extreme")
    return plan


def _best(facts: Sequence[Fact]) -> Plan:
    """Of equal ones the first."""
    plan = Plan()
    for answers in _by_prompt(facts):
        best = max(answers, key=_reward)
        plan.made.append(Made((best.row,), best))
        _lose_unused(plan, answers, [best], "not_best")
    return plan


def _thumbs_of_scores(facts: Sequence[Fact]) -> Plan:
    """Desirable above the mean of all rows, which is a z of 0."""
    plan = Plan()
    rewards = [_reward(fact) for fact in facts]
    mean = _mean(rewards)
    for fact, reward in zip(facts, rewards, strict=True):
        if reward == mean:
            plan.tied += 1
            plan.lost["at_mean"] += 1
        else:
            plan.made.append(Made((fact.row,), fact, desirable=reward > mean))
    return plan


def _each(facts: Sequence[Fact]) -> Plan:
    return Plan([Made((fact.row,), fact) for fact in facts])


def _prompts(facts: Sequence[Fact]) -> Plan:
    """Each prompt once."""
    plan = _each([answers[0] for answers in _by_prompt(facts)])
    if lost := len(facts) - len(plan.made):
        plan.lost["repeated"] = lost
    return plan


def _by_prompt(facts: Sequence[Fact]) -> Iterator[list[Fact]]:
    found: dict[tuple[str, int], list[Fact]] = defaultdict(list)
    for fact in facts:
        found[fact.prompt].append(fact)
    yield from found.values()


def _pair(best: Fact, worst: Fact) -> Made:
    return Made((best.row, worst.row), best, margin=_reward(best) - _reward(worst))


def _lose_unused(plan: Plan, answers: Sequence[Fact], used: Sequence[Fact], why: Lost) -> None:
    lost = len(answers) - len({fact.row for fact in used})
    if lost:
        plan.lost[why] += lost


def _reward(fact: Fact) -> float:
    assert fact.reward is not None
    return fact.reward


def _mean(values: Sequence[float]) -> float:
    """As `Normaliser.fit` has it."""
    return math.fsum(values) / len(values) if values else 0.0


_ANSWERED: tuple[SampleKind, ...] = ("instructions", "preferences", "unpaired", "labelled")
_ALL = (
    Conversion(
        "chosen_responses",
        "Chosen answers as responses",
        "Each chosen answer once; the rejected ones are left out.",
        "preferences",
        "instructions",
        _chosen,
    ),
    Conversion(
        "thumbs_from_pairs",
        "Thumbs from pairs",
        "The chosen answer is desirable, the rejected one is not.",
        "preferences",
        "unpaired",
        _thumbs_of_pairs,
    ),
    Conversion(
        "desirable_responses",
        "Desirable answers as responses",
        "The undesirable ones are left out.",
        "unpaired",
        "instructions",
        _desirable,
    ),
    Conversion(
        "pairs_from_thumbs",
        "Pairs from thumbs",
        "Each desirable answer against each undesirable one to the same prompt.",
        "unpaired",
        "preferences",
        _pairs_of_thumbs,
    ),
    Conversion(
        "pairs_from_ranks",
        "Pairs from ranks",
        "Any two answers to a prompt that have different scores; the margin is their difference.",
        "labelled",
        "preferences",
        _rewarded(_pairs_of_ranks),
    ),
    Conversion(
        "best_against_worst",
        "Best against worst",
        "One pair a prompt: its answers with the highest and the lowest score.",
        "labelled",
        "preferences",
        _rewarded(_extremes),
    ),
    Conversion(
        "best_responses",
        "Best answers as responses",
        "The answer with the highest score to each prompt.",
        "labelled",
        "instructions",
        _rewarded(_best),
    ),
    Conversion(
        "thumbs_from_scores",
        "Thumbs from scores",
        "Answers above the mean score are desirable, those below it are not.",
        "labelled",
        "unpaired",
        _rewarded(_thumbs_of_scores),
    ),
    Conversion(
        "all_responses",
        "All answers as responses",
        "Every answer, whatever its score.",
        "labelled",
        "instructions",
        _each,
    ),
    Conversion(
        "pinned_rewards",
        "Rewards pinned",
        "The rows with the rewards of one source, normalised over all of them.",
        "instructions",
        "labelled",
        _each,
    ),
    *(
        Conversion("prompts_only", "Prompts only", "Each prompt once, without its answers.", kind, "prompts", _prompts)
        for kind in _ANSWERED
    ),
)
CONVERSIONS: Mapping[tuple[SampleKind, ConversionName], Conversion] = MappingProxyType(
    {(one.takes, one.name): one for one in _ALL}
)


def ways_into(kind: str, wanted: Collection[str]) -> list[ConversionName]:
    """Conversions of rows of a kind into one of those that are wanted."""
    return [one.name for one in CONVERSIONS.values() if one.takes == kind and one.gives in wanted]


def conversions_of(kind: SampleKind) -> list[Conversion]:
    return [one for (takes, _), one in CONVERSIONS.items() if takes == kind]
