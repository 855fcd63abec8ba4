"""The conversions there are: what each takes and gives, in words, and how it plans its rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

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
)
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


_ANSWERED: tuple[SampleKind, ...] = ("instructions", "preferences", "unpaired", "labelled")
_ALL = (
    Conversion(
        "chosen_responses",
        "Chosen answers as responses",
        "Each chosen answer once; the rejected ones are left out.",
        "preferences",
        "instructions",
        chosen_responses,
    ),
    Conversion(
        "thumbs_from_pairs",
        "Thumbs from pairs",
        "The chosen answer is desirable, the rejected one is not.",
        "preferences",
        "unpaired",
        thumbs_from_pairs,
    ),
    Conversion(
        "desirable_responses",
        "Desirable answers as responses",
        "The undesirable ones are left out.",
        "unpaired",
        "instructions",
        desirable_responses,
    ),
    Conversion(
        "pairs_from_thumbs",
        "Pairs from thumbs",
        "Each desirable answer against each undesirable one to the same prompt.",
        "unpaired",
        "preferences",
        pairs_from_thumbs,
    ),
    Conversion(
        "pairs_from_ranks",
        "Pairs from ranks",
        "Any two answers to a prompt that have different scores; the margin is their difference.",
        "labelled",
        "preferences",
        _rewarded(pairs_from_ranks),
    ),
    Conversion(
        "best_against_worst",
        "Best against worst",
        "One pair per prompt: its answers with the highest and the lowest score.",
        "labelled",
        "preferences",
        _rewarded(best_against_worst),
    ),
    Conversion(
        "best_responses",
        "Best answers as responses",
        "The answer with the highest score to each prompt.",
        "labelled",
        "instructions",
        _rewarded(best_responses),
    ),
    Conversion(
        "thumbs_from_scores",
        "Thumbs from scores",
        "Answers above the mean score are desirable, those below it are not.",
        "labelled",
        "unpaired",
        _rewarded(thumbs_from_scores),
    ),
    Conversion(
        "all_responses",
        "All answers as responses",
        "Every answer, whatever its score.",
        "labelled",
        "instructions",
        each_row,
    ),
    Conversion(
        "pinned_rewards",
        "Rewards pinned",
        "The rows with the rewards of one source, normalised over all of them.",
        "instructions",
        "labelled",
        each_row,
    ),
    *(
        Conversion(
            "prompts_only", "Prompts only", "Each prompt once, without its answers.", kind, "prompts", prompts_only
        )
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
