"""What `make bench-training` trains and on what: the pairs, the model and the config of every contestant."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

METHODS = ("sft", "reward_model", "dpo", "kto")
PRECISIONS = ("fp32", "bf16")
# Methods that compare the policy with a reference. They get fewer rows: the reference reads all of them first.
REFERENCED = ("dpo", "kto")
MAX_LENGTH = 256
SEQUENCES = 32
HELD_OUT = 64
PAIRS = "pairs.jsonl"
FEW_PAIRS = "few_pairs.jsonl"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "hh_rlhf" / "pairs_2000.jsonl.gz"
SYNTHETIC_ROWS = 2000
WORDS = tuple("".join(letters) for letters in itertools.product("bdklmnprst", "aeiou", "bdklmnprst", "aeiou"))


def pairs() -> list[dict[str, Any]]:
    """The hh pairs, or made-up ones of about their lengths where these are not at hand; every tenth is held out."""
    rows = []
    for prompt, chosen, rejected in (
        hh_pairs() if DATA.is_file() else made_up_pairs(SYNTHETIC_ROWS, (35, 110), (15, 45))
    ):
        about = {"row": len(rows), "split": "train" if len(rows) % 10 else "held_out", "half": "a"}
        rows.append({**about, "prompt": prompt, "chosen": chosen, "rejected": rejected, "response": chosen})
    return rows


def hh_pairs() -> Iterator[tuple[list[dict[str, str]], str, str]]:
    """Pairs whose dialogues differ in the last answer only, as turns."""
    with gzip.open(DATA, "rt", encoding="utf-8") as file:
        for line in file:
            pair = json.loads(line)
            chosen, rejected = _turns(pair["chosen"]), _turns(pair["rejected"])
            same = chosen[:-1] == rejected[:-1] and len(chosen) >= 2 and chosen[-2]["role"] == "user"
            if same and all(turn["content"].strip() for turn in [*chosen, rejected[-1]]):
                yield chosen[:-1], chosen[-1]["content"], rejected[-1]["content"]


def made_up_pairs(
    rows: int, prompt: tuple[int, int], answer: tuple[int, int]
) -> Iterator[tuple[list[dict[str, str]], str, str]]:
    """Long common prompts with two shorter answers; a fixed seed. Fewest and most words of each."""
    for turns, (chosen, rejected) in made_up_answers(rows, 2, prompt, answer):
        yield turns, chosen, rejected


def made_up_answers(
    rows: int, answers: int, prompt: tuple[int, int], answer: tuple[int, int]
) -> Iterator[tuple[list[dict[str, str]], list[str]]]:
    """The same with any number of answers to each prompt."""
    draw = random.Random(0)

    def text(words: tuple[int, int]) -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(*words)))

    for _ in range(rows):
        yield [{"role": "user", "content": text(prompt)}], [text(answer) for _ in range(answers)]


def _turns(text: str) -> list[dict[str, str]]:
    parts = re.split(r"\n\n(Human|Assistant): ?", text)[1:]
    roles = {"Human": "user", "Assistant": "assistant"}
    return [{"role": roles[role], "content": content} for role, content in zip(parts[::2], parts[1::2], strict=True)]


def prepare(folder: Path, steps: int) -> None:
    """Write the pairs, those of them for `steps` steps of a method with a reference, and the start models."""
    rows = pairs()
    train = [row for row in rows if row["split"] == "train"]
    held_out = [row for row in rows if row["split"] == "held_out"]
    _write(folder / PAIRS, rows)
    _write(folder / FEW_PAIRS, [*train[: steps * SEQUENCES // 2], *held_out[:HELD_OUT]])
    write_models(folder, rows, MAX_LENGTH)


def write_models(folder: Path, rows: list[dict[str, Any]], max_length: int) -> None:
    """`sft`, a 6-layer Llama of random weights with a tokenizer made of `rows`, and `reward_model`, with a head."""
    import torch

    from steerboard_contracts.methods.reward_model import RewardModelConfig
    from steerboard_contracts.models import ModelInfo
    from steerboard_contracts.run_kinds.base import BaseModelConfig
    from steerboard_workers.stages.base import random_llama, train_tokenizer
    from steerboard_workers.stages.models.model_saving import save_model
    from steerboard_workers.stages.training.setup import open_model

    texts = (
        text
        for row in rows
        for text in [*(f"User: {m['content']} Assistant:" for m in row["prompt"]), row["chosen"], row["rejected"]]
    )
    tokenizer = train_tokenizer(texts, 8192, max_length)
    shape = BaseModelConfig(
        source="random:tiny-llama", vocabulary=8192, hidden=256, layers=6, heads=4, max_length=max_length
    )
    model = random_llama(shape, tokenizer)
    if len(tokenizer) < 8192:
        # Made-up words need fewer tokens than the head of the model that is measured has.
        model.resize_token_embeddings(8192, mean_resizing=False)
    info = ModelInfo(role="base", architecture=type(model).__name__, parameters=0, max_length=max_length)
    save_model(folder / "sft", model, tokenizer, info)
    start = open_model(folder / "sft", RewardModelConfig(method="reward_model"))
    with torch.no_grad():
        save_model(folder / "reward_model", start.model, start.tokenizer, info.model_copy(update={"role": "reward"}))


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def start_of(method: str) -> str:
    """The folder of the model that training starts from, and that is the reference."""
    return "reward_model" if method == "reward_model" else "sft"


def rows_of(method: str) -> str:
    """The file of the rows that a method is given."""
    return FEW_PAIRS if method in REFERENCED else PAIRS


def batch_of(method: str) -> int:
    """Rows of an optimiser step: sequences, or pairs of two."""
    return SEQUENCES // 2 if method in ("reward_model", "dpo") else SEQUENCES


def lr_of(method: str) -> float:
    """Methods with a reference get one at which some steps of theirs are comparable: they soon leave the reference."""
    return 1e-5 if method in REFERENCED else 5e-4


def config_of(method: str, precision: str, steps: int) -> dict[str, Any]:
    return {
        "run": "train",
        "method": method,
        "lr": lr_of(method),
        "batch": batch_of(method),
        "epochs": 1000,
        "max_steps": steps,
        "warmup_ratio": 0,
        "min_lr_ratio": 1,
        "adam_beta2": 0.999,
        "max_length": MAX_LENGTH,
        "precision": precision,
        "checkpoint_every": 0,
        "checkpoint_seconds": 0,
    }
