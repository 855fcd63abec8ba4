"""A reward model for runs that sample."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from transformers import AutoModelForSequenceClassification


@pytest.fixture(scope="package")
def reward_model(base_model, tmp_path_factory):
    """A head on the body of the base model, with weights that no one trained."""
    folder = tmp_path_factory.mktemp("reward") / "model"
    shutil.copytree(base_model, folder)
    model = AutoModelForSequenceClassification.from_pretrained(base_model, num_labels=1)
    with torch.no_grad():
        model.score.weight.copy_(torch.randn(1, 48, generator=torch.Generator().manual_seed(1)) / 7)
    model.config.pad_token_id = json.loads((folder / "config.json").read_text())["eos_token_id"]
    model.save_pretrained(folder)
    info = json.loads((folder / "steerboard.json").read_text())
    (folder / "steerboard.json").write_text(json.dumps(info | {"role": "reward"}))
    return folder
