"""Which kind of rows becomes which by conversion: for forms, for launch errors, and for what a stage refuses."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

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
    "verdict_prompts",
]


class Way(NamedTuple):
    """A way from rows of one kind to rows of another. Names are of `steerboard datasets convert`."""

    name: ConversionName
    takes: SampleKind
    gives: SampleKind


WAYS = (
    Way("chosen_responses", "preferences", "instructions"),
    Way("thumbs_from_pairs", "preferences", "unpaired"),
    Way("verdict_prompts", "preferences", "prompts"),
    Way("desirable_responses", "unpaired", "instructions"),
    Way("pairs_from_thumbs", "unpaired", "preferences"),
    Way("pairs_from_ranks", "labelled", "preferences"),
    Way("best_against_worst", "labelled", "preferences"),
    Way("best_responses", "labelled", "instructions"),
    Way("thumbs_from_scores", "labelled", "unpaired"),
    Way("all_responses", "labelled", "instructions"),
    Way("pinned_rewards", "instructions", "labelled"),
    Way("prompts_only", "instructions", "prompts"),
    Way("prompts_only", "preferences", "prompts"),
    Way("prompts_only", "unpaired", "prompts"),
    Way("prompts_only", "labelled", "prompts"),
    Way("prompts_only", "stepwise", "prompts"),
)


# Their rows are of the training split, and stay there whatever their new prompts are.
TRAINING_ONLY = frozenset[ConversionName]({"verdict_prompts"})


def how_to_convert(dataset: str, kind: str | None, wanted: Collection[str]) -> str | None:
    """The command that makes of a dataset of this kind one of those that are wanted; None where nothing does."""
    names = [way.name for way in WAYS if way.takes == kind and way.gives in wanted]
    return f"Convert it: `steerboard datasets convert {dataset} {' | '.join(names)}`" if names else None
