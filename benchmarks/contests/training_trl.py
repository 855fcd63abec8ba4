"""TRL's trainers as contestants of `make bench-training`: their settings, and the ids that our renderer makes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from contests.training_contestants import Turns, stage_of, tokens_read
from contests.training_setup import MAX_LENGTH, REFERENCED, lr_of, start_of

DEFAULT = "trl_default"
_PRECOMPUTED = {"precompute_ref_log_probs": True}
# TRL's candidates for its best: none checkpoints gradients. Rows are sequences (SFT, KTO) or pairs. `by_length`: the
# rows of a step are sorted, so that TRL's passes have little padding while its steps are of the same rows. In 1.16
# DPO's `padding_free` is out of order (it falls back to padding with a warning), KTO has none, and SFT's needs a GPU's
# flash attention, like packing.
TRL: dict[str, dict[str, dict[str, Any]]] = {
    "sft": {
        DEFAULT: {"rows": 8, "accumulate": 4, "gradient_checkpointing": True},
        "trl_grouped": {"rows": 8, "accumulate": 4, "train_sampling_strategy": "group_by_length"},
    },
    "reward_model": {
        DEFAULT: {"rows": 4, "accumulate": 4, "gradient_checkpointing": True},
        "trl_4_pairs": {"rows": 4, "accumulate": 4},
        "trl_8_pairs": {"rows": 8, "accumulate": 2},
    },
    "dpo": {
        DEFAULT: {"rows": 8, "accumulate": 2, "gradient_checkpointing": True},
        "trl_1_pair": {"rows": 1, "accumulate": 16, "by_length": True, **_PRECOMPUTED},
        "trl_2_pairs": {"rows": 2, "accumulate": 8, "by_length": True, **_PRECOMPUTED},
        "trl_4_pairs": {"rows": 4, "accumulate": 4, "by_length": True, **_PRECOMPUTED},
        "trl_8_pairs": {"rows": 8, "accumulate": 2, "by_length": True, **_PRECOMPUTED},
    },
    "kto": {
        DEFAULT: {"rows": 8, "accumulate": 4, "gradient_checkpointing": True},
        "trl_2_answers": {"rows": 2, "accumulate": 16, "by_length": True, **_PRECOMPUTED},
        "trl_4_answers": {"rows": 4, "accumulate": 8, "by_length": True, **_PRECOMPUTED},
        "trl_8_answers": {"rows": 8, "accumulate": 4, "by_length": True, **_PRECOMPUTED},
    },
}


def run_trl(folder: Path, method: str, precision: str, steps: int, name: str) -> None:
    """One candidate. Its trainer, which reads the reference, is made in its first turn, which is not timed."""
    import trl
    from transformers import TrainerCallback

    from steerboard_workers.alignment.methods import training_of
    from steerboard_workers.stages.runtime import Stage
    from steerboard_workers.stages.training.data import load_data
    from steerboard_workers.stages.training.setup import open_model

    turns = Turns()
    stage = stage_of(folder, method, precision, steps, Stage)
    config = stage.spec.config
    start = open_model(folder / start_of(method), config)
    examples = load_data(stage, training_of(config), start.renderer)
    options = dict(TRL[method][name])
    precomputes = options.get("precompute_ref_log_probs", False)
    drawn = _drawn(examples.train, config, steps, options.pop("by_length", False))
    arguments = {
        "output_dir": str(folder / name),
        "per_device_train_batch_size": options.pop("rows"),
        "gradient_accumulation_steps": options.pop("accumulate"),
        "gradient_checkpointing": options.pop("gradient_checkpointing", False),
        "max_steps": steps,
        "learning_rate": lr_of(method),
        "lr_scheduler_type": "constant",
        "bf16": precision == "bf16",
        "use_cpu": True,
        "max_length": MAX_LENGTH,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        **options,
    }
    stem = {"sft": "SFT", "reward_model": "Reward", "dpo": "DPO", "kto": "KTO"}[method]
    kind = getattr(trl, f"{stem}Trainer")
    spent = []

    class Tokenised(kind):
        """Takes ids where the trainer would only take texts, and measures what the reference costs."""

        def _prepare_dataset(self, dataset: Any, *given: Any) -> Any:
            return dataset if method in REFERENCED else super()._prepare_dataset(dataset, *given)

        def _precompute_ref_logps(self, dataset: Any, *given: Any) -> Any:
            # What only the first pass of a process takes is not a cost of the reference; ours has tried its layout
            # before.
            first = self.data_collator([dataset[place] for place in range(self.args.per_device_train_batch_size)])
            self.compute_ref_log_probs(self.ref_model or self.model, first)
            began = time.perf_counter()
            computed = super()._precompute_ref_logps(dataset, *given)
            spent.append(time.perf_counter() - began)
            return computed

    class Paced(TrainerCallback):
        tokens = 0.0

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            seen = trainer._total_train_tokens
            turns.done(seen - self.tokens)
            self.tokens = seen
            if state.global_step < steps:
                turns.wait()

    if method == "sft":
        arguments["completion_only_loss"] = True
        rows = examples.train
    else:
        arguments["train_sampling_strategy"] = "sequential"
        rows = drawn
    turns.ready()
    turns.wait()
    held_out = examples.held_out
    if method in REFERENCED:
        held_out = _with_reference(start, held_out, precision)
    trainer = Tokenised(
        model=start.model,
        args=getattr(trl, f"{stem}Config")(**arguments),
        train_dataset=_dataset(method, rows),
        processing_class=start.tokenizer,
        callbacks=[Paced()],
    )
    trainer.train()
    reference = {}
    if precomputes:
        reference = {"reference_seconds": sum(spent), "reference_tokens": tokens_read(rows)}
        reference["reads"] = tokens_read(rows) / sum(example.tokens for example in rows)
    turns.finish(_held_out_loss(start, config, held_out), reference)


def _drawn(examples: list[Any], config: Any, steps: int, by_length: bool) -> list[Any]:
    """The rows in the order that ours draws, so that after as many steps both have seen the same rows."""
    from steerboard_workers.alignment.batches.batch_source import order_of

    order = order_of(examples, config)
    drawn = [[examples[place] for place in order.step(step)] for step in range(steps)]
    return [example for step in drawn for example in (sorted(step, key=_longest) if by_length else step)]


def _longest(example: Any) -> int:
    return max(*example.lengths, *(example.companion.lengths if example.companion else ()), 0)


def _dataset(method: str, rows: Sequence[Any]) -> Any:
    """The columns that TRL's trainer of this method makes of texts."""
    from datasets import Dataset

    prompts = [row.prompt.tolist() for row in rows]
    sides = [[row.responses[side].tolist() for row in rows] for side in range(len(rows[0].responses))]
    if method == "kto":
        # The answers to other prompts that ours draws: TRL would rotate those of a pass, of which two may be a pair.
        others = [row.companion.responses[0].tolist() for row in rows]
        labels = [row.weight > 0 for row in rows]
        columns = {"prompt_ids": prompts, "completion_ids": sides[0], "KL_completion_ids": others, "label": labels}
    elif method == "dpo":
        columns = {"prompt_ids": prompts, "chosen_ids": sides[0], "rejected_ids": sides[1]}
    else:
        whole = [[p + answer for p, answer in zip(prompts, side, strict=True)] for side in sides]
        if method == "reward_model":
            columns = {"chosen_ids": whole[0], "rejected_ids": whole[1]}
        else:
            masks = [[0] * len(p) + [1] * len(answer) for p, answer in zip(prompts, sides[0], strict=True)]
            columns = {"input_ids": whole[0], "completion_mask": masks}
    return Dataset.from_dict(columns)


class _Reads:
    """`Passes` of an objective over the module that TRL trained."""

    def __init__(self, module: Any, pad: int) -> None:
        self._module, self._pad = module, pad

    def per_sequence(self, examples: Sequence[Any], model: str | None = None) -> list[Any]:
        """(responses,) sums of log pi of each example."""
        import torch

        from steerboard_workers.alignment.batches.batching import Batcher
        from steerboard_workers.alignment.losses import sequence_sums
        from steerboard_workers.stages.training.passes import by_example

        batcher = Batcher("padded", "labels", 2048, self._pad)
        parts, sums = batcher.cut(examples)[0], []
        with torch.no_grad():
            for part in parts:
                batch = batcher.collate(part)
                sums.append(sequence_sums(self._module(**batch.model_inputs())[0], batch.label_counts).numpy())
        return by_example(examples, parts, sums)


def _with_reference(start: Any, examples: list[Any], precision: str) -> list[Any]:
    """The rows with log-probs of the start model, which is about to change."""
    import torch

    from steerboard_workers.alignment.examples import with_companions

    every = list(with_companions(examples))
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        sums = _Reads(start.module().eval(), start.tokenizer.pad_token_id).per_sequence(every)
    known = {id(example): {"reference": values} for example, values in zip(every, sums, strict=True)}

    def filled(example: Any) -> Any:
        companion = None if example.companion is None else filled(example.companion)
        return replace(example, frozen_log_probs=known[id(example)], companion=companion)

    return [filled(example) for example in examples]


def _held_out_loss(start: Any, config: Any, examples: list[Any]) -> float:
    """The held-out loss of what TRL trained, by the code that computes ours."""
    import torch

    from steerboard_workers.alignment.batches.batching import Batcher
    from steerboard_workers.alignment.methods import training_of
    from steerboard_workers.alignment.objectives import BatchObjective

    objective = training_of(config).objective()
    module, pad = start.module().eval(), start.tokenizer.pad_token_id
    batcher = Batcher("padded", objective.reads, 2048, pad)
    sums = torch.zeros(len(objective.measures), dtype=torch.float64)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=config.precision == "bf16"):
        prepared = objective.prepare(examples, _Reads(module, pad)) if isinstance(objective, BatchObjective) else {}
        for part in batcher.cut(examples)[0]:
            batch = replace(batcher.collate(part), prepared=prepared)
            sums += objective.forward(module(**batch.model_inputs()), batch)[1]
    return float(objective.metrics(dict(zip(objective.measures, sums.tolist(), strict=True)))["loss"])
