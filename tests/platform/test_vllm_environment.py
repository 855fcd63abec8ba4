"""Where a stage with vLLM finds our code, and how the platform finds vLLM."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from steerboard.cli.server import doctor
from steerboard.platform.processes import vllm
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


def test_the_doctor_tells_whether_vllm_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "_CHECKOUT", tmp_path)
    absent = doctor._vllm(Settings(vllm_python=None))
    assert absent.ok, "nobody needs it"
    assert "make setup-vllm" in absent.found
    without = doctor._vllm(Settings(vllm_python=Path(sys.executable)))
    assert (without.ok, without.found) == (False, f"no vLLM in {sys.executable}")
    assert "STEERBOARD_VLLM_PYTHON" in without.mend
