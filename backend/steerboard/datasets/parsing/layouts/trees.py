"""OpenAssistant's trees of messages, in which people ranked the replies to a prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from steerboard.datasets.parsing.arranged import Removed
from steerboard.datasets.parsing.layouts.layout import Convert, Layout, Row, without
from steerboard_files.records import Problem

# Twenty ranks are 190 pairs, each with the whole conversation before it.
MOST_RANKED = 20
_TREE = "prompt"
_ROLES = {"prompter": "user", "assistant": "assistant"}


def _trees(rows: Sequence[Row]) -> Convert | None:
    return _pairs if any(map(_has_ranks, rows)) else None


def _has_ranks(row: Row) -> bool:
    return "message_tree_id" in row and any(len(_ranked(message)) > 1 for message, _ in _messages(row.get(_TREE)))


def _pairs(_: int, row: Row) -> Iterator[Row | Problem | Removed]:
    """Each two replies to the same message that were ranked, the better one as chosen."""
    if not isinstance(row.get(_TREE), dict):
        yield Problem("bad_row", f"{_TREE}: is not a tree of messages, unlike other rows")
        return
    rest = without(row, _TREE)
    any_pair = False
    for message, before in _messages(row[_TREE]):
        ranked = _ranked(message)
        if len(ranked) > MOST_RANKED:
            yield Problem("bad_row", f"has more than {MOST_RANKED} ranked replies to one message")
            return
        for better, worse in combinations(sorted(ranked, key=lambda reply: reply["rank"]), 2):
            any_pair = True
            if better["rank"] == worse["rank"]:
                yield Removed("tie")
                continue
            yield {
                **rest,
                "prompt": before,
                "chosen": better["text"],
                "rejected": worse["text"],
                "rank_chosen": better["rank"],
                "rank_rejected": worse["rank"],
            }
    if not any_pair:
        yield Removed("unranked")


def _messages(tree: Any) -> Iterator[tuple[Row, list[Row]]]:
    """(message, the turns up to and with it) of all that were not deleted."""
    waiting: list[tuple[Any, list[Row]]] = [(tree, [])]
    while waiting:
        message, before = waiting.pop()
        if not _is_message(message):
            continue
        turns = [*before, {"role": _ROLES[message["role"]], "content": message["text"]}]
        yield message, turns
        replies = message.get("replies")
        waiting += [(reply, turns) for reply in reversed(replies if isinstance(replies, list) else [])]


def _ranked(message: Row) -> list[Row]:
    """Answers to a message that have a rank, 0 being the best one."""
    replies = message.get("replies")
    return [
        reply
        for reply in (replies if isinstance(replies, list) else [])
        if _is_message(reply)
        and reply["role"] == "assistant"
        and isinstance(reply.get("rank"), int)
        and not isinstance(reply["rank"], bool)
    ]


def _is_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("text"), str)
        and value.get("role") in _ROLES
        and not value.get("deleted")
    )


TREES = (
    Layout("OpenAssistant", "OpenAssistant's trees of messages; every two ranked replies become a preference", _trees),
)
