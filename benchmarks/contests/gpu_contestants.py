"""The contestants of `make bench-gpu`: the training stage and the engine here, TRL and transformers there."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from contests.gpu_setup import (
    ADAPTERS,
    NEW_TOKENS,
    PAIRED,
    PROMPTS,
    SIZES,
    STEPS,
    WARM_STEPS,
    parameters_of,
    stage_of,
)


def contest(side: str, task: str, folder: Path, size: str) -> dict[str, Any]:
    """{tokens_per_second, parameters, peak_memory_bytes} of this process, which does nothing else."""
    import torch

    sys.stdout.flush()
    out = os.dup(1)
    os.dup2(2, 1)  # the last line of the standard output is the answer
    try:
        if task == "generate":
            rate, parameters = _generation(side, folder)
        else:
            rate, parameters = (_ours if side == "ours" else _trl)(task, folder, size)
    finally:
        os.dup2(out, 1)
    return {"tokens_per_second": rate, "parameters": parameters, "peak_memory_bytes": _peak(torch)}


def _peak(torch: Any) -> int:
    import resource

    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _ours(task: str, folder: Path, size: str) -> tuple[float, int]:
    from steerboard_workers.stages import train
    from steerboard_workers.stages.runtime import Stage

    rates: list[float] = []

    class Timed(Stage):
        def metrics(self, step: int, values: Any) -> None:
            if step > WARM_STEPS:
                rates.append(values["tokens_per_second"])

    train.run(stage_of(task, folder, size, Timed))
    return statistics.median(rates), parameters_of(folder)


def _trl(task: str, folder: Path, size: str) -> tuple[float, int]:
    """TRL on the ids that our renderer makes of the same rows, without gradient checkpointing, grouped by length where
    its trainer can."""
    import torch
    from transformers import TrainerCallback

    from datasets import Dataset
    from steerboard_workers.alignment.methods import training_of
    from steerboard_workers.stages.runtime import Stage
    from steerboard_workers.stages.training.data import load_data
    from steerboard_workers.stages.training.setup import open_model

    stage = stage_of(task, folder, size, Stage)
    config = stage.spec.config
    start = open_model(folder / "model", config.model_copy(update={"lora": None}))
    examples = load_data(stage, training_of(config), start.renderer).train
    rows = 4 if task in PAIRED else 8
    arguments: dict[str, Any] = {
        "output_dir": str(folder / "trl"),
        "per_device_train_batch_size": rows,
        "gradient_accumulation_steps": config.batch // rows,
        "gradient_checkpointing": False,
        "max_steps": STEPS,
        "learning_rate": config.lr,
        "bf16": True,
        "use_cpu": not torch.cuda.is_available(),
        "max_length": SIZES[size]["max_length"],
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
    }
    rates: list[float] = []

    class Timed(TrainerCallback):
        began = seen = 0.0

        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.began = time.perf_counter()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            tokens, self.seen = trainer._total_train_tokens - self.seen, trainer._total_train_tokens
            if state.global_step > WARM_STEPS:
                rates.append(tokens / (time.perf_counter() - self.began))

    kind, settings, columns = _trainer(task, arguments, examples[: STEPS * config.batch])
    model: Any = start.model
    further: dict[str, Any] = {}
    if task in ADAPTERS:
        model, further = _adapted(task, folder)
    trainer = kind(
        model=model,
        args=settings,
        train_dataset=Dataset.from_dict(columns),
        processing_class=start.tokenizer,
        callbacks=[Timed()],
        **further,
    )
    trainer.train()
    return statistics.median(rates), parameters_of(folder)


def _trainer(task: str, arguments: dict[str, Any], examples: list[Any]) -> tuple[Any, Any, dict[str, Any]]:
    """TRL's trainer of a task, its settings, and the columns that it makes of texts."""
    import trl

    prompts = [e.prompt.tolist() for e in examples]
    sides = [[e.responses[side].tolist() for e in examples] for side in range(len(examples[0].responses))]
    if task == "dpo":

        class Tokenised(trl.DPOTrainer):  # type: ignore[misc]
            """Takes ids where it would only take texts."""

            def _prepare_dataset(self, dataset: Any, *_: Any) -> Any:
                return dataset

        columns = {"prompt_ids": prompts, "chosen_ids": sides[0], "rejected_ids": sides[1]}
        return Tokenised, trl.DPOConfig(**arguments, precompute_ref_log_probs=True), columns
    whole = [[prompt + answer for prompt, answer in zip(prompts, side, strict=True)] for side in sides]
    if task == "reward_model":
        return trl.RewardTrainer, trl.RewardConfig(**arguments), {"chosen_ids": whole[0], "rejected_ids": whole[1]}
    masks = [[0] * len(p) + [1] * len(answer) for p, answer in zip(prompts, sides[0], strict=True)]
    settings = trl.SFTConfig(**arguments, completion_only_loss=True, train_sampling_strategy="group_by_length")
    return trl.SFTTrainer, settings, {"input_ids": whole[0], "completion_mask": masks}


def _adapted(task: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """The base in bf16, or in 4 bits as ours is, and what a trainer is given besides."""
    import torch
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM

    from steerboard_contracts.lora import LoraConfig as Ours
    from steerboard_workers.stages.models.adapters import quantisation
    from steerboard_workers.stages.models.model_io import pick_device

    ours = Ours(**ADAPTERS[task])
    options = quantisation(ours, torch.bfloat16, pick_device())
    model = AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.bfloat16, **options)
    adapter = LoraConfig(
        r=ours.rank, lora_alpha=ours.alpha, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    return model, {"peft_config": adapter}


def _generation(side: str, folder: Path) -> tuple[float, int]:
    """Greedy, `NEW_TOKENS` each: random weights hardly ever end by themselves, and the end token is ruled out."""
    import torch

    from steerboard_contracts.decoding import Decoding
    from steerboard_workers.engines.protocol import Request
    from steerboard_workers.engines.transformers_engine import TransformersEngine
    from steerboard_workers.stages.models.model_io import load_policy

    policy = load_policy(folder / "model", "bf16")
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()][:PROMPTS]
    policy.model.generation_config.eos_token_id = None
    engine = TransformersEngine(policy.model, policy.renderer, policy.device, PROMPTS)
    engine.stop_ids = frozenset()
    requests = [Request(at, row["prompt"]) for at, row in enumerate(rows)]
    decoding = Decoding(max_new_tokens=NEW_TOKENS)
    prompts = policy.renderer.prompts_ids([r.prompt for r in requests], [None] * len(requests), room=NEW_TOKENS)
    width, pad = max(map(len, prompts)), int(policy.tokenizer.pad_token_id)
    ids = torch.tensor([[pad] * (width - len(p)) + p for p in prompts], device=policy.device)
    mask = (torch.arange(width)[None] >= torch.tensor([[width - len(p)] for p in prompts])).long().to(policy.device)

    def once() -> int:
        if side == "ours":
            return sum(c.tokens for c in engine.generate(requests, decoding, 0))
        with torch.inference_mode():
            out = policy.model.generate(
                ids,
                attention_mask=mask,
                max_new_tokens=NEW_TOKENS,
                do_sample=False,
                pad_token_id=pad,
                eos_token_id=None,
            )
        return (out.shape[1] - width) * len(prompts)

    once()
    rates = []
    for _ in range(3):
        began = time.perf_counter()
        tokens = once()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        rates.append(tokens / (time.perf_counter() - began))
    return statistics.median(rates), parameters_of(folder)
