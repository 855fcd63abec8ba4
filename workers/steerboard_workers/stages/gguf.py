"""The gguf stage: a model becomes one file of llama.cpp with its Modelfile, and both are asked the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from steerboard_contracts.errors import BadInput, EngineMissing
from steerboard_contracts.files.disk import Disk
from steerboard_contracts.files.gguf_export import GgufResult
from steerboard_contracts.run_kinds.gguf import GgufConfig
from steerboard_contracts.stage.events import Prepared, Succeeded
from steerboard_contracts.stage.outputs import GgufOutput
from steerboard_contracts.stage.spec import EngineProcess
from steerboard_contracts.watching.warnings import RunWarning
from steerboard_workers.stages.gguf_export import converter
from steerboard_workers.stages.gguf_export.comparing import (
    TOKENS,
    arguments_for,
    ask_llama_cpp,
    condition_asked,
    differences,
    ends_of,
    questions,
)
from steerboard_workers.stages.gguf_export.modelfile import modelfile, turns_of
from steerboard_workers.stages.models.merging import whole_folder
from steerboard_workers.stages.models.model_io import Policy, load_policy
from steerboard_workers.stages.runtime import Stage

MODELFILE = "Modelfile"
_STEPS = 3


def run(stage: Stage) -> Succeeded:
    """Its summary: `file`, `bytes`, `precision`, `prompts`, `differences`."""
    config = stage.spec.config
    assert isinstance(config, GgufConfig)
    process = stage.spec.llama_cpp
    if process is None:
        raise EngineMissing("the stage was given no llama.cpp", hint="Run it by a worker, or name one in stage.json.")
    name = re.sub(r"[^A-Za-z0-9._-]", "-", stage.model("model").name)
    folder, merged = whole_folder(stage, "model")
    with stage.output_folder("gguf") as out:
        target = out / f"{name}-{config.precision}.gguf"
        stage.progress(0, _STEPS, "steps", "converting")
        with stage.phases.measure("checkpoint"):
            _convert(stage, process, folder, target, config.precision)
        stage.progress(1, _STEPS, "steps", "loading")
        with stage.phases.measure("load"), stage.using_model("model", "opening"):
            policy = load_policy(folder, "auto", stage.spec.device)
        stage.progress(2, _STEPS, "steps", "comparing")
        with stage.phases.measure("evaluate"):
            result, adds = _compared(stage, process, policy, target, config, merged)
        _write_modelfile(out / MODELFILE, target.name, policy, adds)
    stage.progress(_STEPS, _STEPS, "steps", "comparing")
    stage.log(result.words, "info" if not (result.differences or result.unchecked) else "warning")
    if warning := _warning(result):
        stage.emit(Prepared(warnings=[warning]))
    summary = {
        "file": result.file,
        "bytes": result.size,
        "precision": result.precision,
        "prompts": result.prompts,
        "differences": len(result.differences),
    }
    return Succeeded(outputs=[GgufOutput(path=stage.output_path("gguf"), result=result)], summary=summary)


def _convert(stage: Stage, process: EngineProcess, folder: Path, target: Path, precision: str) -> None:
    """Raises `BadInput` (`gguf_unsupported`, `gguf_failed`), `NoSpaceLeft`."""
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    Disk(stage.directory, "the GGUF file", stage.spec.disk_reserve_mb).need(size)
    fault = stage.directory / "refused"
    fault.unlink(missing_ok=True)
    root = process.variables["PYTHONPATH"]
    done = subprocess.run(
        [sys.executable, "-P", converter.__file__, root, str(folder), str(target), precision, str(fault)],
        env={**os.environ, **process.variables, "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode == converter.UNKNOWN and fault.is_file():
        raise BadInput(
            f"{stage.model('model').name} cannot become a GGUF file: {fault.read_text()}",
            code="gguf_unsupported",
            hint="Export it as a folder, which transformers and vLLM load.",
        )
    if done.returncode != 0 or not target.is_file():
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        stage.log(done.stderr[-4000:], "error")
        raise BadInput(
            f"llama.cpp's converter failed on {stage.model('model').name}: {last[:300]}",
            code="gguf_failed",
            hint="The run's log has all of it. Export the model as a folder, which transformers and vLLM load.",
        )


def _compared(
    stage: Stage, process: EngineProcess, policy: Policy, target: Path, config: GgufConfig, merged: bool
) -> tuple[GgufResult, str]:
    """(what was found, the text that llama.cpp puts before every prompt by itself)."""
    asked = questions(policy)
    ends = ends_of(policy.model.generation_config.to_dict())
    result = GgufResult(
        file=target.name,
        precision=config.precision,
        size=target.stat().st_size,
        architecture=policy.info.architecture,
        merged=merged,
        tokens=TOKENS,
    )
    window = max((len(question.ids) for question in asked), default=0) + TOKENS
    answered = ask_llama_cpp(process, stage.directory, target, window, ends, asked)
    if isinstance(answered, str):
        return result.model_copy(update={"unchecked": answered}), ""
    adds, answers = answered
    if not asked:
        why = "its template takes no question that leaves room for an answer"
        return result.model_copy(update={"unchecked": why}), adds
    deviations = differences(policy, ends, asked, answers)
    return result.model_copy(update={"prompts": len(asked), "differences": deviations}), adds


def _write_modelfile(path: Path, file: str, policy: Policy, adds: str) -> None:
    form = policy.info.condition
    ends = policy.tokenizer.convert_ids_to_tokens(ends_of(policy.model.generation_config.to_dict()))
    arguments = arguments_for(form, condition_asked(form))
    turns = turns_of(policy.tokenizer, arguments, adds)
    path.write_text(modelfile(file, turns, policy.info.max_length, ends, arguments))


def _warning(result: GgufResult) -> RunWarning | None:
    """Serious where prompts differ: the answers to another prompt are another model's. A rounded weight may turn an
    answer between two tokens that are almost as likely."""
    if result.unchecked is not None:
        return RunWarning(code="gguf_unchecked", message=f"{result.words}.")
    if not result.differences:
        return None
    serious = any(difference.what != "answer" for difference in result.differences)
    return RunWarning(code="gguf_differs", level="serious" if serious else "warning", message=f"{result.words}.")
