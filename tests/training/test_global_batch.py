"""What an objective finds of a global batch before its first forward does not depend on how the batch is split."""

from __future__ import annotations

import pytest
from running import metrics_of, ran, run_process, torchrun, weights_of
from torch.testing import assert_close


@pytest.fixture
def reference(other_model):
    return {"reference": other_model, "anchor": other_model}


def figures(steps: dict[int, dict[str, float]]) -> list[float]:
    names = ("loss", "margin", "z", "grad_norm")
    return [values[name] for _, values in sorted(steps.items()) for name in names]


@pytest.mark.parametrize(
    "splits",
    [
        ({"micro_batch": 1, "batching": "packed"},),
        pytest.param(({"micro_batch": 3}, {"batching": "packed"}, {"share_prompt": False}), marks=pytest.mark.long),
    ],
)
def test_every_micro_batch_sees_the_figure_of_its_global_batch(make_toy, reference, splits):
    """Loss and gradient however the batch is cut, packed or shared: z is a mean over all of it."""
    whole = ran(make_toy(reference, beta=0.5, batching="padded"))
    for split in splits:
        parts = ran(make_toy(reference, beta=0.5, **split))
        assert figures(parts) == pytest.approx(figures(whole), rel=2e-4, abs=1e-4), split
    assert all(abs(values["z"]) > 0.1 for values in whole.values())
    assert {"eval_loss", "eval_z"} <= set(whole[3])


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["ddp", "zero2", "zero3"])
def test_two_processes_see_the_figure_of_both(make_stage, wide_model, make_toy, toy_package, tmp_path, strategy):
    """Both read the frozen models alike, each of them one part."""
    from running import changed_weights

    other = changed_weights(wide_model, tmp_path / "model", 0.05)
    frozen = {"reference": other, "anchor": other}
    single = make_toy(frozen, model=wide_model, beta=0.5, micro_batch=2)
    two = make_toy(frozen, model=wide_model, beta=0.5, micro_batch=2, strategy=strategy)
    expected = ran(single)
    code, events, stderr = run_process(two, torchrun(2), **toy_package)
    assert code == 0, stderr[-3000:]
    assert figures(metrics_of(events)) == pytest.approx(figures(expected), rel=1e-3, abs=1e-3)
    for name, tensor in weights_of(single).items():
        assert_close(weights_of(two)[name], tensor, rtol=1e-3, atol=1e-4)
