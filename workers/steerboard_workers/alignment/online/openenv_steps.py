"""What an OpenEnv server is sent for a row and an answer, and its observations as steps of a rollout."""

from __future__ import annotations

import json
import math
from typing import Any

from steerboard_contracts.online.environments import OpenEnvServer
from steerboard_workers.alignment.online.environment_protocol import LONGEST_OBSERVATION, Row, Step
from steerboard_workers.alignment.online.openenv_session import WrongReply
from steerboard_workers.alignment.online.sandbox import SHOWN

# NumPy's seeds have 32 bits, and those of some simulators a sign.
_SEED_BITS = (1 << 31) - 1


def reset_data(config: OpenEnvServer, row: Row) -> dict[str, Any]:
    given = {name: row.get(name) for name in ("row", "prompt", "reference")} if config.send_row else {}
    return {**config.reset, **given, "seed": row["seed"] & _SEED_BITS}


def first_step(config: OpenEnvServer, row: Row, data: dict[str, Any]) -> Step:
    """The messages that the rollout begins with; none where the row's prompt is all. Raises `WrongReply`."""
    text = "" if config.begin == "prompt" else _text(config, data)
    if not text:
        return Step()
    if config.begin == "observation":
        return Step([{"role": "user", "content": text}])
    prompt = row["prompt"]
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else [dict(turn) for turn in prompt]
    if messages[-1]["role"] == "user":
        messages[-1]["content"] = f"{messages[-1]['content']}\n\n{text}"
    else:
        messages.append({"role": "user", "content": text})
    return Step(messages)


def next_step(config: OpenEnvServer, data: dict[str, Any]) -> Step:
    """Raises `WrongReply`."""
    done, given = data.get("done"), data.get("reward")
    if not isinstance(done, bool):
        raise WrongReply(f"done is {str(done)[:SHOWN]!r}, and not true or false")
    try:
        reward = math.nan if given is None else float(given)
    except (TypeError, ValueError, OverflowError):
        raise WrongReply(f"the reward is {str(given)[:SHOWN]!r}, and not a number") from None
    text = _text(config, data)
    if not text and not done:
        raise WrongReply("the observation is empty, and the rollout is not done")
    observation = [{"role": "user", "content": text}] if text else []
    return Step(observation, reward if math.isfinite(reward) else None, done)


def _text(config: OpenEnvServer, data: dict[str, Any]) -> str:
    observation = data.get("observation")
    if not isinstance(observation, dict):
        raise WrongReply(f"the observation is {str(observation)[:SHOWN]!r}, and not an object")
    value = observation if config.observation_field is None else _found(observation, config.observation_field)
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) > LONGEST_OBSERVATION:
        raise WrongReply(f"an observation has more than {LONGEST_OBSERVATION:,} characters")
    return text


def _found(observation: dict[str, Any], path: str) -> Any:
    value: Any = observation
    for name in path.split("."):
        try:
            value = value[int(name)] if isinstance(value, list) else value[name]
        except (LookupError, TypeError, ValueError):
            fields = ", ".join(observation) or "nothing"
            raise WrongReply(f"the observation has no {path!r}; it has {fields}"[: 2 * SHOWN]) from None
    return value
