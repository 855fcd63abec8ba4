"""Sampling from the weights in training, with the decode loop and the random numbers of the transformers engine."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.errors import BadInput, OutOfMemory
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.stage.events import Fix
from steerboard_contracts.training import TrainingConfig
from steerboard_workers.alignment.examples import ChosenExperts, Example
from steerboard_workers.alignment.modules import PolicyModule
from steerboard_workers.alignment.rendering.render import Renderer, answer_room
from steerboard_workers.alignment.rollouts import Rollout
from steerboard_workers.engines.answers import end_ids
from steerboard_workers.engines.decoding import Decoder, Stream
from steerboard_workers.engines.routes import RouteTrace
from steerboard_workers.engines.sampling import stream_key
from steerboard_workers.phases import Phases
from steerboard_workers.stages.distributed.strategies import Module, Strategy
from steerboard_workers.stages.oom import first_line, ran_out_of_memory

# Answers sampled together by a method whose config has no `sample_batch`.
SAMPLE_BATCH = 64


@dataclass
class Drawing:
    """An answer being drawn. `prompt` is the place of its prompt in the list that every process was given."""

    prompt: int
    n: int
    limit: int
    key: int
    ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    finished: bool = False
    routes: ChosenExperts | None = None


@dataclass
class Sampling:
    """The answers that this process draws to some of the prompts."""

    prompts: Sequence[Example]
    mine: list[Drawing]


class Sampler(Protocol):
    """What computes the answers of this process. `central`: the first process asks it for all answers, and the others
    for none."""

    central: bool

    def take_weights(self) -> None:
        """Sample from the weights of now; called before each `begin`."""
        ...

    def begin(self, answers: Sequence[Drawing], prompts: Sequence[Example], temperature: float) -> None:
        """Fill in ids, log-probs and whether the answer is finished, by the end of `finish`; prompts of similar lengths
        come in turn."""
        ...

    def finish(self) -> None: ...


class SampledPolicy:
    """The live policy of one run; see the protocol `LivePolicy`. Every process answers some of the prompts: it holds
    all weights for that, or its engine does."""

    def __init__(
        self,
        module: Module,
        sharing: Strategy,
        renderer: Renderer,
        config: TrainingConfig,
        phases: Phases,
        sampler: Sampler | None = None,
    ) -> None:
        """`sampler`: the module itself by default."""
        self._module = module
        self._sharing = sharing
        self._renderer = renderer
        self._config = config
        self._phases = phases
        self._sampler = sampler
        self._running: Sampling | None = None

    def sample(
        self,
        step: int,
        prompts: Sequence[Example],
        *,
        answers: int = 1,
        temperature: float = 1.0,
        max_new_tokens: int | None = None,
    ) -> list[list[Rollout]]:
        begun = self.begin(step, prompts, answers=answers, temperature=temperature, max_new_tokens=max_new_tokens)
        return self.finish(begun)

    def begin(
        self,
        step: int,
        prompts: Sequence[Example],
        *,
        answers: int = 1,
        temperature: float = 1.0,
        max_new_tokens: int | None = None,
    ) -> Sampling:
        module = self._module
        if not isinstance(module, PolicyModule):
            raise BadInput(f"{type(module.model).__name__} writes no answers to sample", code="bad_config")
        if self._config.strategy == "zero3" and self._sampler is None:
            raise BadInput(
                "strategy zero3 would gather all weights for every sampled token",
                code="bad_config",
                hint="Use engine vllm, or ddp or zero2 with offload: optimiser or lora where memory is short.",
            )
        if self._running is not None:
            self._wait(self._running)
        room = answer_room(self._renderer.max_length, max_new_tokens)
        streams = _streams(self._config.seed, step, prompts, answers, room, self._renderer.max_length)
        if self._sampler is None:
            self._sampler = ModuleSampler(module, self._sharing, self._renderer, self._config)
        self._sampler.take_weights()
        with self._phases.measure("generate"):
            accelerator = self._sharing.accelerator
            # Prompts of all lengths for each process: neighbours in length go to different ones.
            order = sorted(range(len(prompts)), key=lambda i: -len(prompts[i].prompt))
            share = order[accelerator.process_index :: accelerator.num_processes]
            if self._sampler.central:
                share = order if accelerator.is_main_process else []
            mine = [stream for i in share for stream in streams[i]]
            self._sampler.begin(mine, prompts, temperature)
        self._running = Sampling(prompts, mine)
        return self._running

    def finish(self, begun: Sampling) -> list[list[Rollout]]:
        if begun is self._running:
            self._wait(begun)
        with self._phases.measure("generate") as phase:
            own = [self._rollout(begun.prompts, drawing) for drawing in begun.mine]
            drawn = _gathered(own, self._sharing.accelerator.num_processes)
            phase.tokens += sum(len(rollout.ids) for _, rollout in drawn)
        groups: list[list[Rollout]] = [[] for _ in begun.prompts]
        for place, rollout in sorted(drawn, key=lambda item: (item[0], item[1].n)):
            groups[place].append(rollout)
        return groups

    def _wait(self, begun: Sampling) -> None:
        assert self._sampler is not None
        with self._phases.measure("generate"):
            self._sampler.finish()
        self._running = None

    def _rollout(self, prompts: Sequence[Example], drawing: Drawing) -> tuple[int, Rollout]:
        return drawing.prompt, Rollout(
            row=prompts[drawing.prompt].row,
            n=drawing.n,
            ids=np.array(drawing.ids, dtype=np.int32),
            log_probs=np.array(drawing.log_probs, dtype=np.float32),
            text=self._renderer.response_text(drawing.ids[:-1] if drawing.finished else drawing.ids),
            finished=drawing.finished,
            routes=drawing.routes,
        )


class ModuleSampler:
    """Samples by the module in training itself, with the decode loop of the transformers engine."""

    central = False

    def __init__(self, module: PolicyModule, sharing: Strategy, renderer: Renderer, config: TrainingConfig) -> None:
        self._module = module
        self._sharing = sharing
        self._config = config
        self._width = config.sample_batch if isinstance(config, OnlineConfig) else SAMPLE_BATCH
        self._ends = ends_of(module, renderer)
        device, pad = sharing.accelerator.device, int(renderer.tokenizer.pad_token_id)
        window, silent = renderer.max_length, renderer.silent_ids
        self._trace = None if module.routers is None else RouteTrace(module.routers)
        self._decoder = Decoder(
            module.model, device, pad, window, self._width, log_probs=True, silent=silent, trace=self._trace
        )

    def take_weights(self) -> None:
        """They are the module's own."""

    def finish(self) -> None:
        """There is nothing to wait for."""

    def begin(self, answers: Sequence[Drawing], prompts: Sequence[Example], temperature: float) -> None:
        """Raises `OutOfMemory` with a smaller `sample_batch`: smaller training steps would not help."""
        try:
            with sampling(self._module), torch.no_grad(), self._sharing.forwards():
                self._draw(answers, prompts, temperature)
        except Exception as error:
            if not ran_out_of_memory(error):
                raise
            together = min(self._width, len(answers))
            smaller = max(1, together // 2)
            fix = None
            if isinstance(self._config, OnlineConfig) and smaller < together:
                fix = Fix(changes={"sample_batch": smaller}, says=f"sample_batch {smaller}")
            hint = f"Try {fix.says}." if fix else "Lower max_new_tokens or max_length, or use a larger device."
            raise OutOfMemory(
                f"Sampling {together} answers together does not fit into the memory: {first_line(error)}",
                hint=hint,
                extra={"fix": fix} if fix else None,
            ) from error

    def _draw(self, answers: Sequence[Drawing], prompts: Sequence[Example], temperature: float) -> None:
        def take(place: int, token: int, log_prob: float) -> bool:
            answer = answers[place]
            answer.ids.append(token)
            answer.log_probs.append(log_prob)
            answer.finished = token in self._ends
            return answer.finished or len(answer.ids) == answer.limit

        streams = [Stream(prompts[answer.prompt].prompt.tolist(), answer.prompt, answer.key) for answer in answers]
        for place in self._decoder.run(streams, Decoding(temperature=temperature), take):
            if self._trace is not None:
                answers[place].routes = self._trace.take(place)


def ends_of(module: PolicyModule, renderer: Renderer) -> frozenset[int]:
    """The tokens that end an answer of the policy."""
    return end_ids(renderer, getattr(module.model.generation_config, "eos_token_id", None))


@contextlib.contextmanager
def sampling(module: PolicyModule) -> Iterator[None]:
    """The model as the engine has it: without dropout, with a cache, in an attention that sees padding. What training
    set is put back, whatever happens inside."""
    model = module.model
    attention, use_cache = model.config._attn_implementation, model.config.use_cache
    training = [part for part in module.modules() if part.training]
    try:
        module.eval()
        if module.routers is not None:
            module.routers.replay(None)
        model.config.use_cache = True
        if attention != module.own_attention:
            model.set_attn_implementation(module.own_attention)
        yield
    finally:
        if model.config._attn_implementation != attention:
            model.set_attn_implementation(attention)
        model.config.use_cache = use_cache
        for part in training:
            part.training = True


def _streams(
    seed: int, step: int, prompts: Sequence[Example], answers: int, room: int, window: int
) -> list[list[Drawing]]:
    """The answers to draw to each prompt. A row that comes twice has further answers, not the same ones again."""
    seen: Counter[int] = Counter()
    streams = []
    for place, prompt in enumerate(prompts):
        limit = min(room, window - len(prompt.prompt))
        if limit < 1:
            raise BadInput(f"the prompt of row {prompt.row} fills the window of {window} tokens", code="bad_config")
        first = seen[prompt.row] * answers
        seen[prompt.row] += 1
        streams.append(
            [Drawing(place, n, limit, stream_key(seed, step, prompt.row, first + n)) for n in range(answers)]
        )
    return streams


def _gathered(own: list[tuple[int, Rollout]], processes: int) -> list[tuple[int, Rollout]]:
    if processes == 1:
        return own
    parts: list[Any] = [None] * processes
    torch.distributed.all_gather_object(parts, own)
    return [item for part in parts for item in part]
