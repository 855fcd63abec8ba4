"""What vLLM is started with to guide: modules of the workers' package, by name, for its own Python to import."""

from __future__ import annotations

_PACKAGE = "steerboard_workers.engines.vllm.guidance"

SCHEDULER = f"{_PACKAGE}.scheduler.PairScheduler"
PROCESSOR = f"{_PACKAGE}.processor:Guide"
MIDDLEWARE = f"{_PACKAGE}.server.GuidedChat"
# The logits processor is one of the V1 model runner's.
VARIABLES = {"VLLM_USE_V2_MODEL_RUNNER": "0"}
