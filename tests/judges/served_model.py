"""A tiny language model behind transformers' own OpenAI-compatible server, in a process of its own.

It has learned nothing: its weights are written down. Whatever it is asked, it answers `Rating: [[n]]` with an n that is
drawn, and sometimes only words.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from support.patience import PATIENCE, wait_until

_WORDS = ["<unk>", "<end>", "<assistant>", "Rating:", "Hm.", *(f"[[{score}]]" for score in (2, 4, 6.5, 8, 9))]
_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def write_model(folder: Path) -> None:
    """Each word leads to the next one with its own probability, whatever precedes it."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = {word: number for number, word in enumerate(_WORDS)}
    inner = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<unk>", eos_token="<end>", pad_token="<end>", chat_template=_TEMPLATE
    )
    tokenizer.save_pretrained(folder)
    size = 16
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=size,
        intermediate_size=size,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=words["<end>"],
        pad_token_id=words["<end>"],
    )
    model = LlamaForCausalLM(config)
    likely: dict[str, dict[str, float]] = {
        "<assistant>": {"Rating:": 8.0, "Hm.": 5.5},
        "Rating:": {word: 8.0 for word in words if word.startswith("[[")},
        "Hm.": {"<end>": 8.0},
        **{word: {"<end>": 12.0} for word in words if word.startswith("[[")},
    }
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.model.norm.weight.fill_(1.0)
        model.model.embed_tokens.weight[:, : len(words)] = torch.eye(len(words))
        for word, followers in likely.items():
            for follower, logit in followers.items():
                # The last norm makes the one feature that is on as large as sqrt(size).
                model.lm_head.weight[words[follower], words[word]] = logit / size**0.5
    model.generation_config.max_new_tokens = 8
    model.generation_config.do_sample = True
    model.save_pretrained(folder)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The base URL, without `/v1`, of a server that makes its model in `folder`, and may still be at it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, __file__, str(folder), str(port)], env=environment, stdout=log, stderr=log
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def wait_until_served(url: str, folder: Path, seconds: float = PATIENCE) -> None:
    """Waits until the model is loaded, too: the server loads it before it listens."""

    def is_healthy() -> bool:
        try:
            return httpx.get(f"{url}/health", timeout=5).is_success
        except httpx.HTTPError:
            return False

    log = folder / "server.log"
    wait_until(is_healthy, lambda: f"the server did not start: {log.read_text()[-2000:]}", seconds=seconds, pause=0.1)


if __name__ == "__main__":
    from transformers.cli.serve import Serve

    write_model(Path(sys.argv[1]))
    Serve(sys.argv[1], device="cpu", host="127.0.0.1", port=int(sys.argv[2]))
