"""vLLM's engine for this process: set up, stepped, watched and taken down in one place.

Runs where vLLM is installed, which is another environment than the platform's. On a GPU vLLM's core has a process of
its own, on a CPU it shares this one. Everything goes in and comes out as token ids; vLLM's tokenizer is not loaded.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from steerboard_contracts import guided_vllm
from steerboard_contracts.engine import VllmOptions
from steerboard_contracts.errors import BadInput, EngineMissing
from steerboard_contracts.models import vllm_rank
from steerboard_workers.engines.shared_weights import Layout, WeightUpdates
from steerboard_workers.engines.vllm.watchdog import EngineFailed, GiveUp, Watchdog

# The operator's settings override these. A GiB holds the cache of 32 answers of a 1B model.
VARIABLES = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
CPU_VARIABLES = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}

# Pairs of requests that are computed in step need a scheduler that looks at what each step gave.
_GUIDED = {
    "scheduler_cls": guided_vllm.SCHEDULER,
    "logits_processors": [guided_vllm.PROCESSOR],
    "async_scheduling": False,
}
# Its former model runner captures no routes, and is still the default for some architectures and for CPUs.
_ROUTES_VARIABLES = {"VLLM_USE_V2_MODEL_RUNNER": "1"}
# After a part of a prompt vLLM winds the generator of a seeded answer back, which one of a CPU cannot do.
_WHOLE_PROMPTS = {"enable_chunked_prefill": False}
# Added to the logits of tokens that are never to be drawn: the least that vLLM takes.
NEVER = -100.0
# The longest run of tokens that speculation looks for in earlier text; vLLM's examples have 4.
_LOOKUP = 4
# vLLM itself gives its processes five seconds each.
_CLOSE_SECONDS = 60.0


class VllmHost:
    """One model in vLLM's engine. `close` it before another one is loaded."""

    def __init__(
        self,
        folder: Path,
        *,
        task: Literal["generate", "score"],
        dtype: Literal["float32", "bfloat16"],
        window: int,
        sequences: int,
        options: VllmOptions,
        device: Literal["cpu", "cuda"],
        give_up: GiveUp,
        adapter: Path | None = None,
        rank: int = 0,
        live: bool = False,
        guided: bool = False,
        routes: bool = False,
    ) -> None:
        """`window` in tokens, `sequences` computed together; `adapter`: a LoRA of `rank` over the model in `folder`.
        `guided`: requests may ask for guidance, by which each counts as two of the `sequences`.
        `routes`: answers come with the experts of their tokens.
        `live`: the folder has a config only, and weights come by `take_weights`; log-probs are at the temperature.

        Raises `EngineMissing`, `EngineFailed`, `BadInput` when the worker does not have as many GPUs as
        `tensor_parallel` asks for, or the rank is larger than vLLM takes."""
        for name, value in VARIABLES.items() | (CPU_VARIABLES.items() if device == "cpu" else set()):
            os.environ.setdefault(name, value)
        if guided:
            os.environ.update(guided_vllm.VARIABLES)
        if routes:
            os.environ.update(_ROUTES_VARIABLES)
        _check_devices(options.tensor_parallel, device)
        _check_gpu_options(options, device, routes)
        self._watchdog = Watchdog(give_up)
        self._step_seconds = options.step_seconds
        with self._watchdog.limit(options.load_seconds, "the engine was not up"), _without_collections():
            more = _live_options(device) if live else _lora_options(rank)
            if device == "cpu" and task == "generate":
                more |= _WHOLE_PROMPTS
            if guided:
                more |= _GUIDED
            if routes:
                more |= {"enable_return_routed_experts": True}
            self._engine = _start(folder, task, dtype, window, sequences, options, more)
        self._sleeps = live and device == "cuda"
        self._options = _lora_request(adapter)
        # vLLM itself may wait for ever for the word of a core that was killed.
        self._processes = multiprocessing.active_children()

    def add(self, name: str, prompt: Sequence[int], params: Any) -> str:
        """`params`: vLLM's. Returns the id by which the request is `abort`ed."""
        with _engine_errors():
            return str(self._engine.add_request(name, {"prompt_token_ids": list(prompt)}, params, **self._options))

    def abort(self, request_ids: list[str]) -> None:
        """End requests that no one wants to have finished; they give no further output."""
        self._engine.abort_request(request_ids, internal=True)

    def outputs(self) -> Iterator[Any]:
        """vLLM's outputs as they come, until nothing is left to do. Raises `EngineFailed`."""
        with self._watchdog.limit(self._step_seconds, "the engine made no step", self._processes):
            while self._engine.has_unfinished_requests():
                with _engine_errors():
                    made = self._engine.step()
                self._watchdog.beat()
                yield from made

    def take_weights(self, layout: Layout) -> None:
        """Replace all weights, and forget what was computed with others. Raises `EngineFailed`."""
        with self._watchdog.limit(self._step_seconds, "the engine took no weights", self._processes), _engine_errors():
            if self._sleeps:
                self._engine.wake_up(["weights"])
            self._engine.collective_rpc("take_weights", args=layout.plain)
            if self._sleeps:
                self._engine.wake_up(["kv_cache"])
            self._engine.reset_prefix_cache()

    def rest(self) -> None:
        """Leave a GPU to those who train on it, until there are weights again."""
        if self._sleeps:
            # The second level keeps neither weights nor cache.
            self._engine.sleep(2)

    def close(self) -> None:
        """Free the device."""
        from vllm.distributed.parallel_state import cleanup_dist_env_and_memory

        with self._watchdog.limit(_CLOSE_SECONDS, "the engine did not end"):
            self._engine.engine_core.shutdown()
            del self._engine
            cleanup_dist_env_and_memory()
            gc.unfreeze()
            gc.collect()
        self._watchdog.close()


@contextmanager
def _without_collections() -> Iterator[None]:
    """What an engine imports and builds lasts as long as it does: to look for garbage in it takes a quarter of its
    start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _engine_errors() -> Iterator[None]:
    from vllm.v1.engine.exceptions import EngineDeadError

    try:
        yield
    except EngineDeadError as error:
        raise EngineFailed("a process of the engine died", hint="The run's log has its last output.") from error
    except RuntimeError as error:
        # Some kernels tell only when they are first called that they do not know a model's sizes.
        if "unsupported" in str(error).lower():
            raise _refused(error) from error
        raise
    except (ValueError, TypeError, AttributeError) as error:
        # The model's own code, of transformers, does not fit what vLLM put into it: known at the first token.
        raise _refused(error) from error


def _refused(error: Exception) -> BadInput:
    return BadInput(
        f"vLLM rejects this model with these options: {str(error)[:500]}",
        code="engine_refused",
        hint="Change the options under `vllm`, or use engine: transformers.",
    )


def _check_gpu_options(options: VllmOptions, device: str, routes: bool) -> None:
    """vLLM 0.32 for CPUs has no FP8, no Triton, which the model runner needs that takes down routes, and its check of
    guessed tokens reads top_k and top_p from memory that was never written."""
    names = {
        "quantisation": options.quantisation != "none",
        "kv_cache": options.kv_cache != "auto",
        "speculative_tokens": options.speculative_tokens is not None,
    }
    asked = [f"`vllm.{name}`" for name, given in names.items() if given] + ["`router_replay` with vLLM"] * routes
    if asked and device != "cuda":
        raise BadInput(
            f"{' and '.join(asked)} {'needs' if len(asked) == 1 else 'need'} a GPU, and the worker has none",
            code="engine_refused",
            hint="Leave them out, or name a pool whose workers own GPUs.",
        )


def _check_devices(wanted: int, device: str) -> None:
    import torch

    available = torch.cuda.device_count() if device == "cuda" else 1
    if wanted > available:
        raise BadInput(
            f"tensor_parallel is {wanted}, but the worker has {available} device{'s' if available > 1 else ''}",
            code="too_few_devices",
            hint="Lower `vllm.tensor_parallel`, or name a pool whose workers own more GPUs.",
        )


def _start(
    folder: Path,
    task: Literal["generate", "score"],
    dtype: str,
    window: int,
    sequences: int,
    options: VllmOptions,
    more: dict[str, Any],
) -> Any:
    try:
        from vllm.config import PoolerConfig
        from vllm.engine.arg_utils import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine
    except ImportError as error:
        raise EngineMissing(
            f"vLLM cannot be imported: {error}", hint="Let the worker find it: `make setup-vllm`."
        ) from error
    # The logit itself: the default activation of a classifier would squash it.
    pooler = PoolerConfig(pooling_type="LAST", use_activation=False) if task == "score" else None
    common: dict[str, Any] = {
        "model": str(folder),
        "runner": "pooling" if task == "score" else "generate",
        "pooler_config": pooler,
        "skip_tokenizer_init": True,
        "trust_remote_code": False,
        "load_format": "safetensors",
        # Neither sampling nor ends but those that are asked for.
        "generation_config": "vllm",
        "dtype": dtype,
        "max_model_len": window,
        "max_num_seqs": sequences,
        "tensor_parallel_size": options.tensor_parallel,
        "gpu_memory_utilization": options.memory_fraction,
        "enable_prefix_caching": options.prefix_caching,
        "enforce_eager": options.eager or not _can_compile(),
        "kv_cache_dtype": options.kv_cache,
        "seed": 0,
        "disable_log_stats": True,
    }
    if options.quantisation != "none":
        common["quantization"] = options.quantisation
    if options.speculative_tokens is not None and task == "generate":
        common["speculative_config"] = {
            "method": "ngram",
            "num_speculative_tokens": options.speculative_tokens,
            "prompt_lookup_max": _LOOKUP,
        }
    arguments = EngineArgs(**common | more)
    try:
        return LLMEngine.from_engine_args(arguments)
    except ValueError as error:
        raise _refused(error) from error
    except RuntimeError as error:
        if "initialization failed" not in str(error):
            raise
        # Its core, a separate process, has logged the cause.
        raise EngineFailed("a process of the engine died while it started", hint="See the run's log.") from error


def _live_options(device: str) -> dict[str, Any]:
    return {
        "load_format": "dummy",
        "worker_extension_cls": f"{WeightUpdates.__module__}.{WeightUpdates.__name__}",
        "logprobs_mode": "processed_logprobs",
        "enable_sleep_mode": device == "cuda",
    }


def _lora_options(rank: int) -> dict[str, Any]:
    return {"enable_lora": True, "max_lora_rank": vllm_rank(rank), "max_loras": 1} if rank else {}


def _lora_request(adapter: Path | None) -> dict[str, Any]:
    if adapter is None:
        return {}
    from vllm.lora.request import LoRARequest

    return {"lora_request": LoRARequest("adapter", 1, str(adapter))}


def _can_compile() -> bool:
    """Whether there is a compiler; vLLM would fail instead of doing without."""
    return shutil.which("gcc") is not None or shutil.which("clang") is not None
