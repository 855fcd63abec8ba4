"""The place of llama.cpp and its converter, for tests that need them."""

from __future__ import annotations

import pytest

from steerboard.platform.processes import llama_cpp
from steerboard.platform.settings import Settings
from steerboard_contracts.stage.spec import EngineProcess

PYTHON = llama_cpp.find_python(Settings())
needs_llama_cpp = pytest.mark.skipif(PYTHON is None, reason="there is no .venv-gguf: run `make setup-gguf`")


def llama_cpp_process() -> EngineProcess:
    assert PYTHON is not None
    return EngineProcess(python=str(PYTHON), variables={"PYTHONPATH": str(llama_cpp.converter_of(PYTHON))})
