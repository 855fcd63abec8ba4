"""What an annotator submits, checked against what the campaign asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from steerboard.evaluation.ranking.errors import BadCorrection, BadRanks, BadScores
from steerboard.evaluation.ranking.questions import Question, checked
from steerboard.evaluation.ranking.schemas import Annotation


class TaskFormat(Protocol):
    """What a campaign asks. `points`: those of each criterion, by name; None where it is ranked."""

    @property
    def task_type(self) -> str: ...
    @property
    def answers(self) -> int: ...
    @property
    def points(self) -> dict[str, int | None]: ...
    @property
    def questions(self) -> Sequence[Question]: ...


def annotation_of(given: Annotation, task: TaskFormat) -> dict[str, Any]:
    """The task's columns `ranks`, `criteria_ranks`, `scores`, `both_bad`, `correction` and `replies`.

    Raises `BadRanks`, `BadScores`, `BadCorrection` and `BadReplies` for what is missing, and for what the campaign does
    not ask.
    """
    if given.correction is not None and task.task_type != "correction":
        raise BadCorrection("this campaign asks for no correction", hint="Leave `correction` out.")
    if given.scores and task.task_type != "likert":
        raise BadScores("this campaign asks for no scores", hint="Leave `scores` out.")
    if given.both_bad and task.task_type != "pairwise":
        raise BadRanks("only of two answers can both be bad", hint="Leave `both_bad` out.")
    columns: dict[str, Any] = {
        "ranks": None,
        "criteria_ranks": None,
        "scores": None,
        "both_bad": False,
        "correction": None,
        "replies": checked(given.replies, task.questions),
    }
    if task.task_type in ("ranking", "pairwise"):
        return columns | _ranking(given, task)
    if given.ranks is not None or given.criteria_ranks:
        raise BadRanks("this campaign asks for no ranks", hint="Leave `ranks` and `criteria_ranks` out.")
    if task.task_type == "correction":
        if given.correction is None or not given.correction.strip():
            raise BadCorrection(
                "`correction` is missing or empty", hint="Give the whole answer as it should be, or skip the item."
            )
        return columns | {"correction": given.correction}
    scores = _scores(given, task)
    ranks = {name: competition_ranks([-score for score in values], task.answers) for name, values in scores.items()}
    return columns | {"scores": scores, "criteria_ranks": ranks}


def _ranking(given: Annotation, task: TaskFormat) -> dict[str, Any]:
    ranks = _overall(given, task)
    if given.both_bad and ranks is not None and len(set(ranks)) > 1:
        raise BadRanks("one of two bad answers is not better", hint="Give equal ranks with `both_bad`.")
    return {"ranks": ranks, "criteria_ranks": _by_criterion(given, task) or None, "both_bad": given.both_bad}


def _overall(given: Annotation, task: TaskFormat) -> list[int] | None:
    if given.ranks is None and not task.points:
        raise BadRanks("`ranks` is missing", hint=f"Give {task.answers} ranks, in the order shown.")
    return competition_ranks(given.ranks, task.answers) if given.ranks is not None else None


def _by_criterion(given: Annotation, task: TaskFormat) -> dict[str, list[int]]:
    missing = [name for name in task.points if name not in given.criteria_ranks]
    unknown = [name for name in given.criteria_ranks if name not in task.points]
    if missing or unknown:
        wrong = f"no ranking by {missing[0]!r}" if missing else f"no criterion {unknown[0]!r} in this campaign"
        raise BadRanks(f"there is {wrong}", hint=f"Its criteria: {', '.join(task.points) or 'none'}.")
    return {name: competition_ranks(given.criteria_ranks[name], task.answers) for name in task.points}


def competition_ranks(ranks: list[int], answers: int) -> list[int]:
    """1 + how many are better, so 1, 2, 2, 4; the same order whatever numbers were given. Raises `BadRanks`."""
    if len(ranks) != answers:
        raise BadRanks(f"{len(ranks)} ranks for {answers} answers", hint="Give one per answer, in the order shown.")
    return [1 + sum(other < rank for other in ranks) for rank in ranks]


def _scores(given: Annotation, task: TaskFormat) -> dict[str, list[int]]:
    hint = f"Its criteria: {', '.join(task.points)}; give one score per answer, in the order shown."
    unknown = [name for name in given.scores if name not in task.points]
    if unknown:
        raise BadScores(f"there is no criterion {unknown[0]!r} in this campaign", hint=hint)
    for name, points in task.points.items():
        scores = given.scores.get(name, [])
        if len(scores) != task.answers:
            raise BadScores(f"{len(scores)} scores by {name!r} for {task.answers} answers", hint=hint)
        if points is not None and max(scores) > points:
            raise BadScores(f"the score {max(scores)} by {name!r} is above {points}", hint=hint)
    return {name: given.scores[name] for name in task.points}
