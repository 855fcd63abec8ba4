"""TRL's PPO as a contestant of `make bench-online`: a script for `.venv-trl-ppo`, since only TRL up to 1.9 has it.

    .venv-trl-ppo/bin/python benchmarks/contests/online_trl_ppo.py FOLDER OPTION STEPS SIZES PRECISION

`SIZES` are those of `online_setup.Sizes` as JSON. Prints the seconds of each step as JSON in its last line.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from contests.online_setup import KL_WEIGHT, LEARNING_RATE, LETTER, MODEL, ROWS, TEMPERATURE, TRL_OPTIONS, Sizes


def run(folder: Path, option: str, steps: int, sizes: Sizes, precision: str) -> list[dict[str, float]]:
    """Seconds of each step: `generate`, `score`, `value`, and `update`, which is the rest with its reference passes."""
    import torch
    from transformers import (
        AutoModelForCausalLM,
        AutoModelForSequenceClassification,
        AutoTokenizer,
        TrainerCallback,
    )
    from trl.experimental.ppo import PPOConfig, PPOTrainer, ppo_trainer

    from datasets import Dataset

    spent: dict[str, float] = defaultdict(float)
    measured: list[dict[str, float]] = []
    tokenizer = AutoTokenizer.from_pretrained(folder / MODEL, padding_side="left")
    letters = torch.tensor([float(LETTER in tokenizer.decode([token])) for token in range(len(tokenizer))])

    class LetterReward(torch.nn.Module):
        """Whether the letter is in the text: a reward that costs next to nothing, in the shape that TRL asks for."""

        base_model_prefix = "backbone"

        def backbone(self, input_ids: torch.Tensor, **_: Any) -> SimpleNamespace:
            known = letters[input_ids.clamp(max=len(letters) - 1)]
            return SimpleNamespace(hidden_states=[known.cummax(1).values.unsqueeze(-1)])

        def score(self, hidden: torch.Tensor) -> torch.Tensor:
            return hidden

    class Steps(TrainerCallback):
        began = 0.0

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.began = time.perf_counter()
            spent.clear()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            whole = time.perf_counter() - self.began
            measured.append({**spent, "update": whole - sum(spent.values()), "step": whole})
            self.on_train_begin(args, state, control)

    def timed(inner: Any, phase_of: Any) -> Any:
        def measured(first: Any, *given: Any) -> Any:
            began = time.perf_counter()
            try:
                return inner(first, *given)
            finally:
                spent[phase_of(first)] += time.perf_counter() - began

        return measured

    ppo_trainer.batch_generation = timed(ppo_trainer.batch_generation, lambda _: "generate")
    ppo_trainer.get_reward = timed(
        ppo_trainer.get_reward, lambda model: "score" if isinstance(model, LetterReward) else "value"
    )
    lines = (folder / ROWS).read_text().splitlines()
    texts = [f"User: {json.loads(line)['prompt'][-1]['content']} Assistant:" for line in lines]
    rows = TRL_OPTIONS["ppo"][option]["rows"]
    trainer = PPOTrainer(
        args=PPOConfig(
            output_dir=tempfile.mkdtemp(dir=folder),
            per_device_train_batch_size=rows,
            gradient_accumulation_steps=sizes.samples // rows,
            local_rollout_forward_batch_size=TRL_OPTIONS["ppo"][option]["rollout"],
            num_mini_batches=1,
            num_ppo_epochs=1,
            total_episodes=sizes.samples * steps,
            response_length=sizes.new_tokens,
            temperature=TEMPERATURE,
            kl_coef=KL_WEIGHT,
            learning_rate=LEARNING_RATE,
            num_sample_generations=0,
            gradient_checkpointing=False,
            use_cpu=True,
            bf16=precision == "bf16",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        ),
        processing_class=tokenizer,
        model=AutoModelForCausalLM.from_pretrained(folder / MODEL),
        ref_model=AutoModelForCausalLM.from_pretrained(folder / MODEL),
        reward_model=LetterReward(),
        value_model=AutoModelForSequenceClassification.from_pretrained(folder / MODEL, num_labels=1),
        train_dataset=Dataset.from_dict(dict(tokenizer(texts))),
        eval_dataset=Dataset.from_dict(dict(tokenizer(texts[:1]))),
        callbacks=[Steps()],
    )
    trainer.train()
    return measured


if __name__ == "__main__":
    where, option_name, count, shape, precision_name = sys.argv[1:]
    print(json.dumps(run(Path(where), option_name, int(count), Sizes(**json.loads(shape)), precision_name)))
