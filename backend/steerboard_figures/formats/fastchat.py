"""FastChat's questions, answers, and judgments of single answers and of pairs (fastchat/llm_judge), and the answers of
the Vicuna announcement, which are of one turn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from steerboard_figures.formats.records import (
    JUDGES,
    Answer,
    Judgment,
    Question,
    Unreadable,
    identifier,
    moment,
    named,
    named_judge,
    optional_text,
    question_id_out,
    score,
    split_turns,
    status_of,
    text,
    texts,
    turn_of,
)

UNPARSED = -1
_LONGEST_TEMPLATE = 200
_LOWEST, _HIGHEST = 1, 10
# What FastChat writes as the judgment when the endpoint gave none.
FAILED = "$ERROR$"
WINNERS = {"model_1": 1.0, "tie": 0.5, "model_2": 0.0}


def question(row: Mapping[str, Any]) -> Question:
    """{question_id, category, turns: [text], reference?}; also `prompt` for `turns` and `text` for a single turn."""
    given = row.get("turns", row.get("prompt"))
    messages, follow_ups = split_turns(texts(given, "turns") if given is not None else [text(row, "text")])
    reference = row.get("reference")
    return Question(
        identifier(row, "question_id", "prompt_id"),
        optional_text(row, "category"),
        messages,
        follow_ups,
        texts(reference, "reference") if reference else None,
    )


def answers(row: Mapping[str, Any]) -> list[Answer]:
    """{question_id, model_id, choices: [{index, turns: [text]}], tstamp}, or {question_id, model_id, text}."""
    model, question_id, at = named(row, "model_id", "model"), identifier(row, "question_id"), moment(row)
    answer_id = identifier(row, "answer_id")
    if "choices" not in row:
        return [Answer(model, question_id, None, 0, [text(row, "text")], at=at, answer_id=answer_id)]
    choices = row["choices"]
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, dict) for choice in choices):
        raise Unreadable("has no list of objects in `choices`")
    samples = []
    for place, choice in enumerate(choices):
        turns, tokens = turns_of(choice.get("turns"))
        samples.append(Answer(model, question_id, None, place, turns, tokens, at, answer_id))
    return samples


def turns_of(value: object) -> tuple[list[str], list[int] | None]:
    """Turns as texts or as {content, token_len}. A null turn ends them: that answer was never made."""
    if not isinstance(value, list):
        raise Unreadable("has no list in `turns`")
    turns: list[str] = []
    tokens: list[int] = []
    for turn in value:
        content = turn.get("content") if isinstance(turn, dict) else turn
        if content is None:
            break
        turns += texts([content], "turns")
        length = turn.get("token_len") if isinstance(turn, dict) else None
        if isinstance(length, int) and not isinstance(length, bool) and 0 <= length < 2**31:
            tokens.append(length)
    if not turns:
        raise Unreadable("has no answer in `turns`")
    return turns, tokens if len(tokens) == len(turns) else None


def judge_name(row: Mapping[str, Any]) -> str | None:
    """The model of `judge`, or of another field for who judged: [model, prompt template], or a text."""
    return named_judge(row, *JUDGES)


def template_of(row: Mapping[str, Any]) -> str | None:
    judge = next((row[name] for name in JUDGES if row.get(name) is not None), None)
    template = judge[1] if isinstance(judge, list) and len(judge) > 1 else None
    return template if isinstance(template, str) and 0 < len(template) <= _LONGEST_TEMPLATE else None


def _turn(row: Mapping[str, Any]) -> tuple[int, bool]:
    """(the turn, whether the row has one). Raises `Unreadable` for one without a value, which could be any."""
    if "turn" in row and row["turn"] is None:
        raise Unreadable("has no value in `turn`")
    return turn_of(row), "turn" in row


def single(row: Mapping[str, Any]) -> list[Judgment]:
    """{question_id, model, judge: [model, template], judgment, score, turn, tstamp}; score -1 or null: not parsed.

    The stored score, from 1 to 10, is kept as it is, whatever the judgment's text. Rows of arena-bench
    have no judge, turn or time.
    """
    if "score" not in row:
        raise Unreadable("has no `score`")
    value, raw = score(row, "score", _LOWEST, _HIGHEST, UNPARSED), optional_text(row, "judgment")
    # A number next to a refusal or an error is no verdict.
    parsed = value is not None and value != UNPARSED and status_of(row, "ok") == "ok" and raw != FAILED
    turn, turn_given = _turn(row)
    return [
        Judgment(
            model=named(row, "model", "model_id"),
            other=None,
            question_id=identifier(row, "question_id"),
            prompt=None,
            turn=turn,
            turn_given=turn_given,
            value=value if parsed else None,
            status="ok" if parsed else status_of(row, "error" if raw == FAILED else "unparsed"),
            raw=raw,
            detail=None if parsed else optional_text(row, "detail"),
            judge=judge_name(row),
            template=template_of(row),
            at=moment(row),
        )
    ]


def pair(row: Mapping[str, Any]) -> list[Judgment]:
    """{question_id, model_1, model_2, g1_winner, g2_winner, g1_judgment, g2_judgment, judge, turn, tstamp}.

    Winners are named by model (model_1, model_2, tie, error), not by place: in game 1 model_1 is shown first, in
    game 2 model_2. A file of one order has no g2_winner; null is a game without a verdict.
    """
    judgments = []
    turn, turn_given = _turn(row)
    for game, first in ((1, True), (2, False)):
        if f"g{game}_winner" not in row:
            if game == 1:
                raise Unreadable("has no `g1_winner`")
            continue
        winner = row[f"g{game}_winner"]
        if winner is None or (isinstance(winner, float) and math.isnan(winner)):
            winner = "error"
        word = winner.strip().lower() if isinstance(winner, str) else None
        if word not in (*WINNERS, "error"):
            raise Unreadable(f"has {winner!r} in `g{game}_winner`, not model_1, model_2, tie or error"[:200])
        value, raw = WINNERS.get(str(word)), optional_text(row, f"g{game}_judgment")
        stated = {"status": row.get(f"g{game}_status") or row.get("status")}
        status = "error" if raw == FAILED else "unparsed"
        if raw == FAILED or status_of(stated, "ok") != "ok":
            value = None
        judgments.append(
            Judgment(
                model=named(row, "model_1"),
                other=named(row, "model_2"),
                question_id=identifier(row, "question_id"),
                prompt=None,
                turn=turn,
                turn_given=turn_given,
                value=value,
                status="ok" if value is not None else status_of(stated, status),
                a_first=first,
                raw=raw,
                judge=judge_name(row),
                template=template_of(row),
                at=moment(row),
            )
        )
    if judgments[0].model == judgments[0].other:
        raise Unreadable("compares a model with itself")
    return judgments


def answer_row(question_id: str, answer_id: str, model: str, samples: list[list[str]], tstamp: float) -> dict[str, Any]:
    """`samples`: the turns of each choice."""
    return {
        "question_id": question_id_out(question_id),
        "answer_id": answer_id,
        "model_id": model,
        "choices": [{"index": index, "turns": turns} for index, turns in enumerate(samples)],
        "tstamp": tstamp,
    }


def single_row(question_id: str, model: str, judge: str, verdict: Mapping[str, Any]) -> dict[str, Any]:
    """`verdict`: turn, value, status, raw, detail, tstamp."""
    template = "single-v1" if verdict["turn"] == 1 else "single-v1-multi-turn"
    row = {
        "question_id": question_id_out(question_id),
        "model": model,
        "judge": [judge, template],
        "judgment": verdict["raw"] if verdict["raw"] is not None else (FAILED if verdict["status"] == "error" else ""),
        "score": _plain(verdict["value"]) if verdict["value"] is not None else UNPARSED,
        "turn": verdict["turn"],
        "tstamp": verdict["tstamp"],
    }
    if verdict["status"] != "ok":
        row |= {"status": verdict["status"], "detail": verdict["detail"]}
    return row


def pair_row(
    question_id: str, models: tuple[str, str], judge: str, turn: int, games: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    """`games`: 1 and 2 with value, status, raw, tstamp."""
    row: dict[str, Any] = {
        "question_id": question_id_out(question_id),
        "model_1": models[0],
        "model_2": models[1],
        "judge": [judge, "pair-v2" if turn == 1 else "pair-v2-multi-turn"],
        "turn": turn,
        "tstamp": max(game["tstamp"] for game in games.values()),
    }
    names = {value: name for name, value in WINNERS.items()}
    for place, game in sorted(games.items()):
        row[f"g{place}_winner"] = names.get(game["value"], "error")
        row[f"g{place}_judgment"] = game["raw"] or ""
        if game["status"] != "ok":
            row[f"g{place}_status"] = game["status"]
    return row


def _plain(value: float) -> float | int:
    return int(value) if value.is_integer() else value
