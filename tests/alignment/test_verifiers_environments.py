"""Environments of the package `verifiers`, where it is installed, in the process of an environment file."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.online.environments import PythonEnvironment
from steerboard_workers.alignment.online.environment import PythonProcess
from steerboard_workers.alignment.online.environment_protocol import Call, EnvironmentFailed, Step
from support.environments import of_file

verifiers = pytest.importorskip("verifiers", reason="verifiers is not installed: docs/environments.md#verifiers")
if not hasattr(verifiers, "load_environment"):
    pytest.skip("this release of verifiers has no load_environment", allow_module_level=True)

# An environment as its authors install it: a module with `load_environment`.
INSTALLED = """
import verifiers as vf
from datasets import Dataset

ROWS = Dataset.from_list([{"question": f"Say {word}.", "answer": word} for word in ("lamp", "tree")])

async def says_it(completion, answer):
    return float(answer in completion[-1].content)

class Countdown(vf.MultiTurnEnv):
    async def env_response(self, messages, state, **kwargs):
        if messages[-1].content == "break":
            raise RuntimeError("the clock is broken")
        left = 2 - len(state["trajectory"])
        if messages[-1].content == "stop":
            state["final_env_response"] = [vf.UserMessage(content="Stopped.")]
        return [vf.UserMessage(content=f"{left} left.")]

def load_environment(turns=1, system=None):
    rubric = vf.Rubric(funcs=[says_it], weights=[2.0])
    more = {"dataset": ROWS, "rubric": rubric, "system_prompt": system}
    return vf.SingleTurnEnv(**more) if turns == 1 else Countdown(max_turns=turns, **more)
"""
FILE = """
from steerboard_workers.environments.verifiers import VerifiersEnvironment

class Environment(VerifiersEnvironment):
    name = "countdown-for-tests"
    arguments = ARGUMENTS
"""


@pytest.fixture
def opened(tmp_path: Path, monkeypatch):
    """opened(**arguments) -> the environment in its process."""
    (tmp_path / "countdown_for_tests.py").write_text(textwrap.dedent(INSTALLED))
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))

    def start(**arguments) -> PythonProcess:
        file = tmp_path / "environment.py"
        file.write_text(FILE.replace("ARGUMENTS", repr(arguments)))
        config = PythonEnvironment.model_validate(of_file(file, seconds=120))
        return PythonProcess.open(config, LocalFolders(roots=(tmp_path,)))

    return start


def call(key: int, row: int, *answers: str) -> Call:
    return Call(key, {"row": row, "seed": 1, "prompt": [], "reference": None}, answers)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def test_a_single_turn_is_rewarded_by_the_rubric_for_the_example_of_the_row(opened):
    environment = opened(system="Be short.")
    system = {"role": "system", "content": "Be short."}
    assert environment.step([call(0, 0), call(1, 3)], 0) == [
        Step([system, user("Say lamp.")]),
        Step([system, user("Say tree.")]),
    ]
    steps = environment.step([call(0, 0, "a lamp"), call(1, 3, "a lamp")], 0)
    assert steps == [Step([], 2.0, True), Step([], 0.0, True)]


def test_turns_are_those_of_the_environment_and_its_reward_comes_with_the_last(opened):
    environment = opened(turns=3)
    assert environment.step([call(0, 0), call(1, 0)], 0) == [Step([user("Say lamp.")])] * 2
    assert environment.step([call(0, 0, "a"), call(1, 0, "lamp")], 0) == [Step([user("1 left.")])] * 2
    steps = environment.step([call(0, 0, "a", "b"), call(1, 0, "lamp", "stop")], 0)
    assert steps == [Step([user("0 left.")]), Step([], 0.0, True)]
    assert environment.step([call(0, 0, "a", "b", "lamp")], 0) == [Step([], 2.0, True)]


def test_what_the_environment_raises_fails_the_run_with_the_answer(opened):
    environment = opened(turns=3)
    environment.step([call(0, 0)], 0)
    with pytest.raises(EnvironmentFailed, match=r"the clock is broken.*on the answer 'break' of row 0"):
        environment.step([call(0, 0, "break")], 0)
