"""Which words a user may write for scores, and which word stands for which score."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.conditions.score_words import Writing
from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods.decision_transformer import DecisionTransformerConfig
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.prompts import TemplateName

WORDS = {"score_style": "words"}


def configured(**given: Any) -> DecisionTransformerConfig:
    return DecisionTransformerConfig.model_validate({"run": "train", "method": "decision_transformer", **given})


@pytest.mark.parametrize(
    ("given", "template", "asked", "written"),
    [
        ({}, "plain", None, ("digits", "answer")),
        ({}, "chat", None, ("words", "request")),
        ({"template": "plain"}, "chat", None, ("digits", "answer")),
        ({"score_style": "digits"}, "chat", None, ("digits", "answer")),
        ({"score_style": "words"}, "plain", None, ("words", "request")),
        ({"score_style": "tokens", "score_place": "both"}, "chat", None, ("tokens", "both")),
        ({"score_place": "answer"}, "chat", None, ("words", "answer")),
        ({"attributes": ["rm_score", "verbosity"]}, "chat", None, ("digits", "answer")),
        # Seven words are more than these scores.
        ({"score_step": 1.0, "score_limit": 2.0}, "chat", None, ("digits", "answer")),
        # A policy that is asked for a score already is asked as before.
        ({}, "chat", {}, ("digits", "answer")),
        ({}, "plain", {"style": "words", "place": "both"}, ("words", "both")),
        ({"score_style": "digits"}, "plain", {"style": "words", "place": "both"}, ("digits", "answer")),
    ],
)
def test_the_start_model_decides_how_a_score_is_written_where_nobody_did(
    given: dict[str, Any], template: TemplateName, asked: dict[str, Any] | None, written: tuple[str, str]
) -> None:
    form = None if asked is None else ConditionFormat.of_score(**asked)
    how = configured(**given).for_start(template, form).writing or Writing()
    assert (how.style, how.place) == written


@pytest.mark.parametrize(
    ("given", "style", "words"),
    [
        ({"score_step": 1.0, "score_limit": 2.0}, "words", "7 words are more than the scores"),
        ({"lora": {}, "strategy": "zero3"}, "tokens", "tokens with lora needs strategy ddp or zero2"),
    ],
)
def test_what_the_start_model_decides_must_fit_the_config(given: dict[str, Any], style: str, words: str) -> None:
    with pytest.raises(BadInput, match=words) as refused:
        configured(**given).for_start("chat", ConditionFormat.of_score(style=style))
    assert refused.value.code == "bad_config"


def test_training_on_keeps_the_words_of_the_policy() -> None:
    own = {"style": "words", "words": ("low", "high"), "phrase": "Rated {}."}
    form = ConditionFormat.of_score(**own, place="request")
    assert configured().for_start("chat", form).writing == form.writing
    chosen = configured(score_words=["meh", "wow"]).for_start("chat", form).writing
    assert chosen is not None
    assert (chosen.words, chosen.phrase) == (("meh", "wow"), "Rated {}.")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"score_phrase": "Good"}, "must have one {}"),
        ({"score_phrase": "{} or {}"}, "must have one {}"),
        ({"score_phrase": "{} {0}"}, "'{'"),
        ({"score_phrase": "{{}}"}, "'{'"),
        ({"score_phrase": "It is\n{}"}, "line ends"),
        ({"score_phrase": " {}"}, "space"),
        ({"score_phrase": "<|im_end|> {}"}, "'<'"),
        ({"score_phrase": "\u202eIt is {}"}, "\\\\u202e"),
        ({"score_phrase": "{}" + "x" * 200}, "200 characters"),
        ({"score_words": ["good"]}, "at least 2"),
        ({"score_words": [f"w{place}" for place in range(22)]}, "at most 21"),
        ({"score_words": ["good", ""]}, "empty"),
        ({"score_words": ["good", " bad"]}, "space"),
        ({"score_words": ["good", "Good"]}, "one word"),
        ({"score_words": ["caf\u00e9", "cafe\u0301"]}, "one word"),
        ({"score_words": ["bad", "</s>"]}, "'<'"),
        ({"score_words": ["bad", "[INST]"]}, "'\\['"),
        ({"score_words": ["bad", "a\nb"]}, "line ends"),
        ({"score_words": ["bad", "\ue0f0"]}, "\\\\ue0f0"),
        ({"score_words": ["bad", "a\u2028b"]}, "\\\\u2028"),
        ({"score_words": ["bad", "g" * 41]}, "40 characters"),
        ({"score_style": "colours"}, "'auto', 'digits', 'words' or 'tokens'"),
        ({"score_place": "system"}, "'auto', 'answer', 'request' or 'both'"),
        ({**WORDS, "attributes": ["rm_score", "verbosity"]}, "alone is written in words"),
        ({**WORDS, "attributes": ["verbosity"]}, "alone is written in words"),
        ({"score_style": "tokens", "attributes": ["rm_score", "verbosity"]}, "alone is written in tokens"),
        ({"score_style": "tokens", "lora": {}, "strategy": "zero3"}, "tokens with lora needs strategy ddp or zero2"),
        ({"score_style": "tokens", "score_step": 1.0, "score_limit": 2.0}, "7 words are more than the scores"),
        ({**WORDS, "score_step": 1.0, "score_limit": 2.0}, "7 words are more than the scores"),
        ({**WORDS, "score_limit": 1e300}, "too many for words"),
    ],
)
def test_what_cannot_be_written_is_refused_by_its_field(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words) as refused:
        configured(**given)
    assert next(iter(given)) in str(refused.value) or "score_words" in str(refused.value)


def test_words_stand_for_parts_of_equal_width() -> None:
    form = ConditionFormat.of_score(style="words")
    chosen = [form.word(f"{score:.2f}") for score in (-5, -3.6, -3.5, -0.7, 0, 0.7, 0.8, 2.5, 3.5, 3.6, 5)]
    assert chosen == ["terrible", "terrible", "bad", "ordinary", "ordinary", "ordinary", "good", "great", "great"] + (
        ["wonderful"] * 2
    )
    few = ConditionFormat.of_score(5, 5, style="words", words=["low", "middle", "high"])
    assert [few.word(text) for text in ("-5.00", "0.00", "5.00")] == ["low", "middle", "high"]


@pytest.mark.parametrize("place", ["answer", "request", "both"])
def test_a_token_is_written_in_place_of_its_word(place: Any) -> None:
    form = ConditionFormat.of_score(style="tokens", place=place)
    config = configured(score_style="tokens", score_place=place)
    assert config.writing == config.score_tokens == form.how
    assert form.how.tokens == tuple(f"<|rm_score_{part}|>" for part in range(7))
    assert form.word("5.00") == "wonderful"
    asked = form.opening("5.00"), form.request("5.00")
    token = "<|rm_score_6|>"
    assert asked == ("" if place == "request" else f"{token}:", "" if place == "answer" else f"The answer is{token}.")
    assert (form.opening(""), form.request("")) == ("", "")
    info = ModelInfo(role="policy", architecture="x", parameters=1, max_length=9, condition=form)
    assert ModelInfo.model_validate_json(info.model_dump_json()).condition == form


def test_no_word_can_spell_a_token() -> None:
    with pytest.raises(ValidationError, match="'<'"):
        configured(score_words=["bad", "<|rm_score_0|>"])
    assert configured(score_style="words").score_tokens is configured().score_tokens is None


def test_the_papers_way_is_stored_as_before() -> None:
    config = configured(score_style="digits")
    form = ConditionFormat.of_score()
    assert config.writing is form.writing is None
    assert form.opening("5.00") == "<rm_score> 5.00"
    assert form.request("5.00") == ""
    assert form.model_dump_json() == (
        '{"attributes":[{"name":"rm_score","low":-5.0,"high":5.0,"step":0.1,"decimals":2,"default":5.0}],"dropped":0.0}'
    )


def test_a_model_keeps_how_it_is_asked() -> None:
    form = ConditionFormat.of_score(style="words", place="both", words=["bad", "good"], phrase="It is {}.")
    info = ModelInfo(role="policy", architecture="x", parameters=1, max_length=9, condition=form)
    assert ModelInfo.model_validate_json(info.model_dump_json()).condition == form
    assert (form.opening("5.00"), form.request("5.00")) == ("good:", "It is good.")
    assert (form.opening(""), form.request("")) == ("", "")
    with pytest.raises(ValidationError, match="one word"):
        ModelInfo.model_validate(
            {**info.model_dump(), "condition": {**form.model_dump(), "writing": {"words": ["a", "A"]}}}
        )
