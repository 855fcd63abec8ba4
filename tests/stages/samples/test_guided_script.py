"""`sample_guided.py`, which exports of policies with scores carry, against our own engine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import torch

from steerboard.cli.models.files import add_guided_script
from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.decoding import Decoding
from steerboard_workers.engines.protocol import Request
from steerboard_workers.engines.transformers_engine import TransformersEngine
from steerboard_workers.stages.models.model_io import load_policy, load_tokenizer
from steerboard_workers.stages.models.model_saving import save_model
from steerboard_workers.stages.models.score_tokens import add_score_tokens, set_rows, token_ids
from support.models.vllm_engine import write_models

PROMPTS = ("How can I grow tomatoes?", "What is the best way to learn Spanish on a small budget?")


def exported(source: Path, folder: Path) -> Path:
    shutil.copytree(source, folder)
    described = {"info": json.loads((folder / "steerboard.json").read_text())}
    script = add_guided_script(described, folder)
    assert script is not None
    return script


def module_of(script: Path):
    spec = spec_from_file_location("exported_script", script)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_script(script: Path, prompt: str, score: str, guidance: float) -> list[int]:
    module = module_of(script)
    tokenizer, model = module.load(script.parent)
    prompts = [module.prompt_ids(tokenizer, prompt, written) for written in (score, "")]
    assert len(prompts[0][0]) > len(prompts[1][0])
    return module.sample(model, prompts, module.end_ids(tokenizer, model), guidance, 0.0, 24)


def by_engine(folder: Path, prompt: str, score: str, guidance: float) -> list[int]:
    policy = load_policy(folder, "fp32", "cpu")
    engine = TransformersEngine(policy.model, policy.renderer, torch.device("cpu"))
    asked = [Request(0, [{"role": "user", "content": prompt}], score)]
    (answer,) = engine.generate(asked, Decoding(max_new_tokens=24, guidance=guidance), seed=0)
    return answer.token_ids


@pytest.mark.parametrize("guidance", [0.0, 1.0, 3.0])
def test_the_exported_script_gives_the_greedy_tokens_of_the_engine(pipeline, tmp_path, guidance):
    script = exported(Path(pipeline.things["dt"].path), tmp_path / "exported")
    for prompt in PROMPTS:
        for score in ("5.00", "-2.50"):
            ours = by_engine(script.parent, prompt, score, guidance)
            assert by_script(script, prompt, score, guidance) == ours
            assert len(ours) > 2


def test_the_exported_script_draws_no_token_of_a_score(pipeline, tmp_path):
    policy = load_policy(pipeline.things["sft"].path, "fp32", "cpu")
    form = ConditionFormat.of_score(style="tokens", place="both")
    add_score_tokens(policy.tokenizer, form.how)
    set_rows(policy.model, policy.tokenizer, form.how)
    silent = token_ids(policy.tokenizer, form.how)
    with torch.no_grad():  # a policy that likes nothing better
        policy.model.get_output_embeddings().weight[silent] *= 30
    info = policy.info.model_copy(update={"role": "policy", "condition": form})
    save_model(tmp_path / "tokens", policy.model, policy.tokenizer, info)
    script = exported(tmp_path / "tokens", tmp_path / "exported")
    drawn = by_script(script, PROMPTS[0], "5.00", 1.5)
    assert drawn == by_engine(script.parent, PROMPTS[0], "5.00", 1.5)
    assert not set(drawn) & set(silent)


def test_guidance_of_the_script_changes_what_it_writes(pipeline, tmp_path):
    script = exported(Path(pipeline.things["dt"].path), tmp_path / "exported")
    answers = {tuple(by_script(script, PROMPTS[0], "5.00", guidance)) for guidance in (0.0, 1.0, 20.0)}
    assert len(answers) > 1


def test_an_exported_adapter_is_guided_over_its_base(pipeline, tmp_path):
    source = Path(pipeline.things["dt"].path)
    write_models(tmp_path, load_tokenizer(source))
    load_tokenizer(source).save_pretrained(tmp_path / "adapted")  # with the template that takes scores
    path = tmp_path / "adapted" / "steerboard.json"
    condition = json.loads((source / "steerboard.json").read_text())["condition"]
    path.write_text(json.dumps({**json.loads(path.read_text()), "condition": condition}))
    script = exported(tmp_path / "adapted", tmp_path / "exported")
    drawn = by_script(script, PROMPTS[1], "5.00", 1.5)
    assert drawn == by_engine(script.parent, PROMPTS[1], "5.00", 1.5)
    base = script.parent / "base"
    load_tokenizer(source).save_pretrained(base)
    alone = shutil.copyfile(script, base / script.name)
    assert drawn != by_script(alone, PROMPTS[1], "5.00", 1.5), "the base alone answers otherwise"


def test_the_script_runs_by_itself_and_prints_an_answer(pipeline, tmp_path):
    script = exported(Path(pipeline.things["dt"].path), tmp_path / "exported")
    options = ("--score", "-2.5", "--guidance", "3", "--max-new-tokens", "24")
    done = subprocess.run(
        [sys.executable, "-I", script, PROMPTS[0], *options], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    policy = load_policy(script.parent, "fp32", "cpu")
    ids = by_engine(script.parent, PROMPTS[0], "-2.50", 3.0)
    assert done.stdout.removesuffix("\n") == policy.renderer.response_text(ids)


def test_the_script_refuses_a_template_that_writes_no_score(pipeline, tmp_path):
    script = exported(Path(pipeline.things["dt"].path), tmp_path / "exported")
    (script.parent / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    done = subprocess.run([sys.executable, "-I", script, PROMPTS[0], "--score", "5"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "writes no condition for '5'" in done.stderr


def test_a_policy_without_scores_gets_no_script(tmp_path):
    assert add_guided_script({"info": {"condition": None}}, tmp_path) is None
    assert add_guided_script({"info": None}, tmp_path) is None
    assert list(tmp_path.iterdir()) == []
