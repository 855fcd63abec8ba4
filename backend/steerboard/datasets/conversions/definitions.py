"""The conversions there are: what each takes and gives, in words, and how it plans its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from steerboard.datasets.conversions.facts import Fact
from steerboard.datasets.conversions.plans import (
    Plan,
    best_against_worst,
    best_responses,
    chosen_responses,
    desirable_responses,
    each_row,
    pairs_from_ranks,
    pairs_from_thumbs,
    prompts_only,
    thumbs_from_pairs,
    thumbs_from_scores,
    verdict_prompts,
)
from steerboard_contracts.conversions import WAYS, ConversionName, Way
from steerboard_contracts.samples import SampleKind


@dataclass(frozen=True)
class Conversion:
    name: ConversionName
    title: str
    about: str
    takes: SampleKind
    gives: SampleKind
    plan: Callable[[Sequence[Fact]], Plan]


def _rewarded(plan: Callable[[Sequence[Fact]], Plan]) -> Callable[[Sequence[Fact]], Plan]:
    """Plans with the rows that have a reward; others are lost."""

    def planned(facts: Sequence[Fact]) -> Plan:
        given = [fact for fact in facts if fact.reward is not None]
        made = plan(given)
        if lost := len(facts) - len(given):
            made.lost["no_reward"] = lost
        return made

    return planned


# In words, and how rows are planned.
_ABOUT: Mapping[ConversionName, tuple[str, str, Callable[[Sequence[Fact]], Plan]]] = {
    "chosen_responses": (
        "Chosen answers as responses",
        "Each chosen answer once; the rejected ones are left out.",
        chosen_responses,
    ),
    "thumbs_from_pairs": (
        "Thumbs from pairs",
        "The chosen answer is desirable, the rejected one is not.",
        thumbs_from_pairs,
    ),
    "verdict_prompts": (
        "Verdicts on pairs",
        "Each pair asks in both orders which answer is better; the reference is its letter. Held-out pairs are left "
        "out, to calibrate the judge that learns from these.",
        verdict_prompts,
    ),
    "desirable_responses": (
        "Desirable answers as responses",
        "The undesirable ones are left out.",
        desirable_responses,
    ),
    "pairs_from_thumbs": (
        "Pairs from thumbs",
        "Each desirable answer against each undesirable one to the same prompt.",
        pairs_from_thumbs,
    ),
    "pairs_from_ranks": (
        "Pairs from ranks",
        "Any two answers to a prompt that have different scores; the margin is their difference.",
        _rewarded(pairs_from_ranks),
    ),
    "best_against_worst": (
        "Best against worst",
        "One pair per prompt: its answers with the highest and the lowest score.",
        _rewarded(best_against_worst),
    ),
    "best_responses": (
        "Best answers as responses",
        "The answer with the highest score to each prompt.",
        _rewarded(best_responses),
    ),
    "thumbs_from_scores": (
        "Thumbs from scores",
        "Answers above the mean score are desirable, those below it are not.",
        _rewarded(thumbs_from_scores),
    ),
    "all_responses": ("All answers as responses", "Every answer, whatever its score.", each_row),
    "pinned_rewards": (
        "Rewards pinned",
        "The rows with the rewards of one source, normalised over all of them.",
        each_row,
    ),
    "prompts_only": ("Prompts only", "Each prompt once, without its answers.", prompts_only),
}


def _conversion(way: Way) -> Conversion:
    title, about, plan = _ABOUT[way.name]
    return Conversion(way.name, title, about, way.takes, way.gives, plan)


CONVERSIONS: Mapping[tuple[SampleKind, ConversionName], Conversion] = MappingProxyType(
    {(way.takes, way.name): _conversion(way) for way in WAYS}
)


def conversions_of(kind: SampleKind) -> list[Conversion]:
    return [conversion for (takes, _), conversion in CONVERSIONS.items() if takes == kind]
