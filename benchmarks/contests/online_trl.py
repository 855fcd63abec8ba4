"""TRL's contestant of `make bench-online`: its trainers of 1.16, with the same model, prompts, lengths and rewards."""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from contests.online_setup import (
    KL_WEIGHT,
    LEARNING_RATE,
    LETTER,
    MODEL,
    ROWS,
    TEMPERATURE,
    TRL_LOSSES,
    TRL_OPTIONS,
    Sizes,
)

# The methods of TRL's trainers that are a phase.
_PHASES = {"_generate": "generate", "_calculate_rewards": "score"}


def run_trl(folder: Path, method: str, option: str, sizes: Sizes, steps: int, precision: str) -> list[dict[str, float]]:
    """Seconds of each step: `generate`, `score`, and `update`, which is the rest with its reference passes.

    `option` is one of `TRL_OPTIONS[method]`.
    """
    import trl
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback

    from datasets import Dataset

    spent: dict[str, float] = defaultdict(float)
    timings: list[dict[str, float]] = []
    stem, chosen = "GRPO" if method in TRL_LOSSES else method.upper(), TRL_OPTIONS[method][option]
    kind = getattr(trl, f"{stem}Trainer")

    def timed(name: str, phase: str) -> Any:
        inner = getattr(kind, name)

        def run(self: Any, *given: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return inner(self, *given, **named)
            finally:
                spent[phase] += time.perf_counter() - began

        return run

    measured = type("Measured", (kind,), {name: timed(name, phase) for name, phase in _PHASES.items()})

    class Steps(TrainerCallback):
        began = 0.0

        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.began = time.perf_counter()
            spent.clear()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            whole = time.perf_counter() - self.began
            timings.append({**spent, "update": whole - sum(spent.values()), "step": whole})

    tokenizer = AutoTokenizer.from_pretrained(folder / MODEL, padding_side="left")
    texts = [json.loads(line)["prompt"][-1]["content"] for line in (folder / ROWS).read_text().splitlines()]
    arguments = getattr(trl, f"{stem}Config")(
        output_dir=tempfile.mkdtemp(dir=folder),
        per_device_train_batch_size=chosen["rows"],
        gradient_accumulation_steps=sizes.samples // chosen["rows"],
        num_generations=sizes.answers,
        max_completion_length=sizes.new_tokens,
        generation_kwargs={"min_new_tokens": sizes.new_tokens},
        max_steps=steps,
        learning_rate=LEARNING_RATE,
        beta=KL_WEIGHT,
        temperature=TEMPERATURE,
        use_transformers_continuous_batching=chosen.get("continuous", False),
        gradient_checkpointing=False,
        use_cpu=True,
        bf16=precision == "bf16",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        **TRL_LOSSES.get(method, {}),
    )
    trainer = measured(
        model=AutoModelForCausalLM.from_pretrained(folder / MODEL),
        reward_funcs=lambda completions, **_: [float(LETTER in text) for text in completions],
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": [f"User: {text} Assistant:" for text in texts]}),
        processing_class=tokenizer,
        callbacks=[Steps()],
    )
    trainer.train()
    return timings
