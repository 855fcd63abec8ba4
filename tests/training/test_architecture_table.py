"""The table of docs/architectures.md is what this computes: each family trained, asked and laid out with a tiny model.

`STEERBOARD_WRITE_TABLE=1` writes the rows that it computes into the page.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from accelerate.state import AcceleratorState
from running import data_of, recorded
from test_architectures import examples
from transformers import AutoModelForCausalLM

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.methods.dpo import DpoConfig
from steerboard_workers.alignment.modules import PolicyModule
from steerboard_workers.engines.protocol import Request
from steerboard_workers.engines.transformers_engine import TransformersEngine
from steerboard_workers.stages import base, train
from steerboard_workers.stages.models.model_io import load_policy
from steerboard_workers.stages.training.setup import batcher_of
from support.models.published import FAMILIES, published

PAGE = Path(__file__).parents[2] / "docs" / "architectures.md"
STEP = {"run": "train", "max_steps": 2, "batch": 4, "max_length": 96, "lr": 1e-2, "checkpoint_every": 0}
STEP |= {"evaluate_rows": 2}
LORA = {"rank": 2, "alpha": 4.0, "merge": True}
ALWAYS = ("llama", "gpt2", "mixtral")  # the others are in `make test-all`


@dataclass(frozen=True)
class Row:
    """What works with a family: `yes`, `no` where it is refused, or what is done in its place."""

    family: str
    sft: str
    dpo: str
    reward_model: str
    lora: str
    generate: str
    packing: str
    shared_prompts: str

    def __str__(self) -> str:
        return f"| {' | '.join(vars(self).values())} |"


def computed(make_stage, folder: Path, family: str) -> Row:
    stage = make_stage(
        {"run": "base", "source": str(published(folder, family))}, folders={"roots": [str(folder.parent)]}
    )
    base.run(stage)
    model = stage.directory / "outputs" / "model"
    packing, shared = layout(make_stage, model)
    return Row(
        family=family,
        sft=trains(make_stage, model, "sft"),
        dpo=trains(make_stage, model, "dpo"),
        reward_model=trains(make_stage, model, "reward_model"),
        lora=trains(make_stage, model, "sft", lora=LORA),
        generate=generates(model),
        packing=packing,
        shared_prompts=shared,
    )


def trains(make_stage, model: Path, method: str, **more: object) -> str:
    """Whether two steps are taken and change what the model computes; a refusal has its reason in the stage's error."""
    AcceleratorState._reset_state(reset_partial_state=True)
    stage = make_stage({**STEP, "method": method, **more}, model=model, data=data_of(method))
    try:
        train.run(stage)
    except SteerboardError:
        return "no"
    losses = [event.values["loss"] for event in recorded(stage, "metrics") if "loss" in event.values]
    assert losses
    assert all(loss == loss for loss in losses), f"{method} gave NaN"
    return "yes"


def generates(model: Path) -> str:
    """Whether the engine's likeliest answer is that of transformers."""
    policy = load_policy(model, "fp32", "cpu")
    engine = TransformersEngine(policy.model, policy.renderer, policy.device)
    request = Request(row=0, prompt=[{"role": "user", "content": "Name a colour."}])
    try:
        (answer,) = engine.generate([request], Decoding(temperature=0.0, max_new_tokens=6), seed=0)
    except SteerboardError:
        return "no"
    ids = torch.tensor([policy.renderer.prompt_ids(request.prompt)])
    with torch.inference_mode():
        whole = policy.model.generate(ids, max_new_tokens=6, do_sample=False, eos_token_id=sorted(engine.stop_ids))
    theirs = [token for token in whole[0, ids.shape[1] :].tolist() if token not in engine.stop_ids]
    assert list(answer.token_ids) == theirs
    return "yes"


def layout(make_stage, model: Path) -> tuple[str, str]:
    """How pairs are laid out in a pass by default, and whether a prompt is computed once for both answers."""
    torch.manual_seed(0)
    module = PolicyModule(AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)).eval()
    stage = make_stage({"run": "mix", "parts": [{}]}, data=None)
    config = DpoConfig(method="dpo", batching="auto")
    batcher = batcher_of(stage, config, module, examples(2), 0, torch.device("cpu"), share=True)
    packing = "padded" if batcher.layout == "padded" else "yes"
    return packing, "yes" if batcher.share else "no"


@pytest.mark.parametrize(
    "family", [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.long) for name in FAMILIES]
)
def test_the_page_says_of_each_family_what_it_does(make_stage, tmp_path, family):
    row = str(computed(make_stage, tmp_path / "published", family))
    # The last column is what tests/training/test_vllm_families.py finds.
    written = re.search(rf"^(\| {family} \|.*\|) \S+ \|$", PAGE.read_text(), re.MULTILINE)
    if os.environ.get("STEERBOARD_WRITE_TABLE"):
        assert written is not None
        PAGE.write_text(PAGE.read_text().replace(written[1], row))
        return
    assert written is not None, f"{PAGE.name} has no row of {family}"
    assert written[1] == row


def test_the_page_has_the_families_that_are_tested():
    assert re.findall(r"^\| (\w+) \| (?:yes|no)", PAGE.read_text(), re.MULTILINE) == FAMILIES
