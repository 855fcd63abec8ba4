"""Blocks of the docs that train, on models of some thousand parameters."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from page_blocks import ROOT, Named, runs
from reader import PAIRS, TEXTS, Reader

from support.patience import wait_until

RECIPE = """
name: ci
inputs:
  base: {type: model}
  instructions: {type: dataset, kind: instructions, optional: true}
  preferences: {type: dataset, kind: preferences}
stages:
  sft: {run: train, method: sft, model: $base, data: $instructions, lr: 1.0e-3, batch: 8, max_steps: 2}
  reward: {run: train, method: reward_model, model: sft, data: $preferences, lr: 1.0e-3, batch: 8, max_steps: 2}
  report:
    run: evaluate
    entrants: [sft]
    rewards: [reward]
    decoding: {temperature: 0.0, max_new_tokens: 8}
"""


@pytest.mark.long
@runs(Named("getting-started.md", "source .venv/bin/activate\nsteerboard datasets"))
def test_own_data_and_a_folder_go_from_import_to_an_exported_policy(
    reader: Reader, blocks: list[Named], model_folders: Path
) -> None:
    (reader.folder / ".venv").symlink_to(sys.prefix)
    shutil.copytree(model_folders / "foreign", reader.folder / "my-model")
    with gzip.open(reader.folder / "pairs.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(pair) + "\n" for pair in PAIRS)
    printed = reader.shell(*blocks)
    assert "Imported hh: 20 preferences" in printed
    # A base with a chat template is asked in words.
    answered = re.findall(r'^(-?\d\.\d\d), as "\w+"', printed, re.MULTILINE)
    assert [float(score) for score in answered] == [5.0, 0.0, -5.0], printed
    report = json.loads((reader.folder / "report.json").read_text())
    assert {"sft", "decision_transformer"} <= {row["method"] for row in report["methods"]}
    from transformers import AutoModelForCausalLM, AutoTokenizer

    assert AutoModelForCausalLM.from_pretrained(reader.folder / "aligned").num_parameters() > 0
    assert "rm_score" in AutoTokenizer.from_pretrained(reader.folder / "aligned").chat_template


@pytest.mark.long
@runs(Named("ci.md", "steerboard run recipe.yaml"), Named("ci.md", "steerboard gate"))
def test_one_command_trains_and_decides_and_the_gate_decides_again(
    reader: Reader, blocks: list[Named], model_folders: Path
) -> None:
    reader.dataset("hh", "preferences", PAIRS)
    reader.models(model_folders, our_base="sft")
    (reader.folder / "recipe.yaml").write_text(RECIPE)
    rules = [{"metric": "responses_missing", "op": "==", "value": 0}]
    (reader.folder / "gate.yaml").write_text(yaml.safe_dump({"rules": rules}))
    whole, gate = blocks
    reader.shell(whole)
    suite = ElementTree.parse(reader.folder / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "0", "0")
    rules += [{"metric": "n", "op": "<", "value": 1}]
    (reader.folder / "gate.yaml").write_text(yaml.safe_dump({"rules": rules}))
    for name in ("ci-1", "ci-1.report"):
        assert "fail" in reader.shell(gate.text.replace("EVALUATION-OR-PIPELINE", name), status=1)
    suite = ElementTree.parse(reader.folder / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")


@pytest.mark.long
@runs(Named("runs.md", "steerboard runs pause demo-1.ppo"))
def test_a_run_is_paused_changed_and_resumed_and_learns_by_its_new_settings(
    reader: Reader, blocks: list[Named], model_folders: Path
) -> None:
    reader.models(model_folders, policy="sft", rm="reward")
    reader.dataset("asked", "prompts", [{"prompt": prompt} for prompt, _ in TEXTS])
    training = "{run: train, method: ppo, model: $policy, reward: $rm, data: $asked, LIMITS}"
    limits = "kl_weight: 0.1, batch: 4, max_steps: 2000, epochs: 1000, max_new_tokens: 8"
    (reader.folder / "demo.yaml").write_text(f"""
name: demo
inputs: {{policy: {{type: model}}, rm: {{type: model}}, asked: {{type: dataset, kind: prompts}}}}
stages:
  ppo: {training.replace("LIMITS", limits)}
""")
    reader.shell("steerboard run demo.yaml --set policy=policy --set rm=rm --set asked=asked")
    reader.wait("runs/demo-1.ppo", "running")
    assert "demo-1.ppo: paused\n" in reader.shell(*blocks)
    wait_until(lambda: reader.wait("runs/demo-1.ppo", "running")["changes"][0]["step"] is not None, pause=0.1)
    (change,) = reader.get("runs/demo-1.ppo")["changes"]
    assert change["values"] == {"lr": 3e-7, "kl_weight": 0.05}
    states = [step["to_state"] for step in reader.get("runs/demo-1.ppo")["timeline"]]
    assert states[states.index("paused") - 1] == "running"
    reader.shell("steerboard runs cancel demo-1.ppo")


@pytest.mark.long
@runs(Named("training.md", "steerboard generate graded-1.dt"))
def test_a_policy_is_asked_for_its_attributes(reader: Reader, blocks: list[Named], model_folders: Path) -> None:
    """Trained by the page's own stage, in fewer steps."""
    reader.models(model_folders, sft="sft")
    answers = [
        {"prompt": prompt, "response": answer, "attributes": {"helpfulness": n % 5, "verbosity": (n + 2) % 5}}
        for n, (prompt, answer) in enumerate(TEXTS)
    ]
    reader.dataset("graded", "labelled", answers)
    page = (ROOT / "docs" / "training.md").read_text()
    (stage,) = re.findall(r"^    (dt: \{.*attributes: \[.*\n.*\})$", page, re.MULTILINE)
    (reader.folder / "graded.yaml").write_text(
        "name: graded\ninputs: {sft: {type: model}, graded: {type: dataset, kind: labelled}}\nstages:\n  "
        + stage.replace("model: sft", "model: $sft, batch: 8, max_steps: 2")
    )
    reader.shell("steerboard run ./graded.yaml --set sft=sft --set graded=graded --wait")
    printed = reader.shell(*blocks)
    assert re.findall(r"helpfulness.*4.*verbosity.*\d", printed), printed


@pytest.mark.long
@runs(
    Named("training.md", "steerboard generate steered-1.dt"), Named("training.md", "steerboard models export steered")
)
def test_a_policy_is_guided_towards_its_score(reader: Reader, blocks: list[Named], model_folders: Path) -> None:
    reader.models(model_folders, sft="sft")
    answers = [
        {"prompt": prompt, "response": answer, "reward": float(n % 5)} for n, (prompt, answer) in enumerate(TEXTS)
    ]
    reader.dataset("scored", "labelled", answers)
    (reader.folder / "steered.yaml").write_text(
        "name: steered\ninputs: {sft: {type: model}, scored: {type: dataset, kind: labelled}}\nstages:\n  "
        "dt: {run: train, method: decision_transformer, model: $sft, data: $scored, drop_score: 0.1, batch: 8, "
        "max_steps: 2}\n"
    )
    reader.shell("steerboard run ./steered.yaml --set sft=sft --set scored=scored --wait")
    generated, exported = blocks
    printed = reader.shell(generated)
    assert len(re.findall(r"rm_score.*5", printed)) >= 2, printed
    words, answer = reader.shell(exported).split("samples with guidance")
    assert "steered" in words
    assert answer.strip(), "the script printed nothing"


@pytest.mark.long
@runs(Named("models.md", "steerboard models import ./my-model"), Named("models.md", "steerboard models import Skywork"))
def test_models_come_in_from_folders_and_from_the_hub_and_are_trained_and_score(
    reader: Reader, blocks: list[Named], model_folders: Path
) -> None:
    """The hub's models are tiny ones in the cache of this machine."""
    reader.hub("Qwen/Qwen2.5-0.5B", model_folders / "foreign")
    reader.hub("Skywork/Skywork-Reward-V2-Qwen3-0.6B", model_folders / "classifier")
    for name, folder in (("my-model", "foreign"), ("rm", "classifier")):
        shutil.copytree(model_folders / folder, reader.folder / name)
    reader.dataset("hh", "preferences", PAIRS)
    reader.dataset("answers", "instructions", [{"prompt": prompt, "response": answer} for prompt, answer in TEXTS])
    folders, hub = blocks
    reader.shell(folders)
    roles = {model["name"]: model["role"] for model in reader.get("models")["items"]}
    assert {"my-model": "base", "small": "base"}.items() <= roles.items()
    reader.shell("steerboard pipelines cancel offline-rlhf-1")
    reader.shell(hub)
    runs = reader.get("runs")["items"]
    for kind in ("train", "score"):
        reader.wait(
            f"runs/{next(run['id'] for run in runs if run['kind'] == kind and not run['pipeline'])}", "succeeded"
        )
    roles = {model["name"]: model["role"] for model in reader.get("models")["items"]}
    assert {"rm": "reward", "skywork": "reward"}.items() <= roles.items()
