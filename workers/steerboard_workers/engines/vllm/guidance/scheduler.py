"""vLLM's scheduler with pairs: the next token of a guided answer is computed for both of its prompts in one step, or
not at all.

Each prompt of a pair is computed as any other, in parts and with what the prefix cache has, up to its last token.
Once both are there, both get that token in one step, and from then on one token each in every step. Such steps come
first, and the cache has room for all tokens that the pairs at work may ever have, so nothing can part them.

It overrides what vLLM 0.32's `Scheduler` does at five places. Where those would not be called, or not suffice, it
refuses to start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, MambaSpec
from vllm.v1.request import Request, RequestStatus

from steerboard_contracts.guided_vllm import PROCESSOR
from steerboard_workers.engines.vllm.guidance.pairs import AGAINST, is_guided, members


@dataclass(eq=False)
class _Pair:
    """`ours` has the condition and gives the answer, `other` has none and is never heard of. `blocks`: of the cache, at
    their longest. `admitted`: these are reserved."""

    ours: Request
    other: Request
    blocks: int
    admitted: bool = False

    @property
    def both(self) -> tuple[Request, Request]:
        return self.ours, self.other


class PairScheduler(Scheduler):  # type: ignore[misc]
    def __init__(self, vllm_config: Any, kv_cache_config: Any, *args: Any, **more: Any) -> None:
        super().__init__(vllm_config, kv_cache_config, *args, **more)
        self._pairs: dict[str, _Pair] = {}
        """By the ids of both requests."""
        self._admitted: set[_Pair] = set()
        self._in_step: set[str] = set()
        """Ids of the requests that get their next token in this step."""
        self._full = False
        self._only_full_attention = all(
            isinstance(group.kv_cache_spec, FullAttentionSpec) for group in kv_cache_config.kv_cache_groups
        )
        # One block holds nothing, and the watermark is kept free.
        self._blocks = kv_cache_config.num_blocks - 1 - self.kv_cache_manager.watermark_blocks
        self._check_config()

    def _check_config(self) -> None:
        config = self.vllm_config
        processors = config.model_config.logits_processors or []
        groups = self.kv_cache_config.kv_cache_groups
        refused = {
            "asynchronous scheduling": config.scheduler_config.async_scheduling,
            "the V2 model runner": config.use_v2_model_runner,
            "several batches at once": config.max_concurrent_batches > 1,
            "speculative decoding": config.speculative_config is not None,
            "data parallelism": config.parallel_config.data_parallel_size > 1,
            "a KV connector": self.connector is not None,
            "priorities": config.scheduler_config.policy != "fcfs",
            "an encoder": self.is_encoder_decoder,
            "layers with a state": any(isinstance(group.kv_cache_spec, MambaSpec) for group in groups),
            f"logits processors without {PROCESSOR}": PROCESSOR not in processors,
            "fewer tokens in a step than sequences": self.max_num_scheduled_tokens < self.max_num_running_reqs,
            "fewer than two sequences": self.max_num_active_reqs < 2,
        }
        unsupported = [name for name, there in refused.items() if there]
        if unsupported:
            raise ValueError(f"guidance cannot be given with {', '.join(unsupported)}")
        if 2 * self._blocks_of(self.max_model_len) > self._blocks:
            raise ValueError(
                f"guidance needs a cache for two sequences of {self.max_model_len} tokens, and this one has "
                f"{self._blocks} blocks of {self.block_size}: lower the model's length, or give the cache more memory"
            )

    def _blocks_of(self, tokens: int) -> int:
        """Blocks that so many tokens take at most."""
        sizes = (group.kv_cache_spec.block_size for group in self.kv_cache_config.kv_cache_groups)
        return sum(tokens // size + 1 for size in sizes)

    # -- a pair begins and ends --------------------------------------------------------------------------------------

    def add_request(self, request: Request) -> None:
        if not is_guided(request.sampling_params):
            super().add_request(request)
            return
        pair = self._pair(request)
        for half in pair.both:
            self._pairs[half.request_id] = pair
            super().add_request(half)

    def _pair(self, ours: Request) -> _Pair:
        params, name = ours.sampling_params, ours.request_id
        against = list(params.extra_args[AGAINST])
        room = self.max_model_len - max(len(against), ours.num_prompt_tokens)
        if ours.prompt_token_ids is None or min(len(against), ours.num_prompt_tokens) < 2 or room < 1:
            raise ValueError(
                f"guided request {name} has prompts of {ours.num_prompt_tokens} and {len(against)} tokens, and needs "
                f"2 to {self.max_model_len - 1}"
            )
        most = min(ours.max_tokens, room)
        with_condition, without = (member.write(params) for member in members(params, name))
        for half in (with_condition, without):
            half.max_tokens = most
        ours.sampling_params, ours.max_tokens = with_condition, most
        other = Request(
            request_id=f"{name}-without-condition",
            prompt_token_ids=against,
            sampling_params=without,
            pooling_params=None,
            client_index=ours.client_index,
            arrival_time=ours.arrival_time,
            lora_request=ours.lora_request,
            cache_salt=ours.cache_salt,
            priority=ours.priority,
            block_hasher=ours._block_hasher,
        )
        return _Pair(ours, other, sum(self._blocks_of(half.num_prompt_tokens + most) for half in (ours, other)))

    def finish_requests(self, request_ids: str | Iterable[str] | None, finished_status: RequestStatus) -> list[Request]:
        """A pair ends as one."""
        given = list(self.requests) if request_ids is None else request_ids
        ids = {given} if isinstance(given, str) else set(given)
        pairs = {self._pairs[id_] for id_ in ids if id_ in self._pairs}
        ids |= {half.request_id for pair in pairs for half in pair.both}
        finished: list[Request] = super().finish_requests(ids, finished_status)
        heard = [request for request in finished if not self._is_silent(request.request_id)]
        self._forget(pairs)
        return heard

    def _is_silent(self, request_id: str) -> bool:
        pair = self._pairs.get(request_id)
        return pair is not None and pair.other.request_id == request_id

    def _forget(self, pairs: Iterable[_Pair]) -> None:
        """Forgets pairs that have ended."""
        for pair in pairs:
            if all(half.is_finished() for half in pair.both):
                self._admitted.discard(pair)
                for half in pair.both:
                    self._pairs.pop(half.request_id, None)

    # -- a step ------------------------------------------------------------------------------------------------------

    def schedule(self, *args: Any, **more: Any) -> Any:
        ready = [pair for pair in self._admitted if all(map(_is_ready, pair.both))]
        self._in_step = {half.request_id for pair in ready for half in pair.both}
        self._full = False
        if self._admitted:
            self._put_pairs_first()
        output = super().schedule(*args, **more)
        drawing = {id_ for id_ in output.num_scheduled_tokens if id_ in self._pairs and self._draws(id_)}
        if drawing != self._in_step:
            raise RuntimeError(f"guided requests were parted: {sorted(drawing ^ self._in_step)}")
        return output

    def _draws(self, request_id: str) -> bool:
        """Whether the step that was just scheduled gives the request a token."""
        request = self.requests[request_id]
        return bool(request.num_computed_tokens >= request.num_tokens)

    def _put_pairs_first(self) -> None:
        """Orders the running requests: those that draw, then those with a part of a prompt, then all others, from whose
        end vLLM takes its victims; and waiting halves of pairs before those who might take their place."""
        self.running.sort(
            key=lambda request: (request.request_id not in self._in_step, request.request_id not in self._pairs)
        )
        halves = [half for pair in self._admitted for half in pair.both if not _is_running(half)]
        if halves:
            self.waiting.remove_requests(halves)
            self.waiting.prepend_requests(halves)

    def _handle_blocked_waiting_request(self, request: Request) -> bool:
        """A pair leaves the queue only once there is room for all that it may grow to."""
        if not super()._handle_blocked_waiting_request(request):
            return False
        pair = self._pairs.get(request.request_id)
        if pair is None or pair.admitted:
            return True
        reserved = sum(pair.blocks for pair in self._admitted)
        fits = reserved + pair.blocks <= self._blocks and 2 * len(self._admitted) + 2 <= self.max_num_active_reqs
        if self._full or not fits:
            self._full = True  # a later and shorter one does not overtake it
            return False
        pair.admitted = True
        self._admitted.add(pair)
        return True

    def _get_local_prefix_cache_hit(self, request: Request) -> Any:
        """Leaves more than one token of a half to be computed, for its last one waits for the other half's."""
        blocks, computed, boundary, diverged = super()._get_local_prefix_cache_hit(request)
        if request.request_id not in self._pairs or computed < request.num_tokens - 1:
            return blocks, computed, boundary, diverged
        # A layer with a window has only the last blocks of a hit in its cache, so a shorter hit is none.
        computed = (computed - 1) // self.block_size * self.block_size if self._only_full_attention else 0
        if computed == 0:
            return self.kv_cache_manager.empty_kv_cache_blocks, 0, 0, False
        return self.kv_cache_manager.truncate_computed_blocks(blocks, computed), computed, 0, False

    def _reserve_prefill_lookahead(self, request: Request, num_computed_tokens: int, num_new_tokens: int) -> int:
        """vLLM calls it with how many tokens of a request it would compute; with 0, the request waits."""
        new: int = super()._reserve_prefill_lookahead(request, num_computed_tokens, num_new_tokens)
        if request.request_id in self._pairs and request.request_id not in self._in_step:
            new = min(new, request.num_tokens - num_computed_tokens - 1)
        return new

    def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> Any:
        drew = {self._pairs[id_] for id_ in self._in_step if id_ in self._pairs}
        outputs = super().update_from_output(scheduler_output, model_runner_output)
        for pair in drew:
            ours, other = pair.both
            same = ours.num_output_tokens == other.num_output_tokens and ours.is_finished() == other.is_finished()
            if not same or ours.output_token_ids[-1] != other.output_token_ids[-1]:
                raise RuntimeError(f"guided request {ours.request_id} drew two different tokens")
        for batch in outputs.values():
            batch.outputs = [output for output in batch.outputs if not self._is_silent(output.request_id)]
        self._forget(drew)
        return outputs


def _is_running(request: Request) -> bool:
    return bool(request.status == RequestStatus.RUNNING)


def _is_ready(request: Request) -> bool:
    """All but its last token is in the cache."""
    return _is_running(request) and request.num_tokens - request.num_computed_tokens == 1
