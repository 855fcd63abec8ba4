"""The model that the harness asks: over transformers, by vLLM, or at an endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from steerboard_contracts.errors import BadInput
from steerboard_contracts.run_kinds.academic import AcademicConfig
from steerboard_workers.stages.harness.answers import RecordedAnswers
from steerboard_workers.stages.harness.endpoint_model import EndpointModel, check_written
from steerboard_workers.stages.harness.model import RecordedModel
from steerboard_workers.stages.harness.options import check_options
from steerboard_workers.stages.harness.tasks import Loaded
from steerboard_workers.stages.harness.vllm_model import open_vllm
from steerboard_workers.stages.models.model_io import load_policy
from steerboard_workers.stages.runtime import Stage


def check_askable(config: AcademicConfig, loaded: Sequence[Loaded]) -> None:
    """Called before a model is opened. Raises `BadInput` for a task that this one could not be asked."""
    tasks = [task for entry in loaded for task in entry.tasks.values()]
    if config.endpoint is not None:
        check_written(tasks)
    if config.endpoint is not None or config.engine != "transformers":
        check_options(tasks)


@contextmanager
def open_model(stage: Stage, config: AcademicConfig, answers: RecordedAnswers) -> Iterator[Any]:
    """A model as the harness's `evaluate` takes it. Raises what opening it raises."""
    if config.endpoint is not None:
        yield EndpointModel(answers, config.batch_size)
        return
    if config.engine == "vllm":
        with open_vllm(stage, config, answers) as model:
            _check_template(stage, config, model.tokenizer)
            yield model
        return
    with stage.using_model("model", "opening"):
        loaded = load_policy(stage.model_path("model"), config.precision, stage.spec.device)
    _check_template(stage, config, loaded.tokenizer)
    yield RecordedModel(loaded.model, loaded.tokenizer, answers, config.batch_size)


def _check_template(stage: Stage, config: AcademicConfig, tokenizer: Any) -> None:
    if config.chat_template and not tokenizer.chat_template:
        raise BadInput(
            f"{stage.model('model').name} has no chat template",
            code="no_chat_template",
            hint="Leave `chat_template` off.",
        )
