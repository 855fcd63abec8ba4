"""What `make bench-online` answers and learns: the prompts, the model and the config of every contestant."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from contests.training_setup import WORDS

# Losses that TRL's GRPO trainer has as options. With one update a step, all ratios are 1, which changes no step's cost;
# the KL is there for both, though their papers leave it out.
TRL_LOSSES: dict[str, dict[str, Any]] = {
    "gspo": {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4},
    "cispo": {"loss_type": "cispo", "epsilon_high": 5.0},
    "dapo": {"loss_type": "dapo", "epsilon_high": 0.28},
    "sapo": {"loss_type": "sapo"},
}
METHODS = ("ppo", "grpo", "rloo", *TRL_LOSSES)
PRECISIONS = ("fp32", "bf16")
ROWS = "prompts.jsonl"
MODEL = "model"
LETTER = "a"
LEARNING_RATE = 1e-6
KL_WEIGHT = 0.04
TEMPERATURE = 1.0
# The Python of the repository's environment that `make bench-online` makes.
TRL_PPO_PYTHON = Path(__file__).resolve().parents[2] / ".venv-trl-ppo" / "bin" / "python"
# TRL's candidates for its best, none of which checkpoints gradients: answers of a training pass (`rows`, as many passes
# as add up to the step's), of a sampling pass (`rollout`, PPO's), and sampling by transformers' continuous batching.
TRL_OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "ppo": {
        "rows_64": {"rows": 64, "rollout": 64},
        "rows_16": {"rows": 16, "rollout": 64},
        "rows_8": {"rows": 8, "rollout": 64},
        "rows_16_rollout_16": {"rows": 16, "rollout": 16},
    },
    **{
        method: {
            "rows_64": {"rows": 64},
            "rows_16": {"rows": 16},
            "rows_8": {"rows": 8},
            "rows_16_continuous": {"rows": 16, "continuous": True},
        }
        for method in ("grpo", "rloo", *TRL_LOSSES)
    },
}


@dataclass(frozen=True)
class Sizes:
    prompts: int
    answers: int
    prompt_tokens: int
    new_tokens: int
    hidden: int
    layers: int

    @property
    def options(self) -> dict[str, int]:
        return asdict(self)

    @property
    def samples(self) -> int:
        """Answers that a step of every method learns from."""
        return self.prompts * self.answers

    @property
    def window(self) -> int:
        return self.prompt_tokens + self.new_tokens + 16


def prepare(folder: Path, sizes: Sizes, steps: int) -> None:
    """Write prompts for `steps` steps, of about as many tokens as asked for, and the start model."""
    from steerboard_contracts.models import ModelInfo
    from steerboard_contracts.run_kinds.base import BaseModelConfig
    from steerboard_workers.stages.base import random_llama, train_tokenizer
    from steerboard_workers.stages.models.model_saving import save_model

    draw = random.Random(0)
    texts = [" ".join(draw.choices(WORDS, k=max(1, sizes.prompt_tokens // 2))) for _ in range(sizes.samples * steps)]
    with (folder / ROWS).open("w") as file:
        for row, text in enumerate(texts):
            about = {"row": row, "split": "train", "half": "a"}
            file.write(json.dumps({**about, "prompt": [{"role": "user", "content": text}]}) + "\n")
    tokenizer = train_tokenizer((f"User: {text} Assistant:" for text in texts), 8192, sizes.window)
    shape = BaseModelConfig(
        source="random:tiny-llama",
        vocabulary=8192,
        hidden=sizes.hidden,
        layers=sizes.layers,
        heads=4,
        max_length=sizes.window,
    )
    model = random_llama(shape, tokenizer)
    if len(tokenizer) < 8192:
        model.resize_token_embeddings(8192, mean_resizing=False)
    info = ModelInfo(role="base", architecture=type(model).__name__, parameters=0, max_length=sizes.window)
    save_model(folder / MODEL, model, tokenizer, info)


def config_of(method: str, sizes: Sizes, steps: int, precision: str) -> dict[str, Any]:
    answers = 1 if method == "ppo" else sizes.answers
    return {
        "run": "train",
        "method": method,
        # As many answers to learn from in a step of each method.
        "batch": sizes.samples if method == "ppo" else sizes.prompts,
        "answers": answers,
        "epochs": 1000,
        "max_steps": steps,
        **({"minibatches": 1} if method == "ppo" or method in TRL_LOSSES else {}),
        # Neither samples again in TRL's trainer, nor has a price for length.
        **({"refill": 0, "overlong_share": None} if method == "dapo" else {}),
        "lr": LEARNING_RATE,
        "kl_weight": KL_WEIGHT,
        **({"kl_estimator": "k3"} if method == "grpo" or method in TRL_LOSSES else {}),  # TRL's
        "temperature": TEMPERATURE,
        "max_new_tokens": sizes.new_tokens,
        "sample_batch": sizes.samples,
        "max_length": sizes.window,
        "rules": [{"kind": "regex", "pattern": LETTER}],
        "precision": precision,
        "checkpoint_every": 0,
        "checkpoint_seconds": 0,
    }
