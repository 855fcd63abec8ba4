"""Conversations with tools as tokens: those that transformers writes, with calls learned and results never."""

from __future__ import annotations

import copy
import json

import pytest

from steerboard_contracts.errors import BadInput
from steerboard_contracts.samples import PromptSample
from steerboard_workers.alignment.rendering.render import Renderer, UnrenderableRows
from support.models.template_families import tokenizer_of
from support.models.tool_templates import TOOL_TEMPLATES, tool_tokenizer_of

ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "The sum of two numbers.",
        "parameters": {"type": "object", "properties": {"b": {"type": "number"}, "a": {"type": "number"}}},
    },
}
# Not in the order in which a database would give them back.
ARGUMENTS = {"second": 5, "a": 2}


def call(number, arguments):
    return {"id": f"call{number:05d}", "type": "function", "function": {"name": "add", "arguments": arguments}}


def turns(arguments):
    """A conversation of two calls in OpenAI's shape; `arguments` makes them what is asked for."""
    return [
        {"role": "user", "content": "2 + 5 + 1?"},
        {"role": "assistant", "content": "", "tool_calls": [call(1, arguments(ARGUMENTS))]},
        {"role": "tool", "content": "7", "tool_call_id": "call00001", "name": "add"},
        {"role": "assistant", "content": "", "tool_calls": [call(2, arguments({"a": 7, "b": 1}))]},
        {"role": "tool", "content": "8", "tool_call_id": "call00002", "name": "add"},
    ]


def stored():
    first, *rest = turns(json.dumps)
    sample = PromptSample.model_validate({"prompt": [{**first, "tools": [ADD]}, *rest]})
    return sample.model_dump(exclude_none=True)["prompt"]


def written(tokenizer, messages, **arguments):
    text = tokenizer.apply_chat_template(messages, tools=[ADD], tokenize=False, **arguments)
    return tokenizer(text, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("name", TOOL_TEMPLATES)
def test_a_conversation_with_tools_has_the_tokens_that_transformers_writes(name):
    tokenizer, messages = tool_tokenizer_of(name), turns(dict)
    renderer = Renderer(tokenizer, "chat", 4096)
    assert renderer.prompt_ids(stored()) == written(tokenizer, messages, add_generation_prompt=True)
    rendered = renderer.render(stored(), "It is 8.")
    whole = written(tokenizer, [*messages, {"role": "assistant", "content": "It is 8."}])
    assert rendered.ids == whole[: len(rendered.ids)]
    assert rendered.ids[-1] == renderer.end_id
    learned = [number for number, on in zip(rendered.ids, rendered.supervised, strict=True) if on]
    assert tokenizer.decode(learned, skip_special_tokens=True).strip() == "It is 8."


@pytest.mark.parametrize("name", TOOL_TEMPLATES)
def test_calls_are_learned_with_their_ends_and_neither_tools_nor_results_are(name):
    tokenizer = tool_tokenizer_of(name)
    renderer = Renderer(tokenizer, "chat", 4096, learn="all")
    rendered = renderer.render(stored(), "It is 8.")
    split = {
        on: tokenizer.decode([n for n, s in zip(rendered.ids, rendered.supervised, strict=True) if s is on])
        for on in (True, False)
    }
    assert sum(n == renderer.end_id for n, s in zip(rendered.ids, rendered.supervised, strict=True) if s) == 3
    assert split[True].count('"add"') == 2
    assert '{"second": 5, "a": 2}' in split[True].replace("{ ", "{")
    assert "The sum of two numbers." in split[False]
    assert "The sum" not in split[True]
    assert "It is 8." in split[True]
    assert '"a": 2' not in split[False]


def test_a_spelled_control_token_in_a_result_an_argument_or_a_tool_is_plain_text():
    tokenizer = tool_tokenizer_of("hermes")
    renderer = Renderer(tokenizer, "chat", 4096)
    nasty = "<|im_end|>"
    tool = {"function": {"name": "add", "description": nasty}}
    prompt = [
        {"role": "user", "content": "?", "tools": json.dumps([tool])},
        {"role": "assistant", "content": "", "tool_calls": [call(1, json.dumps({"a": nasty}))]},
        {"role": "tool", "content": nasty},
    ]
    ids = renderer.prompt_ids(prompt)
    assert tokenizer.decode(ids).count(nasty) == 7
    assert ids.count(tokenizer.convert_tokens_to_ids(nasty)) == 4


@pytest.mark.parametrize(
    ("template", "what"),
    [
        ("plain", "the plain template writes no tools"),
        ("chat", "leaves out the tools that the conversation offers"),
    ],
)
def test_a_template_without_tools_is_refused_and_not_silently_asked_without_them(template, what):
    renderer = Renderer(tokenizer_of("chatml"), template, 4096)
    with pytest.raises(UnrenderableRows, match=what) as refused:
        renderer.render(stored(), "8")
    assert refused.value.code == "template_without_tools"


def test_a_template_that_leaves_out_calls_is_refused():
    renderer = Renderer(tokenizer_of("chatml"), "chat", 4096)
    first, *rest = stored()
    del first["tools"]
    with pytest.raises(BadInput, match="leaves out calls of tools"):
        renderer.prompt_ids([first, *rest])


def called(text=""):
    return {"role": "assistant", "content": text, "tool_calls": [call(1, json.dumps(ARGUMENTS))]}


def given(text=""):
    return {"role": "assistant", "content": text, "tool_calls": [call(1, ARGUMENTS)]}


@pytest.mark.parametrize("learn", ["last", "all"])
@pytest.mark.parametrize(
    ("name", "text"),
    # Mistral's leaves out the text before calls.
    [(name, text) for name in TOOL_TEMPLATES for text in ("", "I add them.") if not text or name != "mistral"],
)
def test_an_answer_that_calls_tools_has_the_tokens_that_transformers_writes_and_all_are_learned(name, text, learn):
    tokenizer = tool_tokenizer_of(name)
    renderer = Renderer(tokenizer, "chat", 4096, learn=learn)
    (asked,), question = stored()[:1], turns(dict)[:1]
    rendered = renderer.render([asked], called(text))
    whole = written(tokenizer, [*question, given(text)])
    assert rendered.ids == whole[: len(rendered.ids)]
    assert rendered.ids[-1] == renderer.end_id
    assert not tokenizer.decode(whole[len(rendered.ids) :]).strip()
    prompt = written(tokenizer, question, add_generation_prompt=True)
    assert rendered.supervised == [False] * len(prompt) + [True] * (len(rendered.ids) - len(prompt))


def test_the_sides_of_a_pair_are_learned_as_their_calls_and_texts():
    renderer = Renderer(tool_tokenizer_of("hermes"), "chat", 4096)
    (group,) = renderer.render_groups([stored()[:1]], [[called(), "It is 7."]])
    decoded = [renderer.tokenizer.decode(ids) for ids in group.responses]
    assert decoded[0].startswith("<tool_call>\n")
    assert '{"second": 5, "a": 2}' in decoded[0]
    assert decoded[1] == "It is 7.<|im_end|>"
    assert [ids[-1] for ids in group.responses] == [renderer.end_id] * 2


def test_a_spelled_control_token_in_the_arguments_of_an_answer_is_plain_text():
    tokenizer = tool_tokenizer_of("hermes")
    renderer = Renderer(tokenizer, "chat", 4096)
    nasty = "<|im_end|>"
    answer = {"role": "assistant", "content": nasty, "tool_calls": [call(1, json.dumps({"a": nasty}))]}
    rendered = renderer.render(stored()[:1], answer)
    learned = [number for number, on in zip(rendered.ids, rendered.supervised, strict=True) if on]
    assert tokenizer.decode(learned).count(nasty) == 3
    assert learned.count(renderer.end_id) == 1
    assert learned[-1] == renderer.end_id


@pytest.mark.parametrize("template", ["plain", "chat"])
def test_a_template_that_leaves_out_the_calls_of_an_answer_is_refused(template):
    renderer = Renderer(tokenizer_of("chatml"), template, 4096)
    with pytest.raises(UnrenderableRows) as refused:
        renderer.render([{"role": "user", "content": "2 + 5?"}], called("I add."))
    assert refused.value.code == "template_without_tools"


# The call of its last turn alone is left out, the text before its calls, or all but the first call.
LOSSY = [
    ("m['tool_calls'] or []", "((m['tool_calls'] or []) if not loop.last else [])", called(), "the calls of an answer"),
    ("if m['content']", "if m['content'] and not m['tool_calls']", called("I add."), "the text of an answer"),
    (
        "m['tool_calls'] or []",
        "(m['tool_calls'] or [])[:1]",
        {**called(), "tool_calls": [call(1, "{}"), call(2, '{"a": 1}')]},
        "a call of an answer with several",
    ),
]


@pytest.mark.parametrize(("part", "instead", "answer", "what"), LOSSY, ids=["last turn", "text", "second call"])
def test_a_template_that_leaves_out_a_part_of_an_answer_with_calls_is_refused(part, instead, answer, what):
    tokenizer = copy.deepcopy(tool_tokenizer_of("hermes"))
    assert part in tokenizer.chat_template
    tokenizer.chat_template = tokenizer.chat_template.replace(part, instead)
    renderer = Renderer(tokenizer, "chat", 4096)
    with pytest.raises(UnrenderableRows, match=f"leaves out {what}") as refused:
        renderer.render(stored(), answer)
    assert refused.value.code == "template_without_tools"
    assert renderer.render(stored(), "It is 8.") is not None


@pytest.mark.parametrize("text", ["", "I add."])
def test_a_score_comes_before_an_answer_that_calls_tools(text):
    renderer = Renderer(tool_tokenizer_of("hermes"), "chat", 4096)
    asked = renderer.prompt_ids(stored(), "4")
    rendered = renderer.render(stored(), called(text), "4")
    assert rendered.ids[: len(asked)] == asked
    learned = renderer.tokenizer.decode([n for n, on in zip(rendered.ids, rendered.supervised, strict=True) if on])
    assert learned.strip().startswith(text or "<tool_call>")
    assert rendered.supervised == [False] * len(asked) + [True] * (len(rendered.ids) - len(asked))
