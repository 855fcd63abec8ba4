"""What makes two results of a task comparable item by item, as hashes: its items, how they were asked, and how answers
were scored. Prompts are compared as they are before a chat template, which is each model's own."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

Sample = Mapping[str, Any]

# The entries of a task's config that decide how an answer is scored.
_SCORING = ("output_type", "repeats", "filter_list", "metric_list", "process_results")


class Prompts:
    """What prompts were before a model's template. It replaces the method by which the harness applies that."""

    def __init__(self, model: Any) -> None:
        self._before: dict[str, str] = {}
        apply = getattr(model, "apply_chat_template", None)
        if apply is None:
            return

        def remember(turns: list[dict[str, str]], **options: Any) -> str:
            text: str = apply(turns, **options)
            self._before[_hash(text)] = _hash(turns)
            return text

        model.apply_chat_template = remember

    def before(self, text: str) -> str:
        """The hash of the turns that the text was made of, or else of the text."""
        digest = _hash(text)
        return self._before.get(digest, digest)


def items_hash(samples: Sequence[Sequence[Sample]]) -> str:
    """The hash of the items and their right answers; `samples`: of each part of a group."""
    return _hash([[sample["doc_hash"], sample["target_hash"]] for part in samples for sample in _once(part)])


def asked_hash(samples: Sequence[Sequence[Sample]], prompts: Prompts) -> str:
    """The hash of every request of every item: its prompt, and the answer to be measured or the generation options."""
    requests = (request for part in samples for sample in _once(part) for request in sample["arguments"])
    return _hash([[prompts.before(prompt), *rest] for prompt, *rest in requests])


def scored_hash(tasks: Iterable[Any]) -> str:
    """The hash of filters, metrics and their code. What the harness defines itself is known by its version."""
    return _hash(
        [{name: _written(task.get_config(name)) for name in _SCORING} | {"by": _written(type(task))} for task in tasks]
    )


def _once(samples: Sequence[Sample]) -> Iterator[Sample]:
    """Each item, in order: there is a sample for every filter."""
    mine = [sample for sample in samples if sample["filter"] == samples[0]["filter"]]
    return iter(sorted(mine, key=lambda sample: sample["doc_id"]))


def _written(value: Any) -> Any:
    """Functions by their name and the text of their file: a change of anything that they call there is a change."""
    if isinstance(value, Mapping):
        return {str(name): _written(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_written(part) for part in value]
    if isinstance(value, partial):
        return [_written(part) for part in (value.func, value.args, value.keywords)]
    if not callable(value):
        return value
    # The harness keeps a function that is a metric as its `__call__`.
    function = getattr(value, "__self__", value)
    try:
        text = Path(inspect.getfile(function)).read_bytes()
    except (TypeError, OSError):
        text = b""
    return [getattr(function, "__qualname__", type(function).__qualname__), hashlib.sha256(text).hexdigest()]


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=lambda other: type(other).__qualname__)
    return hashlib.sha256(text.encode()).hexdigest()
