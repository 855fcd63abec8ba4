"""The harness's own model over transformers, whose answers are recorded."""

from __future__ import annotations

from typing import Any

from lm_eval.models.huggingface import HFLM

from steerboard_workers.stages.harness.answers import RecordedAnswers
from steerboard_workers.stages.models.model_io import LoadedModel


class RecordedModel(HFLM):  # type: ignore[misc]
    def __init__(self, loaded: LoadedModel, answers: RecordedAnswers, batch_size: int) -> None:
        super().__init__(pretrained=loaded.model, tokenizer=loaded.tokenizer, batch_size=batch_size)
        self._answers = answers
        self.set_cache_hook(answers)

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[Any]:
        ask = super().loglikelihood
        return self._answers.fill("loglikelihood", requests, lambda missing: ask(missing, disable_tqdm=True))

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[Any]:
        ask = super().loglikelihood_rolling
        return self._answers.fill("loglikelihood_rolling", requests, lambda missing: ask(missing, disable_tqdm=True))

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[Any]:
        ask = super().generate_until
        return self._answers.fill("generate_until", requests, lambda missing: ask(missing, disable_tqdm=True))
