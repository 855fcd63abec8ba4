"""The labelled samples, written to a file and read by the product's own import, with their search index.

Words are drawn from a Zipf distribution, as in real text: the first of them occur in most rows, the last in a few.
"""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import numpy as np
import orjson
from harness.measure import say

DATASET = "labelled-large"
SOURCES = ("imported", "generated", "chosen", "rejected", "written")
_VOCABULARY = 30_000
_PROMPT_WORDS, _RESPONSE_WORDS = (12, 36), (15, 55)
_CHUNK = 20_000
_INDEX_SECONDS = 7200.0


def vocabulary() -> list[str]:
    """The most frequent first; the same in every run."""
    rng = np.random.default_rng(7)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        length = int(rng.integers(3, 11))
        words["".join(rng.choice(letters, length))] = None
    return list(words)


def write_samples(path: Path, rows: int) -> None:
    """jsonl with the columns prompt, response, reward and source."""
    rng = np.random.default_rng(0)
    words = np.array(vocabulary())
    weights = 1.0 / np.arange(1, len(words) + 1)
    shares = np.cumsum(weights / weights.sum())
    with path.open("wb") as file:
        for begin in range(0, rows, _CHUNK):
            count = min(_CHUNK, rows - begin)
            prompts = rng.integers(*_PROMPT_WORDS, count)
            responses = rng.integers(*_RESPONSE_WORDS, count)
            drawn = words[np.searchsorted(shares, rng.random(int(prompts.sum() + responses.sum())))].tolist()
            rewards = np.round(rng.normal(0.4, 1.3, count), 4).tolist()
            sources = rng.choice(SOURCES, count, p=(0.4, 0.3, 0.15, 0.1, 0.05)).tolist()
            at, lines = 0, []
            for row in range(count):
                middle = at + int(prompts[row])
                end = middle + int(responses[row])
                lines.append(
                    orjson.dumps(
                        {
                            "prompt": " ".join(drawn[at:middle]),
                            "response": " ".join(drawn[middle:end]),
                            "reward": rewards[row],
                            "source": sources[row],
                        }
                    )
                )
                at = end
            file.write(b"\n".join(lines) + b"\n")


def import_samples(client: httpx.Client, path: Path, name: str) -> float:
    """Imports the file by the API, as a person would. Returns the seconds."""
    began = time.monotonic()
    with path.open("rb") as file:
        answer = client.post(
            "datasets/import", data={"name": name, "kind": "labelled"}, files={"file": (f"{name}.jsonl", file)}
        )
    if answer.status_code != 201:
        raise SystemExit(f"the import of {name} failed: {answer.status_code} {answer.text[:1000]}")
    return time.monotonic() - began


def wait_for_index(client: httpx.Client, name: str) -> float:
    """Waits until every row can be searched. Returns the seconds."""
    began = time.monotonic()
    reported = began
    while True:
        state = client.get(f"datasets/{name}/statistics").raise_for_status().json()
        if state["search"]["ready"]:
            return time.monotonic() - began
        if time.monotonic() - began > _INDEX_SECONDS:
            raise SystemExit(f"the search index of {name} is not ready: {state['search']}")
        if time.monotonic() - reported > 15:
            reported = time.monotonic()
            say(f"  search index: {state['search']['done']:,} of {state['rows']:,} rows")
        time.sleep(0.5)
