"""The answer stage: an entrant answers the prompts of an evaluation, turn by turn.

Later turns see the entrant's own earlier answers. Randomness derives from (seed, turn, prompt, sample, token), so
batches and resumed attempts give the same answers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from steerboard_contracts.decoding import MOST_SAMPLES, Decoding
from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.resumable_rows import ResumableRows
from steerboard_contracts.run_kinds.answer import AnswerConfig
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.outputs import ResponsesOutput
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.engines.answers import asked
from steerboard_workers.engines.protocol import Completion, Request
from steerboard_workers.engines.rewards import RewardNotFinite
from steerboard_workers.stages.models.conditions import score_text
from steerboard_workers.stages.models.log_ratios import KEY, KL_TO, Answered, Place, kl_to_log_probs, log_ratios
from steerboard_workers.stages.models.open_models import OpenPolicy, open_policy, open_reward_model
from steerboard_workers.stages.models.scoring import Scorable, score_texts
from steerboard_workers.stages.rows.resumable_rows import resumable_rows
from steerboard_workers.stages.runtime import Stage

# Padded tokens of one forward pass of the reward model; it changes no result.
_SCORED_TOKENS = 8192


@dataclass(frozen=True)
class Prompt:
    """`messages` end with the first user turn that is answered, `follow_ups` are the later ones."""

    position: int
    category: str | None
    messages: list[dict[str, str]]
    follow_ups: list[str]

    @property
    def turns(self) -> int:
        return 1 + len(self.follow_ups)


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, AnswerConfig)
    prompts = [Prompt(**row) for row in stage.evaluated("prompts")]
    samples = config.best_of or config.samples
    total = sum(prompt.turns for prompt in prompts) * samples
    with resumable_rows(stage, KEY) as partial:
        before = len(partial.rows)
        stage.progress(before, total, "answers", "generating")
        _generate(stage, config, prompts, samples, partial)
    rows = [_response(prompt, sample, partial) for prompt in prompts for sample in range(samples)]
    sampled = sum(count for row in rows for count in row["tokens"])
    if stage.has_input(KL_TO) and config.estimates_kl:
        _add_log_ratios(stage, config, prompts, partial, rows)
    if config.best_of is not None:
        rows = _best(stage, config, prompts, rows)
    if stage.has_input(KL_TO):
        _add_log_probs(stage, config, prompts, partial, rows)
    if config.best_of is not None:
        rows = [{**row, "sample": 0} for row in rows]
    with stage.output_file("responses.jsonl") as path, path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    output = ResponsesOutput(path=stage.output_path("responses.jsonl"), rows=len(rows))
    return Succeeded(
        outputs=[output],
        summary={
            "responses": len(rows),
            "answers": total,
            "empty": sum(not text.strip() for row in rows for text in row["turns"]),
            "unfinished": sum(not ended for row in rows for ended in row["finished"]),
            "tokens": sampled,
            "resumed_rows": before,
        },
    )


def _generate(
    stage: Stage, config: AnswerConfig, prompts: Sequence[Prompt], samples: int, partial: ResumableRows
) -> None:
    """Add every turn that is missing; the model is gone when this returns."""
    total = sum(prompt.turns for prompt in prompts) * samples
    with open_policy(stage, "model", config) as policy:
        written = score_text(policy.info, config.score, stage.model("model").name)
        for turn in range(max((prompt.turns for prompt in prompts), default=0)):
            left = [prompt for prompt in prompts if turn < prompt.turns]
            answers = _answers(config, policy, left, turn, samples, written, partial)
            with stage.phases.measure("generate") as phase:
                for completion, sample, given in answers:
                    row = _kept(completion, sample, turn, given)
                    partial.add([row | {"ids": _drawn(completion)} if stage.has_input(KL_TO) else row])
                    phase.tokens += completion.tokens
                    stage.progress(len(partial.rows), total, "answers", "generating")


def _add_log_ratios(
    stage: Stage, config: AnswerConfig, prompts: Sequence[Prompt], partial: ResumableRows, rows: list[dict[str, Any]]
) -> None:
    """Adds to each row `log_ratio`, the sum over its turns; none to one with an answer that has no token to read."""
    ratios = log_ratios(stage, config, _answered(prompts, partial, rows))
    for row in rows:
        turn_ratios = [ratios.get((row["position"], row["sample"], turn)) for turn in range(len(row["turns"]))]
        row["log_ratio"] = None if None in turn_ratios else sum(ratio for ratio in turn_ratios if ratio is not None)


def _add_log_probs(
    stage: Stage, config: AnswerConfig, prompts: Sequence[Prompt], partial: ResumableRows, rows: list[dict[str, Any]]
) -> None:
    """Adds to each row `log_prob` under the model of input `kl_to`, the sum over its turns, and `log_prob_tokens`, how
    many tokens that is of. A model that cannot read the entrant's tokens leaves them out: answers need no
    perplexity."""
    answered = _answered(prompts, partial, rows)
    try:
        log_probs = kl_to_log_probs(stage, config, answered) if answered else {}
    except BadInput as error:
        if error.code not in ("tokenizer_differs", "window_too_small"):
            raise
        stage.log(f"the answers get no perplexity: {error.detail}", level="warning")
        return
    for row in rows:
        places = [(row["position"], row["sample"], turn) for turn in range(len(row["turns"]))]
        read = [place for place in places if place in log_probs]
        if read:
            row["log_prob"] = sum(log_probs[place] for place in read)
            row["log_prob_tokens"] = sum(len(answered[place][1]) for place in read)


def _answered(
    prompts: Sequence[Prompt], partial: ResumableRows, rows: Sequence[dict[str, Any]]
) -> dict[Place, Answered]:
    """The turns of `rows` that have a token to read."""
    by_position = {prompt.position: prompt for prompt in prompts}
    answered: dict[Place, Answered] = {}
    for row in rows:
        at, n = row["position"], row["sample"]
        for turn in range(len(row["turns"])):
            ids = partial.rows[(at, n, turn)]["ids"]
            if ids:
                answered[(at, n, turn)] = _history(by_position[at], n, turn, partial), ids
    return answered


def _answers(
    config: AnswerConfig,
    policy: OpenPolicy,
    prompts: Sequence[Prompt],
    turn: int,
    samples: int,
    written: str | None,
    partial: ResumableRows,
) -> Iterator[tuple[Completion, int, str]]:
    """(completion, sample, prompt as the model was given it) of what is missing of one turn. The samples of a first
    turn share their prompt's prefill; later ones have histories of their own."""
    by_decoding: dict[float, list[Prompt]] = {}
    for prompt in prompts:
        temperature = config.temperatures.get(prompt.category or "", config.decoding.temperature)
        by_decoding.setdefault(temperature, []).append(prompt)
    for temperature, group in by_decoding.items():
        left = [(p, n) for p in group for n in range(samples) if (p.position, n, turn) not in partial]
        if turn == 0:
            first = {p.position: Request(p.position * MOST_SAMPLES, p.messages, written) for p, _ in left}
            requests = list(first.values())
        else:
            requests = [Request(p.position * MOST_SAMPLES + n, _history(p, n, turn, partial), written) for p, n in left]
        decoding = _decoding(config.decoding, temperature, samples if turn == 0 else 1)
        # Seeds of people are small: no two turns of two evaluations share one.
        given = _given(policy.renderer, requests, decoding)
        for completion in policy.engine.generate(requests, decoding, config.seed + (turn << 32)):
            sample = completion.n if turn == 0 else completion.row % MOST_SAMPLES
            yield completion, sample, given[completion.row]


def _given(renderer: Renderer, requests: Sequence[Request], decoding: Decoding) -> dict[int, str]:
    """The prompt of each row as the model is given it: rendered, cut where it has to be, with special tokens."""
    decode = renderer.tokenizer.decode
    return {
        tokenised.request.row: decode(tokenised.prompt, clean_up_tokenization_spaces=False)
        for tokenised in asked(renderer, requests, decoding)
    }


def _best(
    stage: Stage, config: AnswerConfig, prompts: Sequence[Prompt], rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The answer of each prompt that the reward model of input `reward` scores highest, the first of equal ones.
    Prompts have one turn. Raises `RewardNotFinite`, `BadRow`."""
    messages = {prompt.position: prompt.messages for prompt in prompts}
    texts = [Scorable(messages[row["position"]], row["turns"][0]) for row in rows]
    with (
        open_reward_model(stage, "reward", config, config.precision) as rewards,
        stage.phases.measure("score") as phase,
    ):
        stage.progress(0, len(texts), "answers", "scoring answers")
        values = score_texts(
            rewards,
            texts,
            _SCORED_TOKENS,
            lambda done: stage.progress(done, len(texts), "answers", "scoring answers"),
            phase,
        )
    best: dict[int, tuple[float, dict[str, Any]]] = {}
    for row, value in zip(rows, values, strict=True):
        if not math.isfinite(value):
            raise RewardNotFinite(f"the reward of {row['turns'][0][:80]!r} is {value}", hint="Use precision fp32.")
        position = row["position"]
        if position not in best or value > best[position][0]:
            best[position] = value, row
    return [row for _, row in best.values()]


def _decoding(given: Decoding, temperature: float, n: int) -> Decoding:
    return given.model_copy(update={"temperature": temperature, "n": n})


def _history(prompt: Prompt, sample: int, turn: int, partial: ResumableRows) -> list[dict[str, str]]:
    """Everything before answer `turn` of one sample."""
    messages = list(prompt.messages)
    for earlier in range(turn):
        answer = partial.rows[(prompt.position, sample, earlier)]["text"]
        messages.append({"role": "assistant", "content": answer})
        messages.append({"role": "user", "content": prompt.follow_ups[earlier]})
    return messages


def _kept(completion: Completion, sample: int, turn: int, given: str) -> dict[str, Any]:
    return {
        "position": completion.row // MOST_SAMPLES,
        "sample": sample,
        "turn": turn,
        "prompt": given,
        "prompt_tokens": completion.prompt_tokens,
        "text": completion.text,
        "tokens": completion.tokens,
        "finished": completion.finished,
    }


def _drawn(completion: Completion) -> list[int]:
    """All tokens, the end token too."""
    return completion.token_ids if completion.end is None else [*completion.token_ids, completion.end]


def _response(prompt: Prompt, sample: int, partial: ResumableRows) -> dict[str, Any]:
    turns = [partial.rows[(prompt.position, sample, turn)] for turn in range(prompt.turns)]

    def known(name: str) -> list[Any] | None:
        """The values of all turns, or none: rows of former attempts may lack one."""
        values = [turn.get(name) for turn in turns]
        return None if None in values else values

    return {
        "position": prompt.position,
        "sample": sample,
        "prompts": known("prompt"),
        "prompt_tokens": known("prompt_tokens"),
        "turns": [turn["text"] for turn in turns],
        "tokens": [turn["tokens"] for turn in turns],
        "finished": [turn["finished"] for turn in turns],
    }
