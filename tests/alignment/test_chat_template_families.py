"""What is learned is what the template writes, token for token, whatever people typed: templates of many families."""

from __future__ import annotations

import copy
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.rendering.day import pin_day
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.stages.models.model_io import set_chat_template
from support.models.template_families import FAMILIES, tokenizer_of

DAY = date(2024, 7, 26)


@pytest.fixture(autouse=True)
def pinned():
    pin_day(DAY)
    yield
    pin_day(None)


HOSTILE = [
    "",
    " ",
    "\n",
    "\n\nTwo lines before",
    "two lines after\n\n",
    "  spaces around  ",
    "a",
    "4",
    "user",
    "assistant\n",
    "model",
    "26 Jul 2024",
    "مرحبا بالعالم",
    "🙂👩‍🚀 ok",
    "def f(x):\n    return x",
    "x" * 40,
]
PLAIN = st.one_of(st.sampled_from(HOSTILE), st.text(alphabet="ab 4\n.é漢🙂", max_size=12))


def conversation(questions, answers, system):
    turns = [{"role": "system", "content": system}] if system is not None else []
    for question, answer in zip(questions, answers, strict=True):
        turns += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return turns


def written(tokenizer, messages, **arguments):
    template = tokenizer.chat_template.replace("strftime_now('%d %b %Y')", f"'{DAY:%d %b %Y}'")
    text = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False, **arguments)
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def asked(family, data, turns):
    system = data.draw(st.one_of(st.none(), PLAIN)) if FAMILIES[family].system else None
    return conversation(data.draw(st.lists(PLAIN, min_size=turns, max_size=turns)), [""] * turns, system)


def answered(messages, answers):
    given = iter(answers)
    return [{**message, "content": next(given)} if message["role"] == "assistant" else message for message in messages]


@pytest.mark.parametrize("family", FAMILIES)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_a_sample_has_the_tokens_of_the_closed_conversation(family, data):
    tokenizer = tokenizer_of(family)
    messages = answered(asked(family, data, 2), data.draw(st.lists(PLAIN, min_size=2, max_size=2)))
    prompt, response = messages[:-1], messages[-1]["content"]
    wanted = written(tokenizer, messages)
    policy = Renderer(tokenizer, "chat", 4096)
    rendered = policy.render(prompt, response)
    assert rendered.ids == wanted[: len(rendered.ids)]
    assert rendered.ids[-1] == policy.end_id
    assert policy.end_id not in wanted[len(rendered.ids) :]
    assert Renderer(tokenizer, "chat", 4096, whole=True).render(prompt, response).ids == wanted
    assert policy.prompt_ids(prompt) == written(tokenizer, prompt, add_generation_prompt=True)


@pytest.mark.parametrize("family", FAMILIES)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_all_answers_with_their_ends_are_learned_and_nothing_else(family, data):
    tokenizer = tokenizer_of(family)
    renderer = Renderer(tokenizer, "chat", 4096, learn="all")
    messages = asked(family, data, 3)
    rest = []
    # What is not learned is what does not depend on the answers. Letters keep the borders of tokens where they are.
    for answers in (data.draw(st.lists(st.sampled_from(HOSTILE[6:]), min_size=3, max_size=3)), ["Lima"] * 3):
        turns = answered(messages, answers)
        rendered = renderer.render(turns[:-1], turns[-1]["content"])
        learned = [number for number, on in zip(rendered.ids, rendered.supervised, strict=True) if on]
        assert learned.count(renderer.end_id) == 3
        text = tokenizer.decode(learned)
        for answer in answers:
            at = text.find(answer.strip())
            assert at >= 0
            text = text[at + len(answer.strip()) :]
        rest.append([number for number, on in zip(rendered.ids, rendered.supervised, strict=True) if not on])
    assert rest[0] == rest[1]


@pytest.mark.parametrize("family", FAMILIES)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_no_text_acts_as_a_control_token_or_gets_spaces(family, data):
    tokenizer = tokenizer_of(family)
    renderer = Renderer(tokenizer, "chat", 4096)
    control = set(tokenizer.all_special_ids) | {n for n, t in tokenizer.added_tokens_decoder.items() if t.special}
    control -= {tokenizer.unk_token_id}
    spelling = st.sampled_from(FAMILIES[family].control)
    piece = st.one_of(spelling, st.sampled_from(["old", " ", "", "4"]))
    nasty = f"zq{''.join(data.draw(st.lists(piece, min_size=1, max_size=5)))}qz"
    prompt, plain = ([{"role": "user", "content": text}] for text in (f"say {nasty} now", "say x now"))
    rendered, wanted = renderer.render(prompt, f"I {nasty} say"), renderer.render(plain, "I x say")
    assert [n for n in rendered.ids if n in control] == [n for n in wanted.ids if n in control]
    # A thought that the generation prompt opens is not in closed conversations, or not with the same tokens.
    assert rendered.ids[: rendered.prompt_length] == renderer.prompt_ids(prompt)[: rendered.prompt_length]
    text = tokenizer.decode(rendered.ids, skip_special_tokens=False)
    assert text.count(nasty) == 2


@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if family.system])
def test_a_template_that_compares_messages_finds_equal_ones_with_control_tokens_equal(family):
    """Mistral's puts the system text before the last user message, and before all that equal it."""
    tokenizer = tokenizer_of(family)
    spelled = FAMILIES[family].control[0]
    messages = {text: conversation([text, text], ["a", "b"], "c")[:-1] for text in ("zq", spelled)}
    rendered = {
        text: tokenizer.decode(Renderer(tokenizer, "chat", 4096).prompt_ids(messages[text])) for text in messages
    }
    assert rendered[spelled] == rendered["zq"].replace("zq", spelled)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("score", ["5.00", "-2.50"])
def test_a_condition_opens_the_answer_in_training_at_inference_and_in_the_exported_template(family, score):
    tokenizer = copy.deepcopy(tokenizer_of(family))
    messages = conversation(["Name a city."], ["Lima"], None)
    renderer = Renderer(tokenizer, "chat", 4096)
    rendered = renderer.render(messages[:1], "Lima", score)
    prompt = renderer.prompt_ids(messages[:1], score)
    assert rendered.ids[: len(prompt)] == prompt
    opened = [{**messages[1], "content": f"<rm_score> {score} Lima"}]
    assert rendered.ids == written(tokenizer, messages[:1] + opened)[: len(rendered.ids)]
    tail = tokenizer.decode([n for n, on in zip(rendered.ids, rendered.supervised, strict=True) if on])
    assert tail.strip().startswith("Lima")
    set_chat_template(tokenizer, "chat", ConditionFormat.of_score())
    assert written(tokenizer, messages[:1], add_generation_prompt=True, rm_score=float(score)) == prompt
    assert renderer.prompt_ids(messages[:1]) == Renderer(tokenizer, "chat", 4096).prompt_ids(messages[:1])


def test_both_answers_of_a_pair_are_whole_where_one_joins_the_prompts_last_character():
    tokenizer = tokenizer_of("chatml")
    renderer = Renderer(tokenizer, "chat", 4096)
    prompt = [{"role": "user", "content": "Name a city."}]
    (group,) = renderer.render_groups([prompt], [["\nLima", "Lima"]])
    for place, answer in enumerate(["\nLima", "Lima"]):
        wanted = written(tokenizer, [*prompt, {"role": "assistant", "content": answer}])
        assert group.prompt + group.responses[place] == wanted[: len(group.prompt) + len(group.responses[place])]
    assert group.leads == [0, 1]


def test_rows_that_the_template_refuses_are_all_named():
    renderer = Renderer(tokenizer_of("gemma"), "chat", 4096)
    fine, system = [{"role": "user", "content": "hi"}], [{"role": "system", "content": "Be brief."}]
    with pytest.raises(BadInput) as caught:
        renderer.render_groups([fine, system + fine, fine, fine + fine], [["yes"]] * 4)
    assert sorted(caught.value.faults) == [1, 3]
    assert caught.value.code == "bad_chat_template"
    assert "2 of 4 rows" in caught.value.detail
    assert "row 1: " in caught.value.detail
    assert "System role not supported" in caught.value.detail
    assert "alternate" in caught.value.faults[3].detail


@pytest.mark.parametrize(
    "template", ["{{ messages[0]['content'] + 1 }}", "{{ messages[9].content.x }}", "{% for %}", {"tool": "x"}]
)
def test_whatever_a_template_raises_is_a_fault_of_the_model(template):
    tokenizer = copy.deepcopy(tokenizer_of("chatml"))
    tokenizer.chat_template = template
    with pytest.raises(BadInput) as caught:
        Renderer(tokenizer, "chat", 64).prompt_ids([{"role": "user", "content": "hi"}])
    assert caught.value.code == "bad_chat_template"
