"""How llama.cpp renders, tokenises and answers next to transformers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.conditions.format import ConditionFormat, template_arguments
from steerboard_contracts.files.gguf_export import GgufDifference
from steerboard_contracts.stage.spec import EngineProcess
from steerboard_workers.stages.models.model_io import Policy

TOKENS = 16
_SHOWN = 40
_TURNS = {
    "a question": ["Write one sentence about a lighthouse."],
    "figures, lines and other scripts": ["Add 12, 345 and 6789.\n\n\tdef f(x):\n  return x  # déjà vu, 你好, 🙂 don't"],
    "a second turn": ["Name a city.", "Lima is one.", "And where is it?"],
}


@dataclass(frozen=True)
class Question:
    """`arguments`: of the chat template. `ids`: tokens of the prompt by transformers."""

    asked: str
    messages: list[dict[str, str]]
    arguments: dict[str, str]
    text: str
    ids: list[int]


@dataclass(frozen=True)
class Answered:
    """llama.cpp's own text and tokens of a prompt, and the likeliest tokens after transformers' tokens of it."""

    text: str
    ids: list[int]
    answer: list[int]


def condition_asked(form: ConditionFormat | None) -> Condition | None:
    """What a policy is asked for where no one chooses: its default, or the highest values."""
    if form is None:
        return None
    return form.default if form.default.values else Condition.of({one.name: one.high for one in form.attributes})


def arguments_for(form: ConditionFormat | None, condition: Condition | None) -> dict[str, str]:
    if form is None or condition is None:
        return {}
    return {name: value for name, value in template_arguments(form.text(condition)).items() if value}


def questions(policy: Policy) -> list[Question]:
    """The prompts that its template takes and that leave room for an answer; of a policy that takes a condition also
    one at the opposite of its default."""
    form, condition = policy.info.condition, condition_asked(policy.info.condition)
    asked = [(words, turns, condition) for words, turns in _TURNS.items()]
    if form is not None and condition is not None:
        low = form.opposite(condition)
        asked.append((f"a question at {form.text(low)}", _TURNS["a question"], low))
    made = []
    for words, turns, wanted in asked:
        question = _question(policy.tokenizer, words, turns, arguments_for(form, wanted))
        if question is not None and len(question.ids) + TOKENS <= policy.info.max_length:
            made.append(question)
    return made


def _question(tokenizer: Any, asked: str, turns: Sequence[str], arguments: dict[str, str]) -> Question | None:
    messages = [{"role": ("user", "assistant")[place % 2], "content": turn} for place, turn in enumerate(turns)]
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **arguments)
    except Exception:  # a template may refuse turns by an error of its own
        return None
    return Question(asked, messages, arguments, text, tokenizer(text, add_special_tokens=False).input_ids)


def ask_llama_cpp(
    process: EngineProcess, scratch: Path, file: Path, window: int, ends: Sequence[int], asked: Sequence[Question]
) -> tuple[str, list[Answered]] | str:
    """(the text that it puts before every prompt by itself, its answers), or why there are none."""
    source, target = scratch / "asked.json", scratch / "answered.json"
    listed = [{"messages": one.messages, "arguments": one.arguments, "ids": one.ids} for one in asked]
    document = {"file": str(file), "window": window, "tokens": TOKENS, "ends": list(ends), "questions": listed}
    source.write_text(json.dumps(document))
    target.unlink(missing_ok=True)
    done = subprocess.run(
        [process.python, "-I", str(Path(__file__).with_name("asking.py")), str(source), str(target)],
        env=os.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return f"llama.cpp ended with status {done.returncode}" + (f": {lines[-1][:300]}" if lines else "")
    document = json.loads(target.read_bytes())
    return document["adds"], [Answered(**answer) for answer in document["answers"]]


def differences(
    policy: Policy, ends: Sequence[int], asked: Sequence[Question], answered: Sequence[Answered]
) -> list[GgufDifference]:
    """The differences, one for a question at most: what is wrong in a prompt's text is wrong in its tokens, too."""
    first_differences = []
    for question, theirs in zip(asked, answered, strict=True):
        difference = _prompt_differs(policy.tokenizer, question, theirs) or _answer_differs(
            policy, ends, question, theirs.answer
        )
        if difference is not None:
            first_differences.append(difference)
    return first_differences


def _prompt_differs(tokenizer: Any, question: Question, theirs: Answered) -> GgufDifference | None:
    if (at := _first_other(question.text, theirs.text)) is not None:
        ours, other = question.text[at : at + _SHOWN], theirs.text[at : at + _SHOWN]
        return GgufDifference(what="template", asked=question.asked, at=at, transformers=ours, llama_cpp=other)
    if (at := _first_other(question.ids, theirs.ids)) is not None:
        ours, other = tokenizer.decode(question.ids[at : at + 3]), tokenizer.decode(theirs.ids[at : at + 3])
        return GgufDifference(what="tokens", asked=question.asked, at=at, transformers=ours, llama_cpp=other)
    return None


def _answer_differs(
    policy: Policy, ends: Sequence[int], question: Question, theirs: list[int]
) -> GgufDifference | None:
    ours, logits = likeliest(policy, question.ids, ends)
    at = _first_other(ours, theirs)
    if at is None:
        return None
    margin = None
    if at < len(ours) and at < len(theirs):
        margin = float(logits[at][ours[at]] - logits[at][theirs[at]])
    decode = policy.tokenizer.decode
    return GgufDifference(
        what="answer",
        asked=question.asked,
        at=at,
        transformers=decode(ours[at : at + 1]),
        llama_cpp=decode(theirs[at : at + 1]),
        margin=margin,
    )


@torch.inference_mode()
def likeliest(policy: Policy, ids: Sequence[int], ends: Sequence[int]) -> tuple[list[int], list[torch.Tensor]]:
    """The greedy tokens after `ids` until an end, at most `TOKENS`, and the logits [vocabulary] of each. No sampling
    setting of the model applies, as none is in the file."""
    tokens: list[int] = []
    logits: list[torch.Tensor] = []
    for _ in range(TOKENS):
        given = torch.tensor([[*ids, *tokens]], device=policy.device)
        logits.append(policy.model(input_ids=given, use_cache=False).logits[0, -1].float())
        tokens.append(int(logits[-1].argmax()))
        if tokens[-1] in ends:
            break
    return tokens, logits


def _first_other(ours: str | Sequence[int], theirs: str | Sequence[int]) -> int | None:
    """The place at which two sequences differ first; None where they are equal."""
    if ours == theirs:
        return None
    shorter = min(len(ours), len(theirs))
    return next((at for at in range(shorter) if ours[at] != theirs[at]), shorter)


def ends_of(settings: Mapping[str, Any]) -> list[int]:
    """The end tokens of a generation config."""
    ends = settings.get("eos_token_id")
    return list(ends) if isinstance(ends, list) else [] if ends is None else [ends]
