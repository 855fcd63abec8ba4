"""Arena-Hard's questions, answers and judgments, in the shapes of v0.1 and of v2."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from steerboard_figures.formats.fastchat import FAILED, judge_name, template_of, turns_of
from steerboard_figures.formats.records import (
    Answer,
    Judgment,
    Question,
    Unreadable,
    identifier,
    moment,
    named,
    optional_text,
    split_turns,
    status_of,
    text,
    texts,
    user,
)
from steerboard_statistics.benchmarks.arena_hard import verdict as verdict_of

# The baseline of v0.1, whose judgments do not name it.
BASELINE = "gpt-4-0314"


def question(row: Mapping[str, Any]) -> Question:
    """{uid, category, subcategory?, prompt}, or of v0.1 {question_id, category, cluster, turns: [{content}]}."""
    turns = row.get("turns")
    if turns is None:
        messages, follow_ups = [user(text(row, "prompt"))], list[str]()
    else:
        if not isinstance(turns, list):
            raise Unreadable("has no list in `turns`")
        contents = [turn.get("content") if isinstance(turn, dict) else turn for turn in turns]
        messages, follow_ups = split_turns(texts(contents, "turns"))
    category = optional_text(row, "subcategory") or optional_text(row, "category")
    return Question(_id(row), category, messages, follow_ups, None)


def answers(row: Mapping[str, Any]) -> list[Answer]:
    """{uid, model, messages: [{role, content}], tstamp}, where an answer is {answer: text} or a text; or of v0.1
    {question_id, model_id, choices: [{index, turns: [{content, token_len}]}]}."""
    model, at = named(row, "model", "model_id"), moment(row)
    if "choices" in row:
        choices = row["choices"]
        if not isinstance(choices, list) or not choices or not all(isinstance(choice, dict) for choice in choices):
            raise Unreadable("has no list of objects in `choices`")
        samples = [turns_of(choice.get("turns")) for choice in choices]
        return [Answer(model, _id(row), None, n, turns, tokens, at) for n, (turns, tokens) in enumerate(samples)]
    messages = row.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise Unreadable("has no list of objects in `messages`")
    prompts = [message.get("content") for message in messages if message.get("role") == "user"]
    given = [message.get("content") for message in messages if message.get("role") == "assistant"]
    turns = texts([content.get("answer") if isinstance(content, dict) else content for content in given], "messages")
    metadata = row.get("metadata")
    tokens = metadata.get("token_len") if isinstance(metadata, dict) and len(turns) == 1 else None
    counted = isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens < 2**31
    prompt = prompts[0] if prompts and isinstance(prompts[0], str) else None
    return [Answer(model, _id(row), prompt, 0, turns, [int(tokens)] if counted and tokens is not None else None, at)]


def judgment(row: Mapping[str, Any]) -> list[Judgment]:
    """{uid or question_id, model, judge, baseline?, games: [game, game]}, a game {score: `A>>B`, judgment}, or null.

    In the first game the baseline is A, in the second the model.
    """
    games = row.get("games")
    if not isinstance(games, list) or not 1 <= len(games) <= 2:
        raise Unreadable("has no list of two games in `games`")
    model, baseline = named(row, "model"), None if row.get("baseline") is None else named(row, "baseline")
    if model == baseline:
        raise Unreadable("compares a model with itself")
    judgments = []
    for place, game in enumerate(games):
        if game is not None and not isinstance(game, dict):
            raise Unreadable("has a game that is not an object")
        label = None if game is None else game.get("score")
        if isinstance(label, float) and math.isnan(label):
            label = None
        if label is not None and not isinstance(label, str):
            raise Unreadable(f"has {label!r} for the score of a game"[:200])
        read = verdict_of(label)
        value, weight = (None, 1) if read is None else read
        if _judgment(game) == FAILED or status_of(game or {}, "ok") != "ok":
            value = None
        if value is not None and place == 0:
            value = 1 - value
        unread = "error" if game is None else "unparsed"
        judgments.append(
            Judgment(
                model=model,
                other=baseline,
                question_id=_id(row),
                prompt=None,
                turn=1,
                value=value,
                status="ok" if value is not None else status_of(game or {}, unread),
                a_first=place == 1,
                weight=weight,
                raw=_judgment(game),
                detail="the file has no game of this order" if game is None else None,
                judge=judge_name(row),
                template=template_of(row),
                at=moment(row),
                against_baseline=baseline is None,
            )
        )
    return judgments


def answer_row(
    question_id: str, answer_id: str, model: str, inputs: list[str], turns: list[str], tokens: int | None, tstamp: float
) -> dict[str, Any]:
    """`inputs`: the user's turns."""
    messages: list[dict[str, Any]] = []
    for prompt, answer in zip(inputs, turns, strict=False):
        messages += [user(prompt), {"role": "assistant", "content": {"answer": answer}}]
    row = {"uid": question_id, "ans_id": answer_id, "model": model, "messages": messages, "tstamp": tstamp}
    return row if tokens is None else {**row, "metadata": {"token_len": tokens}}


def judgment_row(
    question_id: str,
    category: str | None,
    models: tuple[str, str],
    judge: str,
    games: Mapping[bool, Mapping[str, Any]],
    tstamp: float,
) -> dict[str, Any]:
    """`models`: model and baseline. `games`: by whether the model is A, with value, weight, status and raw."""
    written: list[dict[str, Any] | None] = []
    for first in (False, True):
        game = games.get(first)
        if game is None or (game["status"] == "error" and game["raw"] is None):
            written.append(None)
            continue
        row: dict[str, Any] = {"score": _label(game, first), "judgment": game["raw"]}
        written.append(row if game["status"] == "ok" else {**row, "status": game["status"]})
    if True not in games:
        written.pop()
    return {
        "uid": question_id,
        "category": category,
        "judge": judge,
        "model": models[0],
        "baseline": models[1],
        "games": written,
        "tstamp": tstamp,
    }


def _label(game: Mapping[str, Any], first: bool) -> str | None:
    if game["value"] is None:
        return None
    for_a = game["value"] if first else 1 - game["value"]
    if for_a == 0.5:
        return "A=B"
    sign = ">" * (2 if game["weight"] > 1 else 1)
    return f"A{sign}B" if for_a > 0.5 else f"B{sign}A"


def _judgment(game: Mapping[str, Any] | None) -> str | None:
    """v2 keeps {answer: text}, v0.1 the text."""
    judgment = (game or {}).get("judgment")
    if isinstance(judgment, dict):
        judgment = judgment.get("answer")
    return text({"judgment": judgment}, "judgment") if isinstance(judgment, str) else None


def _id(row: Mapping[str, Any]) -> str | None:
    return identifier(row, "uid", "question_id")
