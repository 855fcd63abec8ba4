"""A score as digits, a word or a token, before the answer or at the end of the request: training, inference and the
exported chat template write the same, whatever people typed."""

from __future__ import annotations

import copy
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.conditions.format import Attribute, ConditionFormat
from steerboard_contracts.conditions.score_words import Writing
from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.alignment.rendering.templates import Template
from steerboard_workers.stages.models.model_io import set_chat_template
from steerboard_workers.stages.models.score_tokens import add_score_tokens, token_ids, word_ids
from support.models.template_families import FAMILIES, tokenizer_of

WORDS = ("awful", "so-so", "l'idéal", "excellent 🙂")
PHRASE = 'The "opinion" is {}, \\ or رأي.'
STYLES = [
    ConditionFormat.of_score(style=style, place=place, words=WORDS, phrase=PHRASE)
    for style in ("digits", "words", "tokens")
    for place in ("answer", "request", "both")
]
named = pytest.mark.parametrize("form", STYLES, ids=lambda form: f"{form.how.style}-{form.how.place}")
CONTENTS = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "\n",
            "\n\nbefore",
            "after\n\n",
            "  a  ",
            "excellent 🙂",
            'The "opinion" is ',
            "مرحبا",
            "🙂👩‍🚀",
            "{{ x }}",
        ]
    ),
    st.text(alphabet="ab 4\n.é漢🙂", max_size=12),
)
WITH_TOKENS = {}
SCORES = [round(-5 + step / 10, 1) for step in range(101)]


def conversation(data, family, contents):
    """Ends with a user turn."""
    turns = (
        [{"role": "system", "content": data.draw(contents)}]
        if FAMILIES[family].system and data.draw(st.booleans())
        else []
    )
    if data.draw(st.booleans()):
        turns += [{"role": role, "content": data.draw(contents)} for role in ("user", "assistant")]
    return [*turns, {"role": "user", "content": data.draw(contents)}]


def opened(template, prompt, text):
    """The prompt as the model is given it, with what was typed as it was typed."""
    written = template.open(prompt, text).written
    return re.sub("\ue0f0(\\d+)\ue0f1", lambda match: written.literals[int(match.group(1))], written.text)


def tokenizer_for(family, form):
    if not form.how.tokens:
        return tokenizer_of(family)
    if family not in WITH_TOKENS:
        WITH_TOKENS[family] = copy.deepcopy(tokenizer_of(family))
        add_score_tokens(WITH_TOKENS[family], form.how)
    return WITH_TOKENS[family]


def exported(family, name, form):
    tokenizer = copy.deepcopy(tokenizer_for(family, form))
    set_chat_template(tokenizer, name, form)
    return tokenizer


@named
@pytest.mark.parametrize("family", [*FAMILIES, "plain"])
@settings(deadline=None, max_examples=10)
@given(data=st.data())
def test_the_exported_template_writes_what_inference_and_training_do(family, form, data):
    name, family = ("plain", "chatml") if family == "plain" else ("chat", family)
    tokenizer = exported(family, name, form)
    template = Template(tokenizer_for(family, form), name, condition=form)
    nasty = st.lists(
        st.sampled_from([*FAMILIES[family].control, "<rm_score>", "<|rm_score_3|>", "x"]), min_size=1, max_size=3
    ).map("".join)
    for contents in (CONTENTS, nasty):
        prompt, score = conversation(data, family, contents), data.draw(st.sampled_from(SCORES))
        text = form.text(Condition.of({"rm_score": score}))
        for asked, written in ((score, text), (text, text), ("", ""), (None, form.text(form.default))):
            theirs = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False, rm_score=asked)
            assert theirs == opened(template, prompt, written)


@named
@pytest.mark.parametrize("family", [*FAMILIES, "plain"])
@settings(deadline=None, max_examples=10)
@given(data=st.data())
def test_what_is_learned_begins_with_what_the_exported_template_gives(family, form, data):
    name, family = ("plain", "chatml") if family == "plain" else ("chat", family)
    tokenizer = exported(family, name, form)
    renderer = Renderer(tokenizer_for(family, form), name, 4096, condition=form)
    prompt, text = (
        conversation(data, family, CONTENTS),
        form.text(Condition.of({"rm_score": data.draw(st.sampled_from(SCORES))})),
    )
    prompt_ids = renderer.prompt_ids(prompt, text)
    theirs = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False, rm_score=text)
    assert prompt_ids == tokenizer(theirs, add_special_tokens=False)["input_ids"]
    rendered = renderer.render(prompt, "Lima", text)
    # A thought that the generation prompt opens is not in closed conversations, or not with the same tokens.
    shared = rendered.prompt_length if form.how.place == "request" else len(prompt_ids)
    assert rendered.ids[:shared] == prompt_ids[:shared]
    learned = [number for number, on in zip(rendered.ids, rendered.supervised, strict=True) if on]
    assert (
        tokenizer_for(family, form)
        .decode(learned)
        .replace("</think>", "")
        .replace("<think>", "")
        .strip()
        .startswith("Lima")
    )


def test_the_word_ends_the_last_request_and_no_earlier_one():
    def template(place):
        form = ConditionFormat.of_score(style="words", place=place, phrase="The opinion is {}.")
        return Template(tokenizer_of("chatml"), "plain", condition=form)

    prompt = [
        {"role": "user", "content": "Review a hotel."},
        {"role": "assistant", "content": "It was good."},
        {"role": "user", "content": "And the food?"},
    ]
    assert template("request").open(prompt, "5.00").written.text == (
        "User: Review a hotel. Assistant: It was good.<|im_end|> "
        "User: And the food? The opinion is wonderful. Assistant:"
    )
    assert template("request").open(prompt, "").written.text.endswith("User: And the food? Assistant:")
    closed = template("both").close(prompt, "Fine.", "-5.00")
    assert closed.written.text.endswith("And the food? The opinion is terrible. Assistant: terrible: Fine.<|im_end|>")
    assert closed.written.text[slice(*closed.answer)] == " Fine.<|im_end|>"


@pytest.mark.parametrize("words", [2, 7, 10, 20, 21])
@pytest.mark.parametrize("limit", [5.0, 3.0, 1.0])
def test_python_and_the_template_choose_one_word_at_every_step_and_border(words, limit):
    names = tuple(f"word{place:02}" for place in range(words))
    form = ConditionFormat.of_score(limit, style="words", place="request", words=names, phrase="Is {}")
    tokenizer = exported("chatml", "plain", form)
    steps = [round(-limit + step / 10, 1) for step in range(round(20 * limit) + 1)]
    borders = [-limit + 2 * limit * place / words for place in range(words + 1)]
    chosen = {}
    for score in [*steps, *borders, -1e9, 1e9, -limit - 0.01]:
        theirs = tokenizer.apply_chat_template(
            [{"role": "user", "content": ""}], add_generation_prompt=True, tokenize=False, rm_score=score
        )
        chosen[score] = form.word(form.text(Condition.of({"rm_score": score})))
        assert theirs == f"User: Is {chosen[score]} Assistant:"
    for score in steps:  # bins of equal width
        place = min(words - 1, int((score + limit) / (2 * limit) * words + 1e-9))
        assert chosen[score] == names[place]
    assert {chosen[score] for score in steps} == set(names)


@named
def test_truncation_keeps_the_score(form):
    tokenizer = tokenizer_for("chatml", form)
    renderer = Renderer(tokenizer, "chat", 200, condition=form)
    prompt = [{"role": "user", "content": "quick " * 200}]
    kept = renderer.template.open([{"role": "user", "content": ""}], "5.00").written.text.partition("user\n")[2]
    for ids in (renderer.render(prompt, "fox " * 100, "5.00").ids, renderer.prompt_ids(prompt, "5.00", room=1000)):
        assert kept in tokenizer.decode(ids)


def test_a_renderer_of_another_style_leaves_the_first_as_it_was():
    renderer = Renderer(tokenizer_of("chatml"), "chat", 64)
    prompt = [{"role": "user", "content": "Hi"}]
    before = renderer.prompt_ids(prompt, "5.00")
    assert renderer.writing(STYLES[4]).prompt_ids(prompt, "5.00") != before
    assert renderer.prompt_ids(prompt, "5.00") == before == renderer.writing(None).prompt_ids(prompt, "5.00")


TOKENS = [form for form in STYLES if form.how.tokens]


@pytest.mark.parametrize("form", TOKENS, ids=lambda form: form.how.place)
@pytest.mark.parametrize("family", FAMILIES)
@settings(deadline=None, max_examples=10)
@given(data=st.data())
def test_a_token_that_someone_typed_stays_text(family, form, data):
    tokenizer = tokenizer_for(family, form)
    ids = token_ids(tokenizer, form.how)
    renderer = Renderer(tokenizer, "chat", 4096, condition=form)
    typed = st.lists(st.sampled_from([*form.how.tokens, "x", " "]), min_size=1, max_size=4).map("".join)
    prompt, answer = conversation(data, family, typed), data.draw(typed)
    text = data.draw(st.sampled_from(["-5.00", "0.00", "5.00", ""]))
    rendered = renderer.render(prompt, answer, text)
    places = {"answer": 1, "request": 1, "both": 2}[form.how.place] if text else 0
    asked = [ids[form.how.words.index(form.word(text))]] * places if text else []
    assert [number for number in renderer.prompt_ids(prompt, text) if number in ids] == asked
    assert [number for number in rendered.ids if number in ids] == asked
    assert not any(on for number, on in zip(rendered.ids, rendered.supervised, strict=True) if number in ids)


@pytest.mark.parametrize("form", TOKENS, ids=lambda form: form.how.place)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_token_is_one_id_in_place_of_its_words(family, form):
    tokenizer, words = tokenizer_for(family, form), form.model_copy(update={"writing": form.how.in_words})
    ids = token_ids(tokenizer, form.how)
    prompt = [{"role": "user", "content": "Hi"}]
    for place, text in enumerate(["-5.00", "-1.00", "1.00", "5.00"]):
        written, spelled = (
            Renderer(tokenizer, "chat", 4096, condition=condition).prompt_ids(prompt, text)
            for condition in (form, words)
        )
        assert ids[place] in written
        of_word = word_ids(tokenizer, form.how, place)
        assert WORDS[place] in tokenizer.decode(of_word)
        expanded = [id_ for number in written for id_ in (of_word if number == ids[place] else [number])]
        # A tokenizer may write the space before the word as a token of its own.
        assert tokenizer.decode(expanded).replace(" ", "") == tokenizer.decode(spelled).replace(" ", "")


def test_a_policy_whose_tokenizer_lost_its_tokens_is_refused():
    with pytest.raises(BadInput, match="rm_score_0") as refused:
        Renderer(tokenizer_of("chatml"), "chat", 64, condition=TOKENS[0])
    assert refused.value.code == "bad_score_tokens"


def test_words_that_spell_a_control_token_are_refused():
    tokenizer = copy.deepcopy(tokenizer_of("chatml"))
    tokenizer.add_special_tokens({"extra_special_tokens": ["great"]})
    with pytest.raises(BadInput, match="great") as refused:
        Renderer(tokenizer, "chat", 64, condition=ConditionFormat.of_score(style="words"))
    assert refused.value.code == "control_token_in_text"


@pytest.mark.parametrize("place", ["answer", "request", "both"])
def test_several_attributes_are_placed_alike(place):
    form = ConditionFormat(
        attributes=[Attribute(name=name, step=1, decimals=0, default=3) for name in ("helpfulness", "verbosity")],
        writing=Writing(place=place),
    )
    tokenizer, prompt = exported("llama-3", "chat", form), [{"role": "user", "content": "Hi"}]
    template = Template(tokenizer_of("llama-3"), "chat", condition=form)
    for asked in ("helpfulness:4,verbosity:2", "helpfulness:1", ""):
        theirs = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False, condition=asked)
        assert theirs == opened(template, prompt, asked)
        assert theirs.count(asked or "helpfulness") == (2 if place == "both" else 1) * bool(asked)
