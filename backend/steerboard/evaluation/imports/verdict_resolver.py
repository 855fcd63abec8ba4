"""Rows of a file of judgments as verdicts on an evaluation's prompts and entrants."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from sqlalchemy.orm import Session

from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.imports.answers import enter
from steerboard.evaluation.imports.matching import Entrants, Prompts
from steerboard.evaluation.imports.schemas import JudgmentsForm
from steerboard.evaluation.tables import Entrant, Evaluation
from steerboard.evaluation.unmatched import LeftOut
from steerboard.platform.names import valid_name
from steerboard_contracts.errors import BadInput
from steerboard_figures.benchmark_files.judges import judged_item, labels
from steerboard_figures.formats.arena_hard import BASELINE
from steerboard_figures.formats.detection import JUDGMENTS, read
from steerboard_figures.formats.records import Judgment
from steerboard_files.records import Problem, Source

Item = tuple[int, int, uuid.UUID, uuid.UUID | None, bool]
"""(position, turn, a, b, whether a is first or it is not known), as in the unique index of the table."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """`b` None: a score of `a` alone."""

    judgment: Judgment
    position: int
    a: Entrant
    b: Entrant | None

    @property
    def item(self) -> Item:
        """The same of the same two entrants whichever of them the row names first."""
        first = True if self.judgment.a_first is None else self.judgment.a_first
        a, b = self.a.id, self.b.id if self.b else None
        if b is not None and self._turned:
            a, b, first = b, a, first if self.judgment.a_first is None else not first
        return self.position, self.judgment.turn, a, b, first

    @property
    def value(self) -> tuple[float, int] | None:
        """(value, weight) as `item` names the two entrants, None where none was parsed."""
        if self.judgment.value is None:
            return None
        return 1 - self.judgment.value if self._turned else self.judgment.value, self.judgment.weight

    @property
    def _turned(self) -> bool:
        return self.b is not None and self.b.id < self.a.id


class ImportedVerdicts:
    """Can be gone through several times, with the same verdicts in the same order.

    `rows` of the last time; `judges`: how many rows each judge of the file has, None for those that name no one;
    `added`: entrants that it brought.
    """

    def __init__(
        self, session: Session, evaluation: Evaluation, source: Source, format: str, form: JudgmentsForm
    ) -> None:
        self._session, self._evaluation = session, evaluation
        self._source, self._format, self._form = source, format, form
        self._prompts = Prompts.of(session, evaluation)
        self._entrants = Entrants(entrants_of(session, evaluation))
        self.added: list[Entrant] = []
        self._judges = self._whose()
        self.judges = Counter(self._judges)
        self.rows = 0

    def verdicts(self, left_out: LeftOut) -> Iterator[Resolved]:
        """What is about a prompt and entrants of the evaluation; `left_out` gets everything else."""
        self._prompts.again()
        reviewed: dict[int, set[uuid.UUID]] = {}
        judges, chosen = iter(self._judges), self.chosen
        self.rows = 0
        unread = False
        before: Counter[tuple[str | None, str | None]] = Counter()
        for line, row in read(self._source, JUDGMENTS[self._format]):
            self.rows += 1
            if isinstance(row, Problem):
                left_out.unreadable(line, row)
                unread = True
                continue
            first: Judgment = row[0]
            judge = next(judges)
            if self._form.model is not None and judge not in chosen:
                why = "names no judge, and others do" if judge is None else f"is a judgment of {judge}"
                left_out.no_match(line, first.model, first.question_id, why)
                continue
            if first.question_id is None and first.prompt is None:
                left_out.no_match(
                    line, first.model, None, "has no question id, and its position does not identify the question"
                )
                continue
            pair = first.model, first.other
            place = before[pair] if not unread else None
            position = self._prompts.find(first.question_id, first.prompt, place, pair)
            before[pair] += 1
            outcomes = [self._resolve(judgment, position) for judgment in row]
            resolved = [outcome for outcome in outcomes if isinstance(outcome, Resolved)]
            if len(resolved) == len(row):
                if self._format == "vicuna_review":
                    _of_one_pair(reviewed, resolved, self._source.label)
                yield from resolved
                continue
            # All of a row or none of it: the score of one of two answers means little without the other.
            judgment, why = next(
                (outcome, why) for outcome, why in zip(row, outcomes, strict=True) if isinstance(why, str)
            )
            left_out.no_match(line, judgment.model or judgment.answer_id, judgment.question_id, why)

    @property
    def chosen(self) -> list[str | None]:
        """The `judges` that were asked for; a judge whom two versions of a template make two is both."""
        model = self._form.model
        if model is None or self.judges.keys() <= {None}:
            return list(self.judges)
        return [name for name in self.judges if name is not None and (name == model or name.startswith(f"{model} ("))]

    def _whose(self) -> list[str | None]:
        """The judge of each row that can be read."""
        rows = (row for _, row in read(self._source, JUDGMENTS[self._format]))
        return labels([judged_item(row) for row in rows if not isinstance(row, Problem)])

    def _resolve(self, judgment: Judgment, position: int | None) -> Resolved | str:
        """The verdict, or why it does not belong here."""
        if position is None:
            what = "none of the prompts" if judgment.question_id is None else f"question {judgment.question_id}"
            return f"is about {what}" + ("" if judgment.question_id is None else ", which is not one of the prompts")
        if judgment.turn > self._prompts.turns[position]:
            return f"judges turn {judgment.turn} of a prompt that has {self._prompts.turns[position]}"
        a = self._judged(judgment)
        if a is None:
            return f"judges {judgment.model or f'answer {judgment.answer_id}'}, which is not an entrant"
        if judgment.other is None and not judgment.against_baseline:
            return Resolved(judgment, position, a, None)
        other = judgment.other or self._form.baseline or BASELINE
        b = self._named(other)
        if b is None:
            return f"compares with {other}, which is not an entrant"
        return "compares an entrant with itself" if a is b else Resolved(judgment, position, a, b)

    def _judged(self, judgment: Judgment) -> Entrant | None:
        if judgment.model is not None:
            return self._named(judgment.model)
        entrant = self._entrants.of_answer(judgment.answer_id)
        model = _reviewed(self._source.label, judgment.place)
        return entrant if entrant is not None or model is None else self._named(model)

    def _named(self, model: str) -> Entrant | None:
        entrant = self._entrants.find(model)
        if entrant is None and self._form.add_entrants:
            origin = {"file": self._source.label, "format": self._format, "model": model, "answers": 0}
            entrant = enter(self._session, self._evaluation, valid_name(model), model, None, origin)
            self._entrants.add(entrant)
            self.added.append(entrant)
        return entrant


def _of_one_pair(reviewed: dict[int, set[uuid.UUID]], review: Sequence[Resolved], label: str) -> None:
    """A review scores each answer in view of the other. Raises `BadInput` where a question has several pairs."""
    pair = {verdict.a.id for verdict in review}
    if reviewed.setdefault(review[0].position, pair) != pair:
        raise BadInput(
            f"{label} has reviews of several pairs of assistants on question {review[0].judgment.question_id}",
            code="several_pairs",
            hint="Import one file for each pair, each as a judge of its own.",
        )


def _reviewed(label: str, place: int) -> str | None:
    """The first or second model of `review_MODEL_MODEL.jsonl`; None for any other name."""
    parts = PurePath(label).name.removesuffix(".gz").removesuffix(".jsonl").split("_")
    return parts[1 + place] if len(parts) == 3 and parts[0] == "review" and all(parts) else None
