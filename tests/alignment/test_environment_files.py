"""Environments in a process of their own: their protocol, their limits, and what their failures say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from steerboard_contracts.files.local_folders import FolderNotAllowed, LocalFolders
from steerboard_contracts.online.environments import PythonEnvironment
from steerboard_workers.alignment.online.environment import PythonProcess
from steerboard_workers.alignment.online.environment_protocol import Call, EnvironmentFailed, Step
from support.environments import of_file

COUNTS = """
import time

class Environment:
    def reset(self, row):
        self.heard = []

    def step(self, answer):
        if answer == "sleep":
            time.sleep(60)
        self.heard.append(answer)
        return "+".join(self.heard), len(self.heard), answer == "end"
"""


def opened(folder: Path, code: str = COUNTS, **fields) -> PythonProcess:
    file = folder / "environment.py"
    file.write_text(textwrap.dedent(code))
    return PythonProcess.open(PythonEnvironment.model_validate(of_file(file, **fields)), LocalFolders(roots=(folder,)))


def said(text: str, reward: float, done: bool = False) -> Step:
    return Step([{"role": "user", "content": text}], reward, done)


def test_each_rollout_has_an_environment_of_its_own_that_hears_its_answers_in_turn(tmp_path):
    environment = opened(tmp_path)
    assert environment.step([Call(0, {"row": 3}, ()), Call(1, {"row": 3}, ())], 0) == [Step([])] * 2
    first = environment.step([Call(0, {"row": 3}, ("a",)), Call(1, {"row": 3}, ("b",))], 0)
    assert first == [said("a", 1.0), said("b", 1.0)]
    assert environment.step([Call(1, {"row": 3}, ("b", "end"))], 0) == [said("b+end", 2.0, True)]


def test_a_rollout_that_takes_too_long_is_lost_and_the_others_go_on_where_they_were(tmp_path):
    environment = opened(tmp_path, seconds=1.5)
    environment.step([Call(key, {}, ("a",)) for key in range(3)], 0)
    child = environment.sandbox.child
    assert child is not None
    steps = environment.step([Call(0, {}, ("a", "b")), Call(1, {}, ("a", "sleep")), Call(2, {}, ("a", "end"))], 1)
    assert steps == [said("a+b", 2.0), Step(lost=True), said("a+end", 2.0, True)]
    assert not Path(f"/proc/{child.pid}").exists()
    began = time.monotonic()
    assert all(step.lost for step in environment.step([Call(9 + n, {}, ("sleep",)) for n in range(50)], 0))
    assert time.monotonic() - began < 30


def test_a_killed_process_is_started_again_and_hears_the_earlier_answers_once_more(tmp_path):
    environment = opened(tmp_path)
    environment.step([Call(0, {}, ("a",)), Call(1, {}, ("c",))], 0)
    assert environment.sandbox.child is not None
    os.kill(environment.sandbox.child.pid, signal.SIGKILL)
    assert environment.step([Call(0, {}, ("a", "b")), Call(1, {}, ("c", "d"))], 0) == [
        said("a+b", 2.0),
        said("c+d", 2.0),
    ]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("class Other: ...", "defines no class `Environment`"),
        ("1 +", "SyntaxError"),
        (COUNTS.replace("self.heard = []", "1 / 0"), r"ZeroDivisionError: .*, on reset of row 7"),
        (COUNTS.replace("self.heard.append", "self.other.append"), r"AttributeError: .*on the answer 'a' of row 7"),
        (COUNTS.replace("return ", "return 3 #"), r"step returned '3', and not \(observation, reward, done\)"),
        (COUNTS.replace('"+".join(self.heard)', "None"), "step returned neither an observation nor done"),
        (COUNTS.replace("len(self.heard)", '"much"'), "the reward 'much', which is not a number"),
        (
            COUNTS.replace('"+".join(self.heard)', '{"role": "assistant", "content": "a"}'),
            "has the role 'assistant', and not user or tool",
        ),
        (COUNTS.replace("self.heard.append", "bytearray(8 << 30) and self.heard.append"), "MemoryError"),
    ],
)
def test_an_environment_that_fails_is_shown_with_the_answer(tmp_path, code, message):
    def asked() -> None:
        environment = opened(tmp_path, code)
        for answers in ((), ("a",)):
            environment.step([Call(0, {"row": 7}, answers)], 0)

    with pytest.raises(EnvironmentFailed, match=message):
        asked()


def test_only_the_file_that_was_named_and_allowed_is_run(tmp_path):
    file = tmp_path / "environment.py"
    file.write_text(COUNTS)
    config = PythonEnvironment.model_validate(of_file(file))
    with pytest.raises(FolderNotAllowed):
        PythonProcess.open(config, LocalFolders())
    file.write_text(COUNTS + "# changed")
    with pytest.raises(EnvironmentFailed, match=r"has the SHA-256 .*, and the run asks for"):
        PythonProcess.open(config, LocalFolders(roots=(tmp_path,)))


def test_it_ends_with_the_process_that_asked_however_that_ends(tmp_path):
    opened(tmp_path)  # writes the file
    program = f"""
        from pathlib import Path
        from steerboard_workers.alignment.online.environment import PythonProcess
        environment = PythonProcess(Path({str(tmp_path / "environment.py")!r}).read_text(), "e.py", 30)
        print(environment.sandbox.child.pid, flush=True)
        input()
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert Path(f"/proc/{child}").exists()
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 20
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
