"""The harness's own model, whose answers are vLLM's: texts become tokens and tokens texts as they do over transformers,
and what is computed of them is requested from a process that has vLLM.

Departures from the harness over transformers: two tokens of the window are vLLM's own, so an item that does not fit
loses two more from the left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from steerboard_contracts.errors import BadInput, EngineMissing
from steerboard_contracts.run_kinds.academic import AcademicConfig
from steerboard_workers.engines.vllm.process import VllmProcess
from steerboard_workers.stages.harness.answers import Missing, RecordedAnswers
from steerboard_workers.stages.harness.model import RecordedModel
from steerboard_workers.stages.harness.options import Writing, cut, writing_of
from steerboard_workers.stages.harness.vllm_messages import (
    Choose,
    Chosen,
    Done,
    HarnessCommand,
    Measure,
    Measured,
    Open,
    Write,
    Written,
)
from steerboard_workers.stages.models.model_io import check_safe, load_tokenizer
from steerboard_workers.stages.runtime import Stage

# For log-probs of a whole sequence, vLLM wants room for a token after it; the harness counts its last one apart.
_OWN_TOKENS = 2

Tokenised = tuple[tuple[str, str] | None, list[int], list[int]]
"""The texts of a context and its continuation, if these are to be kept, and their tokens."""

Start = Callable[[int], VllmProcess]
Keep = Callable[[int, float, bool], None]
# After one context; vLLM takes 128.
_MOST_CHOICES = 64


class VllmModel(RecordedModel):
    def __init__(
        self, shell: Any, tokenizer: Any, answers: RecordedAnswers, config: AcademicConfig, start: Start
    ) -> None:
        """`shell`: the model without weights. `start` is called with the window that vLLM is to have, in tokens."""
        super().__init__(shell, tokenizer, answers, config.batch_size)
        window = min(self.max_length, config.vllm.max_model_len or self.max_length)
        self._max_length = window - _OWN_TOKENS
        self._process = start(window)

    def close(self) -> None:
        self._process.close()

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[Any]:
        return self._answers.fill("generate_until", requests, self._written)

    def _loglikelihood_tokens(
        self, requests: Sequence[Tokenised], disable_tqdm: bool = False, override_bs: int | None = None
    ) -> list[tuple[float, bool]]:
        """Choices of one token by their contexts, then the others; the longest first, so that memory fails early."""
        scores: dict[int, tuple[float, bool]] = {}

        def keep(place: int, log_prob: float, greedy: bool) -> None:
            scores[place] = log_prob, greedy
            texts = requests[place][0]
            if texts is not None:
                self.cache_hook.add_partial("loglikelihood", texts, scores[place])

        by_context: dict[tuple[int, ...], list[int]] = defaultdict(list)
        others = []
        for place, (_, context, continuation) in enumerate(requests):
            if not 0 < len(continuation) <= self.max_length:
                raise ValueError(f"an answer to compare has {len(continuation)} tokens, the window {self.max_length}")
            if len(continuation) == 1:
                by_context[tuple(context[-self.max_length :])].append(place)
            else:
                others.append(place)
        self._choose(requests, by_context, keep)
        self._measure(requests, others, keep)
        return [scores[place] for place in range(len(requests))]

    def _choose(self, requests: Sequence[Tokenised], by_context: dict[tuple[int, ...], list[int]], keep: Keep) -> None:
        groups = [
            (context, places[first : first + _MOST_CHOICES])
            for context, places in sorted(by_context.items(), key=lambda group: (-len(group[0]), group[0]))
            for first in range(0, len(places), _MOST_CHOICES)
        ]
        tokens = [list(dict.fromkeys(requests[place][2][0] for place in places)) for _, places in groups]
        for chosen in self._replies(Choose([context for context, _ in groups], tokens), Chosen):
            log_probs = dict(zip(tokens[chosen.place], chosen.log_probs, strict=True))
            for place in groups[chosen.place][1]:
                token = requests[place][2][0]
                keep(place, log_probs[token], token == chosen.likeliest)

    def _measure(self, requests: Sequence[Tokenised], places: list[int], keep: Keep) -> None:
        places.sort(key=lambda place: -len(requests[place][1]) - len(requests[place][2]))
        sequences, starts = [], []
        for place in places:
            _, context, continuation = requests[place]
            whole = (context + continuation)[-(self.max_length + 1) :]
            sequences.append(whole)
            starts.append(max(1, len(whole) - len(continuation)))
        for measured in self._replies(Measure(sequences, starts), Measured):
            keep(places[measured.place], measured.log_prob, measured.greedy)

    def _written(self, missing: list[Missing]) -> list[str]:
        eos = self.tok_decode(self.eot_token_id, skip_special_tokens=False)
        groups: dict[Writing, list[Missing]] = defaultdict(list)
        for asked in missing:
            groups[writing_of(asked.request.args[1], asked.request.task_name)].append(asked)
        texts: dict[tuple[str, int], str] = {}
        for writing, group in groups.items():
            until = (*writing.until, eos)
            for written in self._replies(self._write(writing, until, group), Written):
                asked = group[written.place]
                texts[asked.place] = cut(self.tok_decode(written.ids), until)
                self._answers.keep(asked, texts[asked.place])
        return [texts[asked.place] for asked in missing]

    def _write(self, writing: Writing, until: Sequence[str], group: Sequence[Missing]) -> Write:
        room = self.max_length - writing.limit
        if room <= 0:
            raise BadInput(
                f"task {group[0].request.task_name} wants answers of {writing.limit} tokens, and the model's window "
                f"has {self.max_length}",
                code="bad_benchmark_task",
                hint="Leave it out, or raise vllm.max_model_len where it is below the model's own.",
            )
        prompts = [
            self.tok_batch_encode([asked.request.args[0]], left_truncate_len=room)[0][0].tolist() for asked in group
        ]
        return Write(
            prompts=prompts,
            limits=[writing.limit] * len(group),
            seeds=[asked.seed for asked in group],
            temperature=writing.temperature,
            top_p=writing.top_p,
            top_k=writing.top_k,
            stop=until,
        )

    def _replies(self, asked: HarnessCommand, kind: type) -> Iterator[Any]:
        """Yields replies as they arrive. Raises `EngineFailed`."""
        self._process.send(asked)
        while not isinstance(reply := self._process.receive(), Done):
            assert isinstance(reply, kind)
            yield reply


@contextmanager
def open_vllm(stage: Stage, config: AcademicConfig, answers: RecordedAnswers) -> Iterator[VllmModel]:
    """The model of input `model`. Raises `EngineMissing`, `EngineFailed`, and what loading it raises."""
    if stage.spec.vllm is None:
        raise EngineMissing("vLLM is not installed on this machine", hint="Let the worker find it: `make setup-vllm`.")
    engine, folder = stage.spec.vllm, stage.model_path("model")

    def start(window: int) -> VllmProcess:
        process = VllmProcess(engine, "steerboard_workers.stages.harness.vllm_server")
        opened = Open(
            folder=str(folder),
            precision=config.precision,
            device=stage.spec.device,
            window=window,
            sequences=config.batch_size,
            options=config.vllm.model_dump(),
        )
        process.send(opened)
        process.receive()
        return process

    with stage.phases.measure("load"):
        with stage.using_model("model", "opening"):
            check_safe(folder)
            tokenizer = load_tokenizer(folder)
            with torch.device("meta"):
                shell = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder, trust_remote_code=False))
        model = VllmModel(shell, tokenizer, answers, config, start)
    yield model
    # Not after a failure: what failed may hang, and the process ends with this one.
    model.close()
