"""The harness's own model over transformers, whose answers are recorded."""

from __future__ import annotations

from typing import Any

from lm_eval.models.huggingface import HFLM

from steerboard_workers.stages.harness.answers import Missing, RecordedAnswers


class RecordedModel(HFLM):  # type: ignore[misc]
    def __init__(self, model: Any, tokenizer: Any, answers: RecordedAnswers, batch_size: int) -> None:
        super().__init__(pretrained=model, tokenizer=tokenizer, batch_size=batch_size)
        self._answers = answers
        self.set_cache_hook(answers)

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[Any]:
        return self._filled("loglikelihood", super().loglikelihood, requests)

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[Any]:
        return self._filled("loglikelihood_rolling", super().loglikelihood_rolling, requests)

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[Any]:
        return self._filled("generate_until", super().generate_until, requests)

    def _filled(self, kind: str, ask: Any, requests: list[Any]) -> list[Any]:
        def answers(missing: list[Missing]) -> Any:
            return ask([asked.request for asked in missing], disable_tqdm=True)

        return self._answers.fill(kind, requests, answers)
