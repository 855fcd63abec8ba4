"""What `make bench-training` makes of the figures of its contestants, and that these train alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks"
RATES = {"ours": 4000.0, "trl_default": 500.0, "trl_4_pairs": 1000.0}
# 2 tokens of the reference to each token that is learned: 10,000 a second, and 2,000.
OURS = {"loss": 0.69, "reads": 2.0, "reference_tokens": 50_000, "reference_seconds": 5.0}
TRL = {"loss": 0.68, "reads": 2.0, "reference_tokens": 20_000, "reference_seconds": 10.0}


@pytest.fixture
def summary(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from contests.training_race import summary

    return summary


def test_the_cost_of_the_reference_is_apart_from_the_steps_and_in_the_epoch(summary):
    document = summary(RATES, {"ours": OURS, "trl_4_pairs": TRL}, "trl_4_pairs", {"trl_4_pairs": 990})
    assert (document["ratio_best"], document["ratio_default"]) == (4.0, 8.0)
    reference = {"ours": 10_000, "trl_best": 2_000, "ratio_best": 5.0, "ours_seconds": 2.0, "trl_seconds": 10.0}
    assert document["reference"] == reference
    # 1 / (1/4000 + 2/10000), and 1 / (1/1000 + 2/2000); the default has read it in its steps.
    epoch = document["one_epoch"]
    assert (epoch["ours"], epoch["trl_best"], epoch["trl_default"]) == (2222, 500, 500)


def test_methods_without_a_reference_have_the_same_keys(summary):
    with_one = summary(RATES, {"ours": OURS, "trl_4_pairs": TRL}, "trl_4_pairs", {})
    without = summary(RATES, {"ours": {"loss": 7.2}, "trl_4_pairs": {"loss": 7.3}}, "trl_4_pairs", {})
    assert without.keys() == with_one.keys()
    assert without["reference"] is None
    assert without["one_epoch"] is None


@pytest.mark.long
@pytest.mark.parametrize("method", ["dpo", "kto"])
def test_ours_and_trl_have_the_same_held_out_loss_after_as_many_steps(method, tmp_path):
    """Steps of 4 sequences, so that TRL's KTO has one pass a step: its z is of a pass, ours of the whole step."""
    losses = {}
    small = (
        "from contests import training_setup as s; s.SEQUENCES, s.HELD_OUT = 4, 6; "
        "every = s.pairs; s.pairs = lambda: every()[:80]"
    )
    rows = 2 if method == "dpo" else 4
    for name in ("prepare", "ours", "trl"):
        work = {
            "prepare": "s.prepare(f, 3)",
            "ours": f"from contests import training_contestants as c; c.run_ours(f, {method!r}, 'fp32', 3)",
            "trl": f"from contests import training_trl as t; t.TRL = {{{method!r}: {{'trl': {{'rows': {rows}, "
            f"'accumulate': 1, 'precompute_ref_log_probs': True}}}}}}; t.run_trl(f, {method!r}, 'fp32', 3, 'trl')",
        }[name]
        code = f"{small}; from pathlib import Path; f = Path({str(tmp_path)!r}); {work}"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1"},
            input="go\n" * 3,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        losses[name] = json.loads(done.stdout.splitlines()[-1])["loss"] if name != "prepare" else None
    assert losses["ours"] == pytest.approx(losses["trl"], rel=1e-5)
