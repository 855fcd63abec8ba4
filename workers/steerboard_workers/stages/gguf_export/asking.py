"""llama.cpp's side of the comparison, by the Python that has `llama_cpp` and none of our packages.

`python -I asking.py ASKED ANSWERED`: JSON files. ASKED is `{file, window, tokens, ends, questions: [{messages,
arguments, ids}]}`; ANSWERED is `{adds, answers: [{text, ids, answer}]}`: the text that llama.cpp puts before every
prompt by itself; the messages as the file's template renders them, the tokens of that text, and the likeliest tokens
after the question's `ids`, until one of `ends`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def answered(asked: dict[str, Any]) -> dict[str, Any]:
    from llama_cpp import Llama  # type: ignore[import-not-found]
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter  # type: ignore[import-not-found]

    llama = Llama(asked["file"], n_ctx=asked["window"], verbose=False, n_gpu_layers=0, seed=0)
    bos, eos = llama.token_bos(), llama.token_eos()
    template = llama.metadata.get("tokenizer.chat_template", "")
    text_of = llama._model.token_get_text
    formatter = Jinja2ChatFormatter(template, text_of(eos), text_of(bos) if bos >= 0 else "")
    answers = []
    for question in asked["questions"]:
        text = formatter(messages=question["messages"], **question["arguments"]).prompt
        ids = llama.tokenize(text.encode(), add_bos=False, special=True)
        llama.reset()
        answer: list[int] = []
        for token in llama.generate(question["ids"], top_k=1, temp=0.0, repeat_penalty=1.0):
            answer.append(int(token))
            if len(answer) == asked["tokens"] or token in asked["ends"]:
                break
        answers.append({"text": text, "ids": [int(token) for token in ids], "answer": answer})
    begin = llama.tokenize(b"", add_bos=True, special=True)
    return {"adds": "".join(text_of(token) for token in begin), "answers": answers}


if __name__ == "__main__":
    source, target = sys.argv[1:]
    Path(target).write_text(json.dumps(answered(json.loads(Path(source).read_bytes()))))
