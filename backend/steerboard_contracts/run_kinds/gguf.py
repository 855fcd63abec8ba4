"""A model becomes one GGUF file, which llama.cpp and Ollama load."""

from __future__ import annotations

from typing import Literal

from steerboard_contracts.fields import Config
from steerboard_contracts.files.gguf_export import GgufPrecision
from steerboard_contracts.models import POLICIES
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import models


class GgufConfig(Config):
    """Converts input `model`, merged if it is an adapter, and compares what the file answers."""

    run: Literal["gguf"] = "gguf"
    precision: GgufPrecision = "f16"


SPEC = RunKindSpec(
    run="gguf",
    title="Export as GGUF",
    about="Write a model as one GGUF file for llama.cpp and Ollama, and compare its answers.",
    config=GgufConfig,
    slots={"model": models(*POLICIES)},
)
