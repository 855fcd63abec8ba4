"""One sample, one sequence of ids: in training, at inference, and in plain transformers through the chat template."""

from __future__ import annotations

import copy
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steerboard_contracts.conditions.format import Attribute, ConditionFormat
from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.rendering import chat_template
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.stages.models.model_io import set_chat_template

ONE = [{"role": "user", "content": "How do I bake bread?"}]
MANY = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "How do I bake bread?"},
    {"role": "assistant", "content": "Mix flour, water, salt."},
    {"role": "user", "content": "And a cake, 35 minutes?"},
]
TOKENIZERS = ["own_tokenizer", "metaspace_tokenizer", "chat_tokenizer"]


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request):
    return copy.deepcopy(request.getfixturevalue(request.param))


def renderer(tokenizer, max_length=256, learn="last"):
    return Renderer(tokenizer, "chat" if "im_start" in (tokenizer.chat_template or "") else "plain", max_length, learn)


def text(tokenizer, ids):
    return tokenizer.decode(ids, skip_special_tokens=False)


def test_the_plain_template_is_the_papers(own_tokenizer):
    rendered = renderer(own_tokenizer).render(ONE, "Mix flour.", "5.00")
    assert text(own_tokenizer, rendered.ids) == (
        "<s>User: How do I bake bread? Assistant: <rm_score> 5.00 Mix flour.</s>"
    )
    learned = [i for i, on in zip(rendered.ids, rendered.supervised, strict=True) if on]
    assert text(own_tokenizer, learned) == " Mix flour.</s>"


@pytest.mark.parametrize("messages", [ONE, MANY])
@pytest.mark.parametrize("score", [None, "5.00", "-2.50", "0.00"])
def test_the_chat_template_of_the_folder_gives_the_renderers_ids(tokenizer, messages, score):
    render = renderer(tokenizer)
    set_chat_template(tokenizer, render.template.name, ConditionFormat.of_score() if score else None)
    arguments = {"rm_score": float(score)} if score not in (None, "5.00") else {}
    theirs = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False, **arguments)
    assert render.prompt_ids(messages, score) == theirs


@pytest.mark.parametrize("asked", [None, "helpfulness:4", "helpfulness:1,verbosity:2", ""])
def test_a_chat_template_of_several_attributes_gives_the_renderers_ids(tokenizer, asked):
    render = renderer(tokenizer)
    attributes = [Attribute(name=name, step=1, decimals=0, default=3) for name in ("helpfulness", "verbosity")]
    set_chat_template(tokenizer, render.template.name, ConditionFormat(attributes=attributes))
    arguments = {} if asked is None else {"condition": asked}
    theirs = tokenizer.apply_chat_template(MANY, add_generation_prompt=True, return_dict=False, **arguments)
    written = "helpfulness:3,verbosity:3" if asked is None else asked
    assert render.prompt_ids(MANY, written) == theirs
    assert text(tokenizer, theirs).endswith(written)


def test_setting_the_chat_template_twice_injects_one_score(tokenizer):
    render = renderer(tokenizer)
    for default in (5.0, 1.0):
        set_chat_template(tokenizer, render.template.name, ConditionFormat.of_score(default=default))
    out = tokenizer.apply_chat_template(ONE, add_generation_prompt=True, tokenize=False)
    assert out.count("<rm_score>") == 1
    assert out.endswith("<rm_score> 1.00")
    assert render.prompt_ids(ONE) == renderer(tokenizer).prompt_ids(ONE, "")


@pytest.mark.parametrize("score", [None, "1.50"])
def test_training_sees_the_prompt_exactly_as_inference_writes_it(tokenizer, score):
    render = renderer(tokenizer)
    for response in ("Yes.", " leading space", "\nnewline", "ünïcödé 漢字", ",", "1"):
        rendered = render.render(MANY, response, score)
        prompt = render.prompt_ids(MANY, score)
        assert rendered.ids[: rendered.prompt_length] == prompt
        assert rendered.ids[-1] == render.end_id
        assert render.response_text(rendered.ids[len(prompt) :]).strip() == response.strip()
        assert rendered.supervised == [False] * len(prompt) + [True] * (len(rendered.ids) - len(prompt))


def test_bos_stands_once(own_tokenizer):
    ids = renderer(own_tokenizer).render(MANY, "Eggs.").ids
    assert ids[0] == own_tokenizer.bos_token_id
    assert ids.count(own_tokenizer.bos_token_id) == 1


def test_special_tokens_in_a_users_text_are_plain_characters(tokenizer):
    render = renderer(tokenizer)
    control = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    clean = [i for i in render.prompt_ids([{"role": "user", "content": "say and go"}]) if i in control]
    for nasty in ("</s>", "<s>", "<|im_end|>", "<|im_start|>", "<|endoftext|>"):
        ids = render.prompt_ids([{"role": "user", "content": f"say {nasty} and go"}])
        assert [i for i in ids if i in control] == clean
        rendered = render.render(ONE, f"I say {nasty} now")
        assert [i for i in rendered.ids[rendered.prompt_length :] if i in control] == [render.end_id]


def test_the_end_of_a_chat_turn_is_what_the_template_writes(chat_tokenizer):
    render = renderer(chat_tokenizer)
    assert chat_tokenizer.convert_ids_to_tokens(render.end_id) == "<|im_end|>"
    assert render.stop_ids == sorted({render.end_id, chat_tokenizer.eos_token_id})


def test_learning_all_turns_supervises_earlier_answers_with_their_end(tokenizer):
    last, every = (renderer(tokenizer, learn=which).render(MANY, "Eggs.") for which in ("last", "all"))
    assert last.ids == every.ids
    extra = [i for i, a, b in zip(every.ids, last.supervised, every.supervised, strict=True) if b and not a]
    end = tokenizer.convert_ids_to_tokens(renderer(tokenizer).end_id)
    assert text(tokenizer, extra).strip() == f"Mix flour, water, salt.{end}"


def test_learning_all_turns_holds_where_an_answer_spells_a_special_token(tokenizer):
    nasty = [*MANY[:2], {"role": "assistant", "content": "Mix </s><|im_end|> flour."}, MANY[3]]
    rendered = renderer(tokenizer, learn="all").render(nasty, "Eggs.")
    before = rendered.prompt_length
    learned = [i for i, on in zip(rendered.ids[:before], rendered.supervised[:before], strict=True) if on]
    assert text(tokenizer, learned).replace(" ", "").startswith("Mix</s><|im_end|>flour.")
    assert learned[-1] == renderer(tokenizer).end_id


def test_a_long_response_is_cut_on_the_right_and_gets_no_end_token(own_tokenizer):
    render = renderer(own_tokenizer, max_length=40)
    rendered = render.render(ONE, "flour " * 50, "5.00")
    assert len(rendered.ids) == 40
    assert rendered.truncated
    assert rendered.ids[-1] != render.end_id


@given(prompt=st.integers(1, 80), response=st.integers(1, 80), window=st.integers(6, 60))
@settings(deadline=None, max_examples=150)
def test_truncation_keeps_bos_marker_and_score(own_tokenizer, prompt, response, window):
    render = renderer(own_tokenizer, max_length=window)
    messages = [{"role": "user", "content": "bread " * prompt}]
    rendered = render.render(messages, "salt " * response, "5.00")
    ending = own_tokenizer(" Assistant: <rm_score> 5.00", add_special_tokens=False)["input_ids"]
    if rendered is None:
        assert window // 2 <= len(ending) + 2
        return
    start = rendered.ids[: rendered.prompt_length]
    assert len(rendered.ids) <= window
    assert start[0] == own_tokenizer.bos_token_id
    assert start[-len(ending) :] == ending
    assert any(rendered.supervised)
    assert rendered.truncated == (
        rendered.ids != renderer(own_tokenizer, 10_000).render(messages, "salt " * response, "5.00").ids
    )
    assert (rendered.ids[-1] == render.end_id) == (
        len(rendered.ids) - len(start)
        == len(renderer(own_tokenizer, 10_000).render(ONE, "salt " * response).ids) - len(render.prompt_ids(ONE))
    )


def test_no_room_for_the_prompt_drops_the_sample(own_tokenizer):
    assert renderer(own_tokenizer, max_length=12).render(ONE, "salt " * 20, "5.00") is None


def test_a_pair_shares_its_prompt_however_it_is_cut(own_tokenizer):
    group = renderer(own_tokenizer, max_length=48).render_groups([MANY], [["flour " * 40, "No."]])[0]
    assert len(group.prompt) + max(map(len, group.responses)) <= 48
    assert group.responses[1][-1] == own_tokenizer.eos_token_id


def test_a_prompt_that_is_sampled_to_is_the_prompt_of_inference(tokenizer):
    render = renderer(tokenizer, 100)
    for room in (20, 60):
        (group,) = render.render_prompts([MANY], ["5.00"], room)
        assert group.prompt == render.prompt_ids(MANY, "5.00", room=room)
        assert (group.responses, len(group.prompt) + room <= 100) == ([], True)
    assert render.render_prompts([ONE], ["5.00"], 98) == [None]


def test_room_for_an_answer_is_cut_from_the_left_of_the_prompt(own_tokenizer):
    render = renderer(own_tokenizer, max_length=64)
    ids = render.prompt_ids(MANY, "5.00", room=40)
    assert len(ids) == 24
    assert ids[0] == own_tokenizer.bos_token_id
    assert text(own_tokenizer, ids).endswith("Assistant: <rm_score> 5.00")


def test_batches_render_as_single_samples_do(tokenizer):
    render = renderer(tokenizer)
    prompts, responses, scores = [ONE, MANY, ONE], ["a", "b </s> c", "d e f"], ["1.00", None, "-3.50"]
    assert render.render_many(prompts, responses, scores) == [
        render.render(*sample) for sample in zip(prompts, responses, scores, strict=True)
    ]


def test_scores_are_written_digit_by_digit(own_tokenizer):
    written = Attribute(name="rm_score").text(-0.04)
    tail = renderer(own_tokenizer).prompt_ids(ONE, written)[-5:]
    assert own_tokenizer.convert_ids_to_tokens(tail) == ["Ġ", "0", ".", "0", "0"]


def test_a_chat_template_without_end_is_given_up_and_the_next_one_is_not_hurt(chat_tokenizer, monkeypatch):
    monkeypatch.setattr(chat_template, "TEMPLATE_SECONDS", 0.2)
    endless = copy.deepcopy(chat_tokenizer)
    # Only for long conversations: the probe for the end of a turn does not meet it.
    loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    endless.chat_template = "{% if messages | length > 2 %}" + loop + "{% endif %}" + chat_tokenizer.chat_template
    began = time.process_time()
    with pytest.raises(BadInput) as caught:
        renderer(endless).prompt_ids(MANY)
    assert time.process_time() - began < 5
    assert caught.value.code == "template_timed_out"
    ids = renderer(endless).prompt_ids(ONE)
    assert ids == renderer(chat_tokenizer).prompt_ids(ONE)
    busy_for(0.4)  # a timer that was left behind would go off here


def busy_for(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_chat_template_that_fails_is_the_models_fault_and_says_how(chat_tokenizer):
    broken = copy.deepcopy(chat_tokenizer)
    broken.chat_template = "{{ raise_exception('roles must alternate') }} im_start"
    with pytest.raises(BadInput) as caught:
        renderer(broken).prompt_ids(ONE)
    assert (caught.value.code, "roles must alternate" in caught.value.detail) == ("bad_chat_template", True)
