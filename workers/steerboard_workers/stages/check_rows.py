"""The stage before a training run: how many rows it would cut, leave out or refuse. Nothing is trained."""

from __future__ import annotations

from typing import Any

from transformers import AutoConfig

from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.methods import needed_method
from steerboard_contracts.run_kinds.check_rows import CheckRowsConfig
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.stages.models.model_io import check_safe, read_info
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.data import RENDER_ROWS, examples_of, rows_of
from steerboard_workers.stages.training.setup import training_renderer, training_tokenizer

_NAMED = 3


def run(stage: Stage) -> Succeeded:
    """Its summary: `rows` that would be learned or evaluated, how many were `checked`, and of these `too_long_rows`
    and `refused_rows`, with the first of `refused`."""
    config = stage.spec.config
    assert isinstance(config, CheckRowsConfig)
    assert isinstance(config.training, TrainingConfig)
    folder = stage.model_path("model")
    with stage.using_model("model", "opening"):
        check_safe(folder)
        info = read_info(folder)
        training = config.training.for_start(info.template, info.condition)
        tokenizer = training_tokenizer(folder, training)
        given = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        scalar = needed_method(training.method).reads == "ends"
        renderer = training_renderer(folder, tokenizer, info, training, given, whole=scalar)
    method = training_of(training)
    try:
        rows = method.select(list(rows_of(stage, "data", method)), stage.dataset("data")).rows
    except EmptySelection:
        rows = []  # which the run will explain
    step = max(1, -(-len(rows) // config.rows))
    checked = rows[::step]
    too_long: list[int] = []
    refused: dict[int, BadInput] = {}
    with stage.using_model("model", "tokenising with"):
        for start in range(0, len(checked), RENDER_ROWS):
            part = checked[start : start + RENDER_ROWS]
            list(examples_of(method, renderer, part, start, too_long, refused))
            stage.progress(start + len(part), len(checked), "rows", "tokenising")
    summary: dict[str, Any] = {
        "rows": len(rows),
        "checked": len(checked),
        "too_long_rows": len(too_long),
        "max_length": renderer.max_length,
        "refused_rows": len(refused),
        "refused": [{"row": row, "message": error.detail} for row, error in sorted(refused.items())[:_NAMED]],
    }
    return Succeeded(outputs=[], summary=summary)
