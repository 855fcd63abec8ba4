"""Which pairs the rules drop, and why. Rows stream past; what is remembered of each is some 400 bytes.

The result is a fixed point: cleaning what is kept drops nothing more. Rules of one row decide the same again; no
contradiction and no repetition is left; and near duplicates are looked for among kept rows only, in the same order.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steerboard.datasets.cleaning import rules
from steerboard.datasets.cleaning.rules import RULES, Rule
from steerboard.datasets.cleaning.schemas import CleaningRules, Dropped, EvaluationMatch
from steerboard.datasets.hooks import EvaluationText
from steerboard_contracts.tools import answer_parts, answer_text, turn_text
from steerboard_statistics.texts.near_duplicates import NearDuplicateIndex
from steerboard_statistics.texts.overlap import PromptIndex

Sample = dict[str, Any]
_KEPT = 0
_NONE = -1


class StreamedRow(NamedTuple):
    """A row as it streams past."""

    held_out: bool
    sample: Sample


class Analysis:
    """The fate of every row, by row number."""

    def __init__(self, codes: NDArray[np.uint8], of_rows: NDArray[np.int64], held_out: NDArray[np.bool_]) -> None:
        self._codes, self._of_rows, self.held_out = codes, of_rows, held_out
        self._similarity: dict[int, float] = {}
        self._matches: dict[int, EvaluationMatch] = {}

    @property
    def rows(self) -> int:
        return len(self._codes)

    @property
    def kept(self) -> int:
        return int((self._codes == _KEPT).sum())

    @property
    def kept_held_out(self) -> int:
        return int(((self._codes == _KEPT) & self.held_out).sum())

    def counts(self) -> dict[Rule, int]:
        """Rows by the rule that drops them; rules that drop none are left out."""
        counter = Counter(self._codes.tolist())
        return {rule: counter[code] for code, rule in enumerate(RULES, 1) if counter[code]}

    def is_dropped(self, row: int) -> bool:
        return bool(self._codes[row] != _KEPT)

    def dropped_rows(self, rule: Rule | None = None) -> list[int]:
        """The rows that are dropped, in ascending order."""
        dropped = self._codes != _KEPT if rule is None else self._codes == 1 + RULES.index(rule)
        return [int(row) for row in np.flatnonzero(dropped)]

    def why(self, row: int) -> Dropped:
        of_row = int(self._of_rows[row])
        return Dropped(
            row=row,
            rule=RULES[int(self._codes[row]) - 1],
            of_row=None if of_row == _NONE else of_row,
            similarity=self._similarity.get(row),
            evaluation=self._matches.get(row),
        )

    def end_at(self, rows: int) -> None:
        """Shorten it where there are fewer rows than the dataset counts."""
        self._codes, self._of_rows, self.held_out = self._codes[:rows], self._of_rows[:rows], self.held_out[:rows]

    def drop(self, row: int, rule: Rule, *, of_row: int = _NONE, similarity: float | None = None) -> None:
        self._codes[row] = 1 + RULES.index(rule)
        self._of_rows[row] = of_row
        if similarity is not None:
            self._similarity[row] = similarity

    def drop_overlap(self, row: int, match: EvaluationMatch) -> None:
        self.drop(row, "evaluation_overlap")
        self._matches[row] = match

    def left(self) -> NDArray[np.bool_]:
        kept: NDArray[np.bool_] = self._codes == _KEPT
        return kept


def analyse(
    stream: Callable[[], Iterable[StreamedRow]], size: int, given: CleaningRules, evaluations: Sequence[EvaluationText]
) -> Analysis:
    """`stream` gives all `size` rows in order, each time it is called; twice where near duplicates are looked for."""
    analysis = Analysis(np.zeros(size, np.uint8), np.full(size, _NONE, np.int64), np.zeros(size, np.bool_))
    overlap = _Overlap(evaluations) if given.evaluation_overlap and evaluations else None
    votes = _Votes()
    near = NearDuplicateIndex(given.similarity) if given.near_duplicate else None
    seen = 0
    for row, pair in enumerate(stream()):
        seen = row + 1
        analysis.held_out[row] = pair.held_out
        rule = _of_one_row(pair.sample, given)
        if rule is not None:
            analysis.drop(row, rule)
        elif overlap is not None and not pair.held_out and (match := overlap.match(pair.sample)):
            analysis.drop_overlap(row, match)
        votes.add(pair.sample)
        if near is not None:
            # Also of dropped rows: records of the index are counted as rows are.
            near.add(_texts(pair.sample))
    analysis.end_at(seen)
    if given.contradiction:
        votes.settle(analysis)
    if given.duplicate:
        votes.drop_repeated(analysis)
    if near is not None:
        _drop_near(stream, near, analysis)
    return analysis


def _of_one_row(sample: Sample, given: CleaningRules) -> Rule | None:
    if given.empty_round and rules.has_empty_round(sample):
        return "empty_round"
    if given.wrong_roles and rules.has_wrong_roles(sample):
        return "wrong_roles"
    if given.identical_sides and rules.has_identical_sides(sample):
        return "identical_sides"
    if given.min_margin is not None and rules.has_small_margin(sample, given.min_margin):
        return "small_margin"
    return None


def _texts(sample: Sample) -> tuple[str, str, str]:
    """What near duplicates are compared by. Roles are part of a prompt."""
    prompt = "\n".join(f"{turn['role']} {turn_text(turn)}" for turn in sample["prompt"])
    return prompt, answer_text(sample["chosen"]), answer_text(sample["rejected"])


class _Overlap:
    """Texts as evaluations look for their prompts in training data: all user turns together, and each on its own."""

    def __init__(self, evaluations: Sequence[EvaluationText]) -> None:
        self._evaluations = evaluations
        self._index = PromptIndex([evaluation.text for evaluation in evaluations])

    def match(self, sample: Sample) -> EvaluationMatch | None:
        """The closest one; an exact match comes first."""
        turns = [turn["content"] for turn in sample["prompt"] if turn["role"] == "user"]
        texts = ["\n".join(turns), *(turns if len(turns) > 1 else ())]
        matches = [match for text in texts for match in self._index.match(text)]
        if not matches:
            return None
        best = min(matches, key=lambda match: (match.kind != "exact", -match.overlap, match.prompt))
        where = self._evaluations[best.prompt]
        return EvaluationMatch(
            type=where.type, name=where.name, position=where.position, match=best.kind, overlap=best.overlap
        )


class _Votes:
    """How often each of two answers to a prompt is preferred to the other. Surrounding spaces, margins and sources do
    not make two pairs different."""

    def __init__(self) -> None:
        self._questions: dict[bytes, int] = {}
        self._question = array("I")
        self._side = array("B")

    def add(self, sample: Sample) -> None:
        prompt = [[turn["role"], turn_text(turn).strip()] for turn in sample["prompt"]]
        chosen, rejected = answer_parts(sample["chosen"]), answer_parts(sample["rejected"])
        # Not by orjson, which ends the process where memory lacks for a long text.
        text = json.dumps([prompt, *sorted((chosen, rejected))], ensure_ascii=False)
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        self._question.append(self._questions.setdefault(digest, len(self._questions)))
        self._side.append(chosen > rejected)

    def settle(self, analysis: Analysis) -> None:
        """Drop the rarer preference of each contradicted question; both where none is rarer."""
        question, side, rows = self._left(analysis)
        votes = np.bincount(question * 2 + side, minlength=2 * len(self._questions)).reshape(-1, 2)
        own, other = votes[question, side], votes[question, 1 - side]
        first = self._first(question * 2 + side, rows)
        for place in np.flatnonzero((other > 0) & (own <= other)):
            opposite = int(question[place] * 2 + 1 - side[place])
            analysis.drop(int(rows[place]), "contradiction", of_row=int(first[opposite]))

    def drop_repeated(self, analysis: Analysis) -> None:
        """Drop all but the first of equal pairs."""
        question, side, rows = self._left(analysis)
        key = question * 2 + side
        first = self._first(key, rows)[key]
        for place in np.flatnonzero(first < rows):
            analysis.drop(int(rows[place]), "duplicate", of_row=int(first[place]))

    def _left(self, analysis: Analysis) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(question, side, row) of the rows that are still kept."""
        rows = np.flatnonzero(analysis.left())
        question = np.frombuffer(self._question, np.uint32)[rows].astype(np.int64)
        return question, np.frombuffer(self._side, np.uint8)[rows].astype(np.int64), rows

    def _first(self, keys: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        first = np.full(2 * len(self._questions), np.iinfo(np.int64).max)
        np.minimum.at(first, keys, rows)
        return first


def _drop_near(stream: Callable[[], Iterable[StreamedRow]], near: NearDuplicateIndex, analysis: Analysis) -> None:
    candidates = near.candidates(analysis.left()) if analysis.rows else analysis.left()
    if not candidates.any():
        return
    for row, pair in enumerate(stream()):
        if candidates[row] and (alike := near.look_up(row, _texts(pair.sample))):
            analysis.drop(row, "near_duplicate", of_row=alike.of, similarity=alike.similarity)
