"""Rows that are valid but teach nothing: each rule has a name, and every dropped row is counted under it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Literal

from steerboard.datasets.parsing.arranged import Removed
from steerboard.datasets.parsing.dialogues import has_empty_turn
from steerboard.datasets.parsing.row_builder import Shaped
from steerboard_contracts.samples import PreferenceSample, Sample, SampleKind
from steerboard_contracts.wording import counted

Rule = Literal["diverging", "empty_round", "identical_sides", "small_margin", "duplicate", "tie", "unranked"]

RULES: dict[Rule, str] = {
    "diverging": "chosen and rejected have different prompts",
    "empty_round": "a turn has no text",
    "identical_sides": "chosen and rejected are the same text",
    "small_margin": "the margin is below the threshold",
    "duplicate": "an earlier row is the same",
    "tie": "neither answer is the better one",
    "unranked": "no two replies to a message have a rank",
}


def removed_words(cleaned: Mapping[Rule, int]) -> str:
    """`4 rows removed: chosen and rejected have different prompts; ...`, empty where nothing was."""
    return "; ".join(f"{counted(rows, 'row')} removed: {RULES[rule]}" for rule, rows in cleaned.items())


class Cleaner:
    """Decides row by row. Off (`enabled=False`) it drops nothing, and empty turns are bad rows.

    Remembers 16 bytes a row to find duplicates (about 100 MB for a million rows).
    """

    def __init__(self, kind: SampleKind, enabled: bool, min_margin: float | None) -> None:
        self._pairs = kind == "preferences"
        self._enabled = enabled
        self._min_margin = min_margin
        self._seen: set[bytes] = set()
        self.dropped: Counter[Rule] = Counter()

    def removed(self, row: Removed) -> Rule:
        """The rule for a row that its layout left out, which is not stored without cleaning either."""
        return self._drop(row.rule)

    def before_validation(self, shaped: Shaped) -> Rule | None:
        """The rule that drops the row although validation would refuse it: only preferences have such rules."""
        if not (self._enabled and self._pairs):
            return None
        if shaped.diverging:
            return self._drop("diverging")
        sides = [shaped.sample.get("chosen"), shaped.sample.get("rejected")]
        prompt = shaped.sample.get("prompt")
        texts = [*sides, prompt] if isinstance(prompt, str) else sides
        if any(isinstance(text, str) and not text.strip() for text in texts):
            return self._drop("empty_round")
        if isinstance(prompt, list) and has_empty_turn(prompt):
            return self._drop("empty_round")
        return None

    def after_validation(self, sample: Sample, canonical: bytes) -> Rule | None:
        """The rule that drops a valid row. `canonical` identifies it, margins left out of account."""
        margin = sample.margin if isinstance(sample, PreferenceSample) else None
        if margin is not None and self._min_margin is not None and margin < self._min_margin:
            return self._drop("small_margin")
        if not self._enabled:
            return None
        if isinstance(sample, PreferenceSample) and sample.equal_sides:
            return self._drop("identical_sides")
        digest = hashlib.blake2b(canonical, digest_size=16).digest()
        if digest in self._seen:
            return self._drop("duplicate")
        self._seen.add(digest)
        return None

    def _drop(self, rule: Rule) -> Rule:
        self.dropped[rule] += 1
        return rule
