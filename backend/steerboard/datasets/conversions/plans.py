"""What each conversion makes of a dataset's rows. The same plan is counted before, and written after the decision."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Literal, NamedTuple

from steerboard.datasets.conversions.facts import Fact

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
    "held_out",
    "no_dialogue",
]


class Made(NamedTuple):
    """One new row. `rows`: the row it is taken from, or those of the chosen and the rejected answer. `side`: which
    answer of a pair it is. `verdict`: the letter of the chosen answer, where the row asks which of two is better."""

    rows: tuple[int, ...]
    first: Fact
    side: Literal["chosen", "rejected"] | None = None
    desirable: bool | None = None
    margin: float | None = None
    verdict: Literal["A", "B"] | None = None


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
        return max(0, len(self.made) - len({row for made in self.made for row in made.rows}))


def chosen_responses(facts: Sequence[Fact]) -> Plan:
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


def thumbs_from_pairs(facts: Sequence[Fact]) -> Plan:
    plan = Plan()
    for fact in facts:
        if fact.equal_sides:
            plan.lost["equal_sides"] += 1
            continue
        plan.made.append(Made((fact.row,), fact, side="chosen", desirable=True))
        plan.made.append(Made((fact.row,), fact, side="rejected", desirable=False))
    return plan


def verdict_prompts(facts: Sequence[Fact]) -> Plan:
    """Which of the answers is better, asked in both orders. Held-out pairs are left out: as prompts of their own, the
    two orders of a pair could be on both sides of the split."""
    plan = Plan()
    for fact in facts:
        if fact.held_out or fact.equal_sides or not fact.dialogue:
            plan.lost["held_out" if fact.held_out else "equal_sides" if fact.equal_sides else "no_dialogue"] += 1
            continue
        plan.made += [Made((fact.row,), fact, verdict="A"), Made((fact.row,), fact, verdict="B")]
    return plan


def desirable_responses(facts: Sequence[Fact]) -> Plan:
    kept = [fact for fact in facts if fact.desirable]
    plan = each_row(kept)
    if lost := len(facts) - len(kept):
        plan.lost["undesirable"] = lost
    return plan


def pairs_from_thumbs(facts: Sequence[Fact]) -> Plan:
    plan = Plan()
    for answers in _by_prompt(facts):
        up, down = (
            [answer for answer in answers if answer.desirable],
            [answer for answer in answers if not answer.desirable],
        )
        pairs = [(left, other) for left, other in product(up, down) if left.answer != other.answer]
        plan.made += [Made((left.row, other.row), left) for left, other in pairs]
        if up and down:
            _lose_unused(plan, answers, [fact for pair in pairs for fact in pair], "equal_sides")
        else:
            plan.lost["alone" if len(answers) == 1 else "one_sided"] += len(answers)
    return plan


def pairs_from_ranks(facts: Sequence[Fact]) -> Plan:
    plan = Plan()
    for answers in _by_prompt(facts):
        different = [(left, other) for left, other in combinations(answers, 2) if left.answer != other.answer]
        ranked = [(left, other) if _reward(left) > _reward(other) else (other, left) for left, other in different]
        pairs = [(best, worst) for best, worst in ranked if _reward(best) > _reward(worst)]
        plan.tied += len(different) - len(pairs)
        plan.made += [_pair(best, worst) for best, worst in pairs]
        why: Lost = "alone" if len(answers) == 1 else "tied" if different else "equal_sides"
        _lose_unused(plan, answers, [fact for pair in pairs for fact in pair], why)
    return plan


def best_against_worst(facts: Sequence[Fact]) -> Plan:
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


def best_responses(facts: Sequence[Fact]) -> Plan:
    """The best response to each prompt; the first of equal ones."""
    plan = Plan()
    for answers in _by_prompt(facts):
        best = max(answers, key=_reward)
        plan.made.append(Made((best.row,), best))
        _lose_unused(plan, answers, [best], "not_best")
    return plan


def thumbs_from_scores(facts: Sequence[Fact]) -> Plan:
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


def each_row(facts: Sequence[Fact]) -> Plan:
    return Plan([Made((fact.row,), fact) for fact in facts])


def prompts_only(facts: Sequence[Fact]) -> Plan:
    """Each prompt once."""
    plan = each_row([answers[0] for answers in _by_prompt(facts)])
    if lost := len(facts) - len(plan.made):
        plan.lost["repeated"] = lost
    return plan


def _by_prompt(facts: Sequence[Fact]) -> Iterator[list[Fact]]:
    by_prompt: dict[tuple[str, int], list[Fact]] = defaultdict(list)
    for fact in facts:
        by_prompt[fact.prompt].append(fact)
    yield from by_prompt.values()


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
    """The mean that `Normaliser.fit` computes."""
    return math.fsum(values) / len(values) if values else 0.0
