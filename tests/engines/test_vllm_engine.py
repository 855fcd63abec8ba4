"""vLLM against the transformers engine: the same tokens, texts, ends and rewards. And what watches over it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_prompts import PROMPTS

from steerboard.platform.processes import vllm
from steerboard_contracts.errors import BadInput
from steerboard_contracts.models import vllm_rank
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.stages.models.model_io import load_policy
from support.models.vllm_engine import PYTHON, needs_vllm, write_models
from support.patience import PATIENCE

PROBE = Path(__file__).with_name("vllm_probe.py")
long = [needs_vllm, pytest.mark.long]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: Any) -> Path:
    folder = tmp_path_factory.mktemp("vllm")
    write_models(folder, tokenizer)
    return folder


@pytest.fixture(scope="module")
def outputs(folder: Path) -> dict[str, dict[str, Any]]:
    """What both engines say, by engine."""
    assert PYTHON is not None
    outputs = {}
    for engine, python in (("transformers", Path(sys.executable)), ("vllm", PYTHON)):
        variables = vllm.variables(PYTHON, folder) if engine == "vllm" else {}
        out = folder / f"{engine}.json"
        done = subprocess.run(
            [python, PROBE, engine, folder, out],
            env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        outputs[engine] = json.loads(out.read_text())
    return outputs


def first_difference(folder: Path, ours: list[Any], theirs: list[Any]) -> str | None:
    """The place where two lists of answers part, and how far apart the logits of the two tokens are there."""
    for (row, _, _, one, _), (_, _, _, other, _) in zip(ours, theirs, strict=True):
        if one != other:
            shorter = min(len(one), len(other))
            at = next((i for i in range(shorter) if one[i] != other[i]), shorter)
            policy = load_policy(folder / "policy", "fp32", "cpu")
            prompt = Renderer(policy.tokenizer, "plain", 160).prompt_ids([{"role": "user", "content": PROMPTS[row]}])
            logits = policy.model(torch.tensor([prompt + one[:at]])).logits[0, -1]
            gap = abs(float(logits[one[at]] - logits[other[at]])) if at < shorter else float("nan")
            return f"prompt {row}, token {at}: {one[at : at + 1]} and {other[at : at + 1]}, a gap of {gap:g}"
    return None


class TestSideBySide:
    pytestmark = long

    def test_fifty_prompts_have_the_same_greedy_tokens(self, outputs: Any, folder: Path) -> None:
        ours, theirs = outputs["transformers"]["greedy"], outputs["vllm"]["greedy"]
        assert len(ours) == 50
        assert len({len(ids) for _, _, _, ids, _ in ours}) > 4, "the answers must end at different lengths"
        assert first_difference(folder, ours, theirs) is None
        assert theirs == ours

    def test_what_needs_a_gpu_is_refused_without_one(self, outputs: Any) -> None:
        code, words = outputs["vllm"]["speculative_tokens"]
        assert (code, "`vllm.speculative_tokens` needs a GPU" in words) == ("engine_refused", True)
        code, words = outputs["vllm"]["quantisation"]
        assert (code, "`vllm.quantisation` and `vllm.kv_cache` need a GPU" in words) == ("engine_refused", True)

    def test_an_adapter_is_served_without_merging_it(self, outputs: Any) -> None:
        ours, theirs = outputs["transformers"]["adapted"], outputs["vllm"]["adapted"]
        assert theirs == ours
        changed = sum(one[3] != other[3] for one, other in zip(ours, outputs["transformers"]["greedy"], strict=True))
        assert changed > 25

    @pytest.mark.parametrize("how", ["stopped", "streamed", "cut", "unlimited", "greedy_twice", "refused"])
    def test_limits_stops_and_pieces_are_the_same(self, outputs: Any, how: str) -> None:
        assert outputs["vllm"][how] == outputs["transformers"][how]

    def test_streamed_pieces_add_up_to_the_answers(self, outputs: Any) -> None:
        texts = {(row, n): text for row, n, text, _, _ in outputs["vllm"]["stopped"]}
        assert {(row, n): text for row, n, text in outputs["vllm"]["streamed"]} == texts

    def test_samples_are_drawn_by_seed_row_and_number(self, outputs: Any) -> None:
        drawn = {(row, n): text for row, n, text, _, _ in outputs["vllm"]["sampled"]}
        assert len(drawn) == 150
        assert outputs["vllm"]["sampled"] == outputs["vllm"]["sampled_again"]
        # Some answers end at once.
        assert sum(len({drawn[row, n] for n in range(3)}) == 3 for row in range(40)) > 30
        shard = {(row, n): text for row, n, text, _, _ in outputs["vllm"]["sampled_shard"]}
        # Other batches round otherwise, so a draw between two almost equal tokens may fall the other way.
        assert sum(drawn[key] == text for key, text in shard.items()) >= len(shard) - 1

    def test_more_prompts_than_a_step_reads_are_sampled_from(self, outputs: Any) -> None:
        assert outputs["vllm"]["crowd"] == [[row, n] for row in range(64) for n in range(2)]

    def test_answers_that_never_come_are_an_error(self, outputs: Any) -> None:
        assert outputs["vllm"]["lost"] == "engine_failed: 4 answers never arrived"

    def test_rewards_differ_by_less_than_a_thousandth(self, outputs: Any) -> None:
        ours, theirs = outputs["transformers"]["rewards"], outputs["vllm"]["rewards"]
        assert len(theirs) == len(ours) == 601
        assert max(ours) - min(ours) > 1
        assert max(abs(one - other) for one, other in zip(ours, theirs, strict=True)) < 1e-3


@pytest.mark.parametrize(("rank", "room"), [(1, 8), (8, 8), (9, 16), (300, 320), (512, 512)])
def test_an_adapter_gets_room_of_a_rank_that_the_kernels_know(rank: int, room: int) -> None:
    assert vllm_rank(rank) == room


def test_an_adapter_of_a_larger_rank_is_refused_with_what_to_do() -> None:
    with pytest.raises(BadInput, match="rank is 513, and vLLM supports at most 512") as caught:
        vllm_rank(513)
    assert (caught.value.code, "merged" in (caught.value.hint or "")) == ("engine_refused", True)


WATCHED = """
import sys, time
from pathlib import Path
from steerboard_contracts.run_kinds.mix import MixConfig
from steerboard_contracts.stage.spec import StageSpec
from steerboard_workers.engines.vllm.watchdog import Watchdog
from steerboard_workers.stages.runtime import EventWriter, Stage

spec = StageSpec(run_id="r", name="r", config=MixConfig(parts=[{{}}]))
watchdog = Watchdog(Stage(Path("."), spec, EventWriter(1)).give_up)
{before}
with watchdog.limit({limit}, "the engine made no step", {processes}):
    {body}
time.sleep(0.6)
print("alive", flush=True)
"""


CHILD = """
import multiprocessing
child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(300,))
child.start()
child.kill()
"""


def watched(
    body: str, *, limit: float = 0.4, processes: str = "()", before: str = ""
) -> subprocess.CompletedProcess[str]:
    code = WATCHED.format(body=body, limit=limit, processes=processes, before=before)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)


def test_an_engine_without_a_step_in_time_ends_the_stage_with_a_word_and_no_hang() -> None:
    began = time.monotonic()
    done = watched("time.sleep(300)")
    assert time.monotonic() - began < 30
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert (said["type"], said["code"], said["retryable"]) == ("failed", "engine_failed", True)
    assert "no step within 0.4 seconds" in said["detail"]


def test_a_process_of_the_engine_that_died_ends_the_stage_long_before_its_time() -> None:
    began = time.monotonic()
    done = watched("time.sleep(300)", limit=200, processes="[child]", before=CHILD)
    assert time.monotonic() - began < 60
    said = json.loads(done.stdout)
    assert (said["code"], said["detail"]) == ("engine_failed", "a process of the engine died")


def test_an_engine_that_makes_steps_may_take_as_long_as_it_needs() -> None:
    done = watched("[(time.sleep(0.1), watchdog.beat()) for _ in range(10)]")
    assert (done.returncode, done.stdout) == (0, "alive\n")
