"""Classifier-free guidance by vLLM: the tokens of the transformers engine, whatever the engine's room; or a refusal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from engine_prompts import TEXTS

from steerboard.platform.processes import vllm
from steerboard_contracts.decoding import Decoding
from steerboard_contracts.run_kinds.evaluate import EvaluateConfig
from steerboard_contracts.run_kinds.generate import GenerateConfig
from steerboard_workers.engines.protocol import Request
from steerboard_workers.engines.sampling import stream_key
from steerboard_workers.engines.transformers_engine import TransformersEngine
from steerboard_workers.engines.vllm.guidance.pairs import AGAINST, GUIDANCE, KEY, SILENT, check, members
from steerboard_workers.stages.models.model_io import load_policy
from support.models.vllm_engine import PYTHON, needs_vllm, write_models

HERE = Path(__file__).parent
long = [needs_vllm, pytest.mark.long]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: Any) -> Path:
    folder = tmp_path_factory.mktemp("vllm")
    write_models(folder, tokenizer)
    return folder


def probed(python: Path, probe: str, folder: Path, *arguments: str) -> Any:
    """What a probe writes, which runs by `python`."""
    assert PYTHON is not None
    variables = vllm.variables(PYTHON, folder) if python == PYTHON else {}
    out = folder / f"{probe}-{'-'.join(arguments)}.json"
    done = subprocess.run(
        [python, HERE / probe, *arguments, folder, out],
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(out.read_text())


@pytest.fixture(scope="module")
def both(folder: Path) -> Any:
    return {
        engine: probed(python, "vllm_guidance_probe.py", folder, engine)
        for engine, python in (("transformers", Path(sys.executable)), ("vllm", PYTHON))
    }


class TestSideBySide:
    pytestmark = long

    @pytest.mark.parametrize("how", ["greedy_0", "greedy_0.5", "greedy_3", "stopped", "unlimited"])
    def test_guided_greedy_tokens_are_those_of_transformers(self, both: Any, how: str) -> None:
        assert both["vllm"][how] == both["transformers"][how]
        assert len({len(ids) for _, _, _, ids, _ in both["vllm"][how]}) > 4, "the answers must end at many lengths"

    def test_guidance_changes_the_answers(self, both: Any) -> None:
        pairs = zip(both["vllm"]["greedy_3"], both["vllm"]["unguided"], strict=True)
        assert sum(one[3] != other[3] for one, other in pairs) > 30

    def test_samples_are_drawn_from_the_same_streams(self, both: Any) -> None:
        ours, theirs = both["transformers"]["sampled"], both["vllm"]["sampled"]
        assert len(ours) == len(theirs) == 123
        # Rounding may let a draw between two almost equal tokens fall the other way.
        assert sum(one == other for one, other in zip(ours, theirs, strict=True)) > 120
        shard = {(row, n): ids for row, n, _, ids, _ in both["vllm"]["sampled_shard"]}
        assert sum(shard.get((row, n)) == ids for row, n, _, ids, _ in theirs) >= len(shard) - 1

    def test_plain_requests_of_a_guided_engine_are_answered_as_ever(self, both: Any) -> None:
        assert both["vllm"]["unguided"] == both["transformers"]["unguided"]

    def test_an_adapter_is_guided_unmerged(self, both: Any) -> None:
        assert both["vllm"]["adapted"] == both["transformers"]["adapted"]


@pytest.fixture(scope="module")
def ours(folder: Path) -> dict[str, list[Any]]:
    policy = load_policy(folder / "policy", "fp32", "cpu")
    engine = TransformersEngine(policy.model, policy.renderer, torch.device("cpu"))
    requests = [Request(row, [{"role": "user", "content": text}], "5.00") for row, text in enumerate(TEXTS)]

    def answers(**decoding: Any) -> list[Any]:
        made = engine.generate(requests, Decoding(max_new_tokens=40, **decoding), 7)
        return sorted([c.row, c.n, c.token_ids] for c in made)

    return {
        "greedy": answers(guidance=3.0),
        "sampled": answers(guidance=3.0, temperature=0.9, n=3),
        "plain": answers(),
    }


@pytest.fixture(scope="module")
def narrow(folder: Path) -> Any:
    assert PYTHON is not None
    return probed(PYTHON, "vllm_pairs_probe.py", folder)


class TestNarrowEngines:
    """Prompts in parts of 24 tokens; room for hardly more than one pair; no prefix cache, and three sequences."""

    pytestmark = long

    @pytest.mark.parametrize("engine", ["parts", "tight", "uncached"])
    def test_answers_are_those_of_transformers(self, narrow: Any, ours: Any, engine: str) -> None:
        assert narrow[engine]["greedy"] == ours["greedy"]
        same = sum(one == other for one, other in zip(ours["sampled"], narrow[engine]["sampled"], strict=True))
        assert same >= len(ours["sampled"]) - 2, "rounding may flip a draw"

    @pytest.mark.parametrize("engine", ["parts", "tight", "uncached"])
    def test_guided_and_plain_requests_are_computed_together(self, narrow: Any, ours: Any, engine: str) -> None:
        wanted = [one if one[0] % 3 == 0 else other for one, other in zip(ours["greedy"], ours["plain"], strict=True)]
        assert narrow[engine]["mixed"] == wanted

    def test_only_plain_requests_are_preempted(self, narrow: Any) -> None:
        assert narrow["tight"]["preempted"]["plain"] > 0
        assert narrow["tight"]["preempted"]["guided"] == 0

    def test_prompts_that_fill_their_blocks_are_among_them(self, narrow: Any) -> None:
        assert narrow["parts"]["fill_blocks"] > 0

    def test_requests_that_are_aborted_leave_nothing_behind_and_harm_no_other(self, narrow: Any, ours: Any) -> None:
        for engine in narrow.values():
            assert engine["aborted"] == engine["left"] == [0, 0, 0, 0, 0]
            assert engine["greedy_again"] == ours["greedy"]

    def test_a_cache_without_room_for_a_pair_is_refused_at_the_start(self, narrow: Any) -> None:
        assert "guidance needs a cache for two sequences of 160 tokens" in narrow["tight"]["too_small"]


def params(**fields: Any) -> Any:
    return SimpleNamespace(
        **{"extra_args": None, "seed": None, "temperature": 0.7, "top_k": -1, "top_p": 0.9, **fields}
    )


ASKED = {GUIDANCE: 3.0, AGAINST: [1, 2, 3]}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"extra_args": {GUIDANCE: 3.0}}, "for chat completions alone"),
        ({"extra_args": {AGAINST: [1, 2]}}, "for chat completions alone"),
        ({"extra_args": {**ASKED, GUIDANCE: -1}}, "a number from 0 to 20, got -1"),
        ({"extra_args": {**ASKED, GUIDANCE: "3"}}, "a number from 0 to 20, got '3'"),
        ({"extra_args": {**ASKED, AGAINST: [1]}}, "at least two token ids"),
        ({"extra_args": {**ASKED, AGAINST: [1, "2"]}}, "at least two token ids"),
        ({"extra_args": {**ASKED, SILENT: [-1]}}, "guidance_silent is a list of token ids"),
        ({"extra_args": {**ASKED, "guidance_pair": {}}}, "the server's own"),
        ({"extra_args": ASKED, "min_p": 0.1}, "take no min_p"),
        ({"extra_args": ASKED, "repetition_penalty": 1.1, "logprobs": 0}, "take no repetition_penalty, logprobs"),
    ],
)
def test_guidance_that_cannot_be_given_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check(params(**given))


def test_requests_without_guidance_and_well_formed_ones_pass() -> None:
    check(params(min_p=0.3))
    check(params(extra_args={"session_id": "s"}, repetition_penalty=1.2))
    check(params(extra_args=ASKED, min_p=0.0, repetition_penalty=1.0, logprobs=None))


def test_both_requests_of_a_pair_draw_from_one_stream() -> None:
    one, other = members(params(extra_args={**ASKED, KEY: 5}), "r")
    assert (one.conditional, other.conditional, one.pair, other.pair) == (True, False, "r", "r")
    assert one.key == other.key == 5
    assert one.decoding == other.decoding == Decoding(temperature=0.7, top_p=0.9, guidance=3.0)
    assert members(params(extra_args=ASKED, seed=9), "r")[0].key == stream_key(9, 0)
    assert members(params(extra_args=ASKED), "r")[0].key != members(params(extra_args=ASKED), "r")[0].key


def test_configs_take_guidance_with_vllm() -> None:
    assert GenerateConfig(engine="vllm", prompts=["What?"], decoding={"guidance": 2}).decoding.guided
    entrants = [{"scores": [5.0], "guidance": 3.0}]
    assert EvaluateConfig(engine="vllm", entrants=entrants).entrants[0].guidance == 3
