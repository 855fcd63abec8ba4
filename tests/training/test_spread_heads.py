"""ZeRO-3 gathers the weights of the head when it is called, which all processes must do equally often."""

from __future__ import annotations

import pytest
from running import metrics_of, ran, run_process, torchrun, weights_of
from torch.testing import assert_close

CONFIG = {"run": "train", "method": "sft", "max_steps": 3, "batch": 8, "micro_batch": 2, "max_length": 96, "lr": 1e-3}
CHUNKS = "from steerboard_workers.alignment import head\nhead.CPU_CHUNK_ELEMENTS = 12 * 400\n"


def test_processes_may_have_other_numbers_of_chunks(make_stage, wide_model, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(CHUNKS)
    single = make_stage(CONFIG, model=wide_model, data="labelled")
    two = make_stage({**CONFIG, "strategy": "zero3"}, model=wide_model, data="labelled")
    expected = ran(single)
    code, events, stderr = run_process(two, torchrun(2), PYTHONPATH=str(tmp_path))
    assert code == 0, stderr[-3000:]
    for step, values in metrics_of(events).items():
        assert values["loss"] == pytest.approx(expected[step]["loss"], rel=1e-3)
    for name, tensor in weights_of(single).items():
        assert_close(weights_of(two)[name], tensor, rtol=1e-3, atol=1e-4)
