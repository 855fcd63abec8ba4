"""Pair reviews of the Vicuna announcement (lm-sys/vicuna-blog-eval): one request, a score for each, from 1
to 10 and at times 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steerboard_figures.formats.records import (
    Judgment,
    Unreadable,
    identifier,
    moment,
    optional_text,
    question_id_out,
    score,
    status_of,
)

_UNPARSED = -1
# Behind a reviewer's name, the kind of questions that its prompt is for: those of the announcement's prompts, and the
# categories of its questions.
_KINDS = (
    *("default", "generic", "general", "coding", "math"),
    *("knowledge", "common-sense", "fermi", "counterfactual", "roleplay", "writing"),
)


def review(row: Mapping[str, Any]) -> list[Judgment]:
    """{question_id, answer1_id, answer2_id, text, score: [first, second]}. Models are known by their answers' ids only;
    our own exports name them too, in `model_1` and `model_2`.

    [-1, -1] was not parsed. Both scores are kept, as of a judge who sees all answers at once.
    """
    scores = row.get("score")
    if scores is not None and (not isinstance(scores, list) or len(scores) != 2):
        raise Unreadable("has no list of two numbers in `score`")
    values = [score({"score": written}, "score", 0, 10, _UNPARSED) for written in scores or (None, None)]
    parsed = None not in values and _UNPARSED not in values and status_of(row, "ok") == "ok"
    judge, reviewer = _reviewer(row)
    judgments = []
    for place, value in enumerate(values):
        answer_id = identifier(row, f"answer{place + 1}_id")
        judgments.append(
            Judgment(
                model=optional_text(row, f"model_{place + 1}"),
                other=None,
                question_id=identifier(row, "question_id"),
                prompt=None,
                turn=1,
                value=value if parsed else None,
                status="ok" if parsed else status_of(row, "unparsed"),
                a_first=place == 0,
                raw=optional_text(row, "text"),
                judge=judge,
                template=reviewer,
                at=moment(row),
                answer_id=answer_id,
                place=place,
            )
        )
    if judgments[0].answer_id is not None and judgments[0].answer_id == judgments[1].answer_id:
        raise Unreadable("compares an answer with itself")
    return judgments


def _reviewer(row: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """(judge, reviewer). The announcement numbers its reviewers, one for each kind of question; `reviewer.jsonl` names
    them gpt-4-0328-default, -coding and -math, other files -generic."""
    reviewer = identifier(row, "reviewer_id")
    if reviewer is None or reviewer.isdecimal():
        return None, reviewer
    return reviewer_name(reviewer), None


def reviewer_name(reviewer: str) -> str:
    """The reviewer without the kind of questions, as which one reviewer goes by several names: gpt-4-0328-coding is
    gpt-4-0328."""
    kind = next(
        (suffix for suffix in _KINDS if reviewer.lower().endswith(f"-{suffix}") and len(reviewer) > len(suffix) + 1),
        None,
    )
    return reviewer if kind is None else reviewer[: -len(kind) - 1]


def review_row(
    question_id: str,
    models: tuple[str, str],
    answer_ids: tuple[str, str],
    reviewer: str,
    verdicts: tuple[Mapping[str, Any], ...],
) -> dict[str, Any]:
    """`verdicts`: value, status, raw and tstamp of the answer shown first and of the other."""
    scores = [verdict["value"] for verdict in verdicts]
    row: dict[str, Any] = {"question_id": question_id_out(question_id)}
    for place in (0, 1):
        row |= {f"answer{place + 1}_id": answer_ids[place], f"model_{place + 1}": models[place]}
    row |= {"reviewer_id": reviewer, "text": verdicts[0]["raw"], "tstamp": verdicts[0]["tstamp"]}
    row["score"] = [_UNPARSED, _UNPARSED] if None in scores else scores
    return row if verdicts[0]["status"] == "ok" else {**row, "status": verdicts[0]["status"]}
