"""Snippets of a policy, run as they are: they answer as the platform does, at the score that they name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from dashboard_world import World
from playwright.sync_api import Page, expect

import steerboard_client as sb
from steerboard.publishing.snippets import PROMPT, tokens_of
from steerboard_contracts.models import ModelInfo
from support.models.vllm_engine import PYTHON as VLLM
from support.models.vllm_engine import needs_vllm


@pytest.fixture(scope="module")
def exported(world: World, steered: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that has the exported policy, by its name."""
    folder = tmp_path_factory.mktemp("elsewhere")
    world.steerboard("models", "export", steered, str(folder / steered))
    return folder


def answers(world: World, folder: Path, steered: str, where: str, python: str = sys.executable) -> list[str]:
    """What the snippets print at 5 and -5."""
    token = json.loads((world.home / "client.json").read_text())["token"]
    environment = {**os.environ, "STEERBOARD_TOKEN": token, "TOKENIZERS_PARALLELISM": "false"}
    # On a CPU vLLM takes nearly all memory where this does not bound it, and it logs among the answers.
    environment |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    printed, codes = [], set()
    for score in ("5", "-5"):
        code = folder / f"ask_{where}.py"
        code.write_text(world.steerboard("models", "snippet", steered, "--for", where, f"--score={score}"))
        codes.add(code.read_text())
        done = subprocess.run([python, code], cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.strip())
    assert len(codes) == 2
    return printed


def asked_here(world: World, steered: str) -> list[str]:
    token = json.loads((world.home / "client.json").read_text())["token"]
    with sb.connect(world.url, token) as board:
        policy = board.model(steered)
        tokens = tokens_of(ModelInfo.model_validate(world.get(f"models/{steered}")["info"]))
        return [str(policy.generate(PROMPT, score, temperature=0.0, max_new_tokens=tokens)) for score in (5.0, -5.0)]


@pytest.mark.long
@pytest.mark.parametrize("where", ["transformers", "openai"])
def test_a_snippet_answers_as_the_platform_does(world: World, exported: Path, steered: str, where: str) -> None:
    printed = answers(world, exported, steered, where)
    assert printed == [text.strip() for text in asked_here(world, steered)]


@needs_vllm
@pytest.mark.long
def test_a_snippet_for_vllm_answers_as_the_platform_does(world: World, exported: Path, steered: str) -> None:
    assert VLLM is not None
    printed = answers(world, exported, steered, "vllm", str(VLLM))
    assert printed == [text.strip() for text in asked_here(world, steered)]


def test_a_snippet_for_ollama_writes_the_prompt_that_the_model_learned(
    world: World, exported: Path, steered: str
) -> None:
    code = world.steerboard("models", "snippet", steered, "--for", "ollama", "--score=-5")
    written = code.replace("import httpx\n", "").partition("body = ")[0] + "print(prompt)\n"
    done = subprocess.run([sys.executable, "-c", written], cwd=exported, capture_output=True, text=True, timeout=600)
    assert "<rm_score> -5.00" in done.stdout, done.stderr


def test_the_page_of_a_model_shows_the_code(page: Page, steered: str) -> None:
    page.goto(f"/p/default/models/{steered}")
    code = page.get_by_role("group", name="Code", exact=True)
    expect(code).to_contain_text('rm_score="5.00"')
    page.get_by_text("OpenAI", exact=True).click()
    expect(code).to_contain_text(f'model="{steered}"')
    expect(code).to_contain_text("/p/default/v1")
