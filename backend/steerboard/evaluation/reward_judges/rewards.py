"""Answers of a run as questions to a judge, and its verdicts as rewards. Pure."""

from __future__ import annotations

import math
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from steerboard.evaluation.judges import styles
from steerboard.evaluation.judges.both_orders import OrderedVerdict, together
from steerboard.evaluation.judges.judge_inputs import JudgedEntrant, JudgedPrompt, JudgeInputs
from steerboard.evaluation.judges.requests import JudgeVerdict, Question, key_of
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.evaluation.judges.verdict_parser import HIGHEST, LOWEST
from steerboard_contracts.online.judge_reward import PinnedJudge


@dataclass(frozen=True)
class GroupToJudge:
    """The answers to one prompt, and its reference answer where it has one. `places`: of the answers in the batch."""

    messages: Sequence[Mapping[str, str]]
    reference: str | None
    answers: Sequence[str]
    places: Sequence[int]


def questions(
    judge: PinnedJudge, settings: JudgeSettings, groups: Sequence[GroupToJudge]
) -> Iterator[tuple[str, Question]]:
    """Everything that the judge is asked, and under which key its answer is kept. An entrant is the place of an answer
    in the batch."""
    for number, group in enumerate(groups):
        prompt = JudgedPrompt(number, None, group.messages, (), None if group.reference is None else [group.reference])
        entrants = [JudgedEntrant(_entrant(place), str(at)) for at, place in enumerate(group.places)]
        answers = {(entrant.id, number): [text] for entrant, text in zip(entrants, group.answers, strict=True)}
        asked = styles.questions(judge.style, settings, judge.endpoint.model, JudgeInputs([prompt], entrants, answers))
        for question in asked:
            yield key_of(judge.endpoint.base_url, question.request), question


def rewards(judge: PinnedJudge, groups: Sequence[GroupToJudge], verdicts: Iterable[JudgeVerdict]) -> list[float]:
    """The rewards by place in the batch, from 0 to 1; NaN for an answer without a usable verdict.

    An answer alone: its score of 1 to 10, less 1, over 9. In a group: the share of the other answers with a verdict
    that are ranked lower, ties 1/2.
    """
    given = list(verdicts)
    size = sum(len(group.places) for group in groups)
    if judge.style == "pairwise":
        return _from_pairs(given, size)
    scores = [math.nan] * size
    for verdict in given:
        if verdict.value is not None:
            scores[verdict.place.a.int] = verdict.value
    if not judge.groupwise:
        return [(score - LOWEST) / (HIGHEST - LOWEST) for score in scores]
    shares = [math.nan] * size
    for group in groups:
        for place in group.places:
            others = [scores[other] for other in group.places if other != place and not math.isnan(scores[other])]
            if others and not math.isnan(scores[place]):
                shares[place] = _mean(_won(scores[place], other) for other in others)
    return shares


def _from_pairs(verdicts: Sequence[JudgeVerdict], size: int) -> list[float]:
    orders: dict[tuple[int, int], list[OrderedVerdict]] = defaultdict(list)
    for verdict in verdicts:
        place = verdict.place
        assert place.b is not None
        orders[place.a.int, place.b.int].append(OrderedVerdict(verdict.value, place.a_first is False, verdict.weight))
    won: list[list[float]] = [[] for _ in range(size)]
    for (one, other), both in orders.items():
        merged = together(both, "pairwise")
        # A verdict of one order alone has the bias of its position.
        if merged is not None and not merged.half:
            won[one].append(merged.value)
            won[other].append(1.0 - merged.value)
    return [_mean(shares) for shares in won]


def _won(own: float, other: float) -> float:
    return 0.5 if own == other else float(own > other)


def _mean(values: Iterable[float]) -> float:
    given = list(values)
    return sum(given) / len(given) if given else math.nan


def _entrant(place: int) -> uuid.UUID:
    return uuid.UUID(int=place)
