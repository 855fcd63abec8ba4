"""Answers of the policy in this script's folder by classifier-free guidance (arXiv 2207.12598; language models: arXiv
2306.17806, Eq. 7). It needs torch and transformers, and peft where the folder holds an adapter; nothing of Steerboard.

    python sample_guided.py "Review a quiet hotel." --score 5 --guidance 3

Each token is drawn from u + w (c - u), the logits behind the prompt with the condition (c) and without it (u).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("prompt")
    parser.add_argument("--score", required=True, help="a number; of other attributes: helpfulness:4,verbosity:2")
    parser.add_argument("--guidance", type=float, default=3.0, help="w: 1 is none, 0 ignores the score [3]")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy [0]")
    parser.add_argument("--max-new-tokens", type=int, default=256, help="[256]")
    parser.add_argument("--seed", type=int, default=0, help="[0]")
    parser.add_argument("--model", type=Path, default=Path(__file__).parent, help="[this script's folder]")
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    tokenizer, model = load(given.model)
    prompts = [prompt_ids(tokenizer, given.prompt, score) for score in (given.score, "")]
    if torch.equal(*prompts):
        parser.error(f"the chat template in {given.model} writes no condition for {given.score!r}: nothing can guide")
    ids = sample(model, prompts, end_ids(tokenizer, model), given.guidance, given.temperature, given.max_new_tokens)
    print(tokenizer.decode(ids, skip_special_tokens=True).removeprefix(" "))


def load(folder: Path) -> tuple[Any, Any]:
    """The tokenizer and the model, with its adapter where it is one."""
    adapter = (folder / "adapter_config.json").is_file()
    model = AutoModelForCausalLM.from_pretrained(folder / "base" if adapter else folder, dtype="auto")
    if adapter:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, folder)
        if (folder / "generation_config.json").is_file():
            model.generation_config = GenerationConfig.from_pretrained(folder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return AutoTokenizer.from_pretrained(folder), model.to(device).eval()


def prompt_ids(tokenizer: Any, prompt: str, score: str) -> Tensor:
    """Ids (1, T) up to where the answer begins. The empty score asks for nothing."""
    variables = {"rm_score": score, "condition": score}  # the chat template takes one of them
    messages = [{"role": "user", "content": prompt}]
    encoded = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True, **variables
    )
    ids: Tensor = encoded["input_ids"]
    return ids


def end_ids(tokenizer: Any, model: Any) -> set[int]:
    own = model.generation_config.eos_token_id
    return {tokenizer.eos_token_id, *(own if isinstance(own, list) else [own])} - {None}


@torch.inference_mode()
def sample(
    model: Any, prompts: list[Tensor], ends: set[int], guidance: float, temperature: float, most: int
) -> list[int]:
    """Ids of an answer of at most `most` tokens, without its end. `prompts`: with the condition and without it."""
    answer: list[int] = []
    caches: list[Any] = [None, None]
    inputs = [prompt.to(model.device) for prompt in prompts]
    while len(answer) < most:
        made = [model(ids, past_key_values=past, use_cache=True) for ids, past in zip(inputs, caches, strict=True)]
        c, u = (output.logits[0, -1].float() for output in made)
        # What is ruled out in both, such as a padded vocabulary, has no difference.
        logits = torch.where(c == u, c, torch.lerp(u, c, guidance))
        # Tokens that only requests have.
        logits[model.generation_config.suppress_tokens or []] = -torch.inf
        if temperature > 0:
            token = int(torch.multinomial((logits / temperature).softmax(-1), 1))
        else:
            token = int(logits.argmax())
        if token in ends:
            break
        answer.append(token)
        caches = [output.past_key_values for output in made]
        inputs = [torch.tensor([[token]], device=model.device)] * 2
    return answer


if __name__ == "__main__":
    main()
