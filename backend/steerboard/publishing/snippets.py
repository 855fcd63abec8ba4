"""Code that asks a model somewhere else: with its chat template and, for policies, with a condition."""

from __future__ import annotations

import re
from typing import Literal

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.conditions.format import ConditionFormat, template_arguments
from steerboard_contracts.errors import BadInput
from steerboard_contracts.models import POLICIES, ModelInfo, vllm_rank

SnippetFor = Literal["transformers", "vllm", "openai", "ollama"]
PROMPT = "Write one sentence about a lighthouse."
_TOKENS = 128
_IMPORTED = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)
_OLLAMA = "http://localhost:11434"


def snippet(
    where: SnippetFor, name: str, info: ModelInfo, server: str, project: str, score: Condition | None
) -> tuple[str, Condition | None]:
    """(Python that runs as it is, what it asks for). `server`: the address of this platform; `score`: None for the
    model's default, or, where it has none, for the highest values.

    All but `openai` expect `steerboard models export NAME NAME`. Raises `BadInput` (`wrong_role`, `no_score_format`,
    `unknown_attribute`, `engine_refused`).
    """
    if info.role not in POLICIES:
        raise BadInput(
            f"{name} is a {info.role} model, which answers no prompts",
            code="wrong_role",
            hint="Name a base, sft or policy model.",
        )
    condition = _condition(name, info.condition, score)
    text = info.condition.text(condition) if info.condition is not None and condition is not None else ""
    template = {key: value for key, value in template_arguments(text).items() if value}
    if where == "transformers":
        return _transformers(name, info, template), condition
    if where == "vllm":
        if info.lora is not None and info.lora.dora:
            raise BadInput(
                f"{name} is an adapter with DoRA's norms, which vLLM does not read",
                code="engine_refused",
                hint="Ask for the snippet of transformers, or train it again with lora.merge: true.",
            )
        return _vllm(name, info, template), condition
    if where == "openai":
        return _openai(name, tokens_of(info), server, project, condition), condition
    return _ollama(name, template), condition


def tokens_of(info: ModelInfo) -> int:
    """How long an answer may get: half of a small window, so that the prompt keeps some room."""
    return min(_TOKENS, info.max_length // 2)


def needs_of(text: str) -> list[str]:
    """The packages that a snippet imports."""
    return sorted(set(_IMPORTED.findall(text)) - {"os"})


def _condition(name: str, form: ConditionFormat | None, score: Condition | None) -> Condition | None:
    if form is None:
        if score is not None and score.values:
            raise BadInput(f"{name} takes no score", code="no_score_format", hint="Ask for the snippet without one.")
        return None
    if score is None and not form.default.values:
        return Condition.of({attribute.name: attribute.high for attribute in form.attributes})
    return form.resolve(score)


def _transformers(name: str, info: ModelInfo, template: dict[str, str]) -> str:
    load = 'AutoModelForCausalLM.from_pretrained(folder, dtype="auto")'
    imports = ["from transformers import AutoModelForCausalLM, AutoTokenizer"]
    if info.lora is not None:
        imports = ["from peft import PeftModel", *imports]
        load = 'PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(f"{folder}/base", dtype="auto"), folder)'
    return _lines(
        *imports,
        "",
        *_folder(name),
        "tokenizer = AutoTokenizer.from_pretrained(folder)",
        f"model = {load}",
        _messages(),
        "inputs = tokenizer.apply_chat_template(",
        f'    messages, {_keywords(template)}add_generation_prompt=True, return_tensors="pt", return_dict=True',
        ")",
        f"ids = model.generate(**inputs, max_new_tokens={tokens_of(info)})",
        'print(tokenizer.decode(ids[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True).strip())',
        *_guidance(info),
    )


def _vllm(name: str, info: ModelInfo, template: dict[str, str]) -> str:
    kwargs = f", chat_template_kwargs={_dict(template)}" if template else ""
    imports, load, adapter = ["from vllm import LLM, SamplingParams"], "llm = LLM(folder)", ""
    if info.lora is not None:
        imports += ["from vllm.lora.request import LoRARequest"]
        load = (
            f'llm = LLM(f"{{folder}}/base", tokenizer=folder, enable_lora=True, max_lora_rank='
            f"{vllm_rank(info.lora.rank)})"
        )
        adapter = ', lora_request=LoRARequest("adapter", 1, folder)'
    asked = (
        *_folder(name),
        load,
        _messages(),
        f"sampling = SamplingParams(temperature=0, max_tokens={tokens_of(info)})",
        f"(answer,) = llm.chat(messages, sampling{kwargs}{adapter})",
        "print(answer.outputs[0].text.strip())",
    )
    # The engine is a process of its own, which imports the script once more where it is spawned.
    return _lines(*imports, "", 'if __name__ == "__main__":', *(f"    {line}" for line in asked))


def _openai(name: str, tokens: int, server: str, project: str, condition: Condition | None) -> str:
    score = f', extra_body={{"score": {_json(condition.plain())}}}' if condition is not None else ""
    return _lines(
        "import os",
        "",
        "from openai import OpenAI",
        "",
        f'client = OpenAI(base_url="{server}/p/{project}/v1", api_key=os.environ["STEERBOARD_TOKEN"])',
        _messages(),
        "answer = client.chat.completions.create(",
        f'    model="{name}", messages=messages, temperature=0, max_tokens={tokens}{score}',
        ")",
        "print(answer.choices[0].message.content)",
    )


def _ollama(name: str, template: dict[str, str]) -> str:
    """Its own templates take no arguments, so the prompt is written here and sent as it is."""
    return _lines(
        f"# Once: steerboard models export {name} {name}-gguf --gguf q8_0",
        f"#       (cd {name}-gguf && ollama create {name} -f Modelfile)",
        "import httpx",
        "from transformers import AutoTokenizer",
        "",
        *_folder(name),
        "tokenizer = AutoTokenizer.from_pretrained(folder)",
        _messages(),
        "prompt = tokenizer.apply_chat_template(",
        f"    messages, {_keywords(template)}add_generation_prompt=True, tokenize=False",
        ")",
        f'body = {{"model": "{name}", "raw": True, "prompt": prompt, "stream": False}}',
        'body["options"] = {"temperature": 0}',
        f'answer = httpx.post("{_OLLAMA}/api/generate", json=body, timeout=None)',
        'print(answer.raise_for_status().json()["response"].strip())',
    )


def _folder(name: str) -> list[str]:
    return [f'folder = "{name}"  # steerboard models export {name} {name}']


def _messages() -> str:
    return f'messages = [{{"role": "user", "content": "{PROMPT}"}}]'


def _keywords(template: dict[str, str]) -> str:
    return "".join(f'{key}="{value}", ' for key, value in template.items())


def _dict(template: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{key}": "{value}"' for key, value in template.items()) + "}"


def _json(value: float | str) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


def _guidance(info: ModelInfo) -> list[str]:
    if info.condition is None or not info.condition.dropped:
        return []
    return [
        "# To follow the score more strongly: python sample_guided.py PROMPT --score 5 --guidance 3, in the folder."
    ]


def _lines(*lines: str) -> str:
    return "\n".join(lines) + "\n"
