"""Human preferences of several sources as files for `recipes/human-preferences.yaml`.

    python benchmarks/human_preferences.py DATA FOLDER

reads, of the folder DATA:

- `hh`: hh-rlhf (`hh_rlhf/pairs_2000.jsonl.gz`), choices of people;
- `pandalm`: PandaLM's test set (`pandalm/testset-v1.json`), where two of three annotators prefer the same answer;
- `llmbar`: LLMBar (`llmbar/**/dataset.json`), with FairEval, LLMEval^2 and MT-Bench as it has them;
- `oasst`: ranked replies of OpenAssistant trees (`open_assistant/en_100_tree.jsonl`; the replies are a model's);
- `grades`: answers of five models whose grades by GPT-4 are at least three of ten points apart
  (`graded/arena_bench_graded.jsonl.gz`).

Pairs of more than 1,600 characters are left out, and no file has more of one source than `LIMITS`, so that no source
outweighs the others. It writes pairs with a `source` in each row:

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
from itertools import combinations
from operator import itemgetter
from pathlib import Path
from typing import Any

Pair = dict[str, Any]
HELD_OUT, JUDGED = 0.125, 0.3
LONGEST = 1600  # characters of a prompt with its longer answer: some 400 tokens
LIMITS = {"pairs": 500, "judgments": 200, "held-out": 120}  # pairs of one source
APART = 3  # grades of ten


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
        question, *answered = part.split("\n\nAssistant:")
        turns.append({"role": "user", "content": question.strip()})
        turns += [{"role": "assistant", "content": text.strip()} for text in answered]
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


def oasst(data: Path) -> Iterator[Pair]:
    for line in (data / "open_assistant" / "en_100_tree.jsonl").read_text(encoding="utf-8").splitlines():
        yield from ranked_replies(json.loads(line)["prompt"], [])


def ranked_replies(message: dict[str, Any], before: list[dict[str, str]]) -> Iterator[Pair]:
    """Pairs of the replies to each prompter's message of a tree; rank 0 is the best."""
    role = "user" if message["role"] == "prompter" else "assistant"
    turns = [*before, {"role": role, "content": message["text"]}]
    ranked = [reply for reply in message["replies"] if reply.get("rank") is not None]
    if role == "user":
        for better, worse in combinations(sorted(ranked, key=itemgetter("rank")), 2):
            yield {"prompt": turns, "chosen": better["text"], "rejected": worse["text"]}
    for reply in message["replies"]:
        yield from ranked_replies(reply, turns)


def grades(data: Path) -> Iterator[Pair]:
    answers: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with gzip.open(data / "graded" / "arena_bench_graded.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["gpt4_score"] is not None:
                answers[row["prompt"]].append(row)
    for prompt, rows in answers.items():
        for first, second in combinations(rows, 2):
            if abs(first["gpt4_score"] - second["gpt4_score"]) >= APART:
                first_is_better = first["gpt4_score"] > second["gpt4_score"]
                yield pair(prompt, first["response"], second["response"], first_is_better)


def pair(prompt: str, first: str, second: str, first_is_better: bool) -> Pair:
    better, worse = (first, second) if first_is_better else (second, first)
    return {"prompt": prompt, "chosen": better, "rejected": worse}


def usable(row: Pair) -> bool:
    """Some files have numbers or nothing where an answer is expected."""
    answers = row["chosen"], row["rejected"]
    if not all(isinstance(text, str) and text.strip() for text in answers) or answers[0] == answers[1]:
        return False
    prompt = row["prompt"]
    length = len(prompt) if isinstance(prompt, str) else sum(len(turn["content"]) for turn in prompt)
    return length + max(map(len, answers)) <= LONGEST


SOURCES = {"hh": hh, "pandalm": pandalm, "llmbar": llmbar, "oasst": oasst, "grades": grades}


def part_of(prompt: Any) -> str:
    """Which file has the pairs of a prompt."""
    digest = hashlib.sha256(json.dumps(prompt).encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < HELD_OUT:
        return "held-out"
    return "judgments" if (place - HELD_OUT) / (1 - HELD_OUT) < JUDGED else "pairs"


def files(data: Path) -> dict[str, list[Pair]]:
    by_file: dict[str, list[Pair]] = defaultdict(list)
    for source, read in SOURCES.items():
        taken: Counter[str] = Counter()
        for row in read(data):
            part = part_of(row["prompt"])
            if taken[part] == LIMITS[part] or not usable(row):
                continue
            taken[part] += 1
            row = {**row, "source": source}
            by_file[part].append(row)
            if part == "pairs":
                by_file[f"pairs-{source}"].append(row)
    return by_file


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
