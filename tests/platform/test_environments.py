"""A stage of another environment finds our code, and the platform finds those of vLLM and of benchmarks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from steerboard.cli.server import doctor
from steerboard.platform.processes import llama_cpp, lm_eval, vllm
from steerboard.platform.processes.environments import version_in
from steerboard.platform.settings import Settings
from steerboard_contracts.errors import EngineMissing


def test_the_named_python_goes_before_any_other(tmp_path: Path) -> None:
    named = Settings(vllm_python=Path(sys.executable))
    assert vllm.require_python(named) == Path(sys.executable)
    with pytest.raises(EngineMissing) as caught:
        vllm.require_python(Settings(vllm_python=tmp_path / "python"))
    assert str(tmp_path / "python") in caught.value.detail
    assert not caught.value.retryable


def test_a_stage_of_another_environment_sees_our_packages_and_nothing_beside_them(tmp_path: Path) -> None:
    code = "import steerboard_workers.stages.runtime, steerboard_statistics"
    given = vllm.variables(Path(sys.executable), tmp_path)
    again = vllm.variables(Path(sys.executable), tmp_path)
    assert given == again
    folder = Path(given["PYTHONPATH"])
    assert {path.name for path in folder.iterdir()} == {
        "steerboard_contracts",
        "steerboard_statistics",
        "steerboard_workers",
    }
    subprocess.run([sys.executable, "-c", code], env=given, check=True, stdout=subprocess.DEVNULL)


def test_a_link_to_an_older_checkout_is_put_right(tmp_path: Path) -> None:
    folder = Path(vllm.variables(Path(sys.executable), tmp_path)["PYTHONPATH"])
    link = folder / "steerboard_workers"
    right = link.readlink()
    link.unlink()
    link.symlink_to(tmp_path / "gone")
    vllm.variables(Path(sys.executable), tmp_path)
    assert link.readlink() == right


@pytest.mark.parametrize(
    ("environment", "look", "package", "setting", "target"),
    [
        (vllm, doctor._vllm, "vllm", "vllm_python", "setup-vllm"),
        (lm_eval, doctor._benchmarks, "lm_eval", "benchmarks_python", "setup-benchmarks"),
        (llama_cpp, doctor._gguf, "llama_cpp_python", "gguf_python", "setup-gguf"),
    ],
)
def test_the_doctor_finds_what_is_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: ModuleType,
    look: Callable[[Settings], doctor.Check],
    package: str,
    setting: str,
    target: str,
) -> None:
    monkeypatch.setattr(environment, "_CHECKOUT", tmp_path)
    absent = look(Settings(**{setting: None}))
    assert absent.ok, "nobody needs it"
    assert f"make {target}" in absent.found
    without = look(Settings(**{setting: Path(sys.executable)}))
    assert (without.ok, without.found) == (False, f"no {package} in {sys.executable}")
    assert f"STEERBOARD_{setting.upper()}" in without.mend


def test_the_first_of_several_distributions_that_is_there_has_its_version() -> None:
    assert (version_in(Path(sys.executable), ("nothing", "pytest")) or "").startswith("pytest ")
