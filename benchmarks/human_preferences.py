"""Human preferences of several sources as files for `recipes/human-preferences.yaml`.

    python benchmarks/human_preferences.py DATA FOLDER

reads, of the folder DATA: hh-rlhf (`hh_rlhf/pairs_2000.jsonl.gz`), PandaLM's test set with its three annotators
(`pandalm/testset-v1.json`; two of them have to prefer the same answer) and LLMBar (`llmbar/**/dataset.json`, with
FairEval, LLMEval^2 and MT-Bench as it has them). It writes pairs with a `source` in each row:

- `held-out.jsonl`: an eighth of the prompts of every source, for `benchmark` alone;
- `pairs.jsonl`: 70% of the other prompts; `judgments.jsonl`: the rest of them, for the judge;
- `pairs-SOURCE.jsonl`: those of `pairs.jsonl` that are of one source.

A prompt is in one of the first three files, whichever sources it is in; which one is decided by its hash.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Pair = dict[str, Any]
HELD_OUT, JUDGED = 0.125, 0.3


def hh(data: Path) -> Iterator[Pair]:
    with gzip.open(data / "hh_rlhf" / "pairs_2000.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            turns, chosen = dialogue(row["chosen"])
            others, rejected = dialogue(row["rejected"])
            if turns == others:
                yield {"prompt": turns, "chosen": chosen, "rejected": rejected}


def dialogue(text: str) -> tuple[list[dict[str, str]], str]:
    """The turns of a transcript of hh-rlhf but its last, and the text of that one."""
    turns = []
    for part in text.split("\n\nHuman:")[1:]:
        asked, *answered = part.split("\n\nAssistant:")
        turns.append({"role": "user", "content": asked.strip()})
        turns += [{"role": "assistant", "content": one.strip()} for one in answered]
    return (turns[:-1], turns[-1]["content"]) if turns and turns[-1]["role"] == "assistant" else (turns, "")


def pandalm(data: Path) -> Iterator[Pair]:
    for row in json.loads((data / "pandalm" / "testset-v1.json").read_text(encoding="utf-8")):
        preferred, votes = Counter(str(row[f"annotator{n}"]) for n in (1, 2, 3)).most_common(1)[0]
        if votes > 1 and preferred in ("1", "2"):
            prompt = f"{row['instruction']}\n\n{row['input']}".strip()
            yield pair(prompt, row["response1"], row["response2"], preferred == "1")


def llmbar(data: Path) -> Iterator[Pair]:
    for file in sorted((data / "llmbar").rglob("dataset.json")):
        if "CaseStudy" not in file.parts:
            for row in json.loads(file.read_text(encoding="utf-8")):
                yield pair(row["input"], row["output_1"], row["output_2"], row["label"] == 1)


def pair(prompt: str, first: str, second: str, first_is_better: bool) -> Pair:
    better, worse = (first, second) if first_is_better else (second, first)
    return {"prompt": prompt, "chosen": better, "rejected": worse}


def told_apart(one: Any, other: Any) -> bool:
    """Some files have numbers or nothing where an answer is expected."""
    return all(isinstance(text, str) and text.strip() for text in (one, other)) and one != other


SOURCES = {"hh": hh, "pandalm": pandalm, "llmbar": llmbar}


def part_of(prompt: Any) -> str:
    """Which file has the pairs of a prompt."""
    digest = hashlib.sha256(json.dumps(prompt).encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < HELD_OUT:
        return "held-out"
    return "judgments" if (place - HELD_OUT) / (1 - HELD_OUT) < JUDGED else "pairs"


def files(data: Path) -> dict[str, list[Pair]]:
    found: dict[str, list[Pair]] = defaultdict(list)
    for source, read in SOURCES.items():
        for row in read(data):
            if not told_apart(row["chosen"], row["rejected"]):
                continue
            part, row = part_of(row["prompt"]), {**row, "source": source}
            found[part].append(row)
            if part == "pairs":
                found[f"pairs-{source}"].append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, rows in files(given.data).items():
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (given.folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        print(f"{name}.jsonl: {len(rows)} pairs, {dict(Counter(row['source'] for row in rows))}")


if __name__ == "__main__":
    main()
