"""What judges are asked, and in which order they see the answers. No database, no server."""

from __future__ import annotations

import itertools
import json
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steerboard.evaluation.judges import styles
from steerboard.evaluation.judges.judge_inputs import JudgedEntrant, JudgedPrompt, JudgeInputs
from steerboard.evaluation.judges.requests import Question, key_of, outcomes, request_of
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.registry.endpoints.chat import Completion
from steerboard_contracts.judge_prompts import fastchat_prompts

TEMPLATES = Path(__file__).parents[3] / "shared" / "data" / "fastchat" / "judge_prompts.jsonl"
NAMES = ("dt", "ppo", "sft")


def inputs(
    *,
    names: tuple[str, ...] = NAMES,
    prompts: int = 1,
    turns: int = 1,
    category: str | None = None,
    reference: bool = False,
    missing: tuple[str, int] | None = None,
) -> JudgeInputs:
    entrants = [JudgedEntrant(uuid.uuid5(uuid.NAMESPACE_DNS, name), name) for name in names]
    asked = [
        JudgedPrompt(
            position,
            category,
            [{"role": "user", "content": f"Q{position}.1"}],
            [f"Q{position}.{turn}" for turn in range(2, turns + 1)],
            [f"truth {position}.{turn}" for turn in range(1, turns + 1)] if reference else None,
        )
        for position in range(prompts)
    ]
    answers = {
        (entrant.id, prompt.position): [f"<{entrant.name} {prompt.position}.{turn}>" for turn in range(1, turns + 1)]
        for entrant in entrants
        for prompt in asked
        if (entrant.name, prompt.position) != missing
    }
    return JudgeInputs(asked, entrants, answers)


def ask(style: str, of: JudgeInputs, **settings: Any) -> list[Question]:
    return list(styles.questions(style, JudgeSettings(**settings), "gpt-x", of))


def texts(question: Question) -> tuple[str, str]:
    system, user = (message["content"] for message in question.request.messages)
    return system, user


def name_of(of: JudgeInputs, id_: uuid.UUID | None) -> str:
    return next(entrant.name for entrant in of.entrants if entrant.id == id_)


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize("with_reference", [False, True])
@pytest.mark.parametrize("kind", ["single", "pair"])
def test_mt_benchs_prompts_are_fastchats_to_the_letter(kind: str, turns: int, with_reference: bool) -> None:
    if not TEMPLATES.is_file():
        pytest.skip(f"no {TEMPLATES}")
    templates = {template["name"]: template for template in map(json.loads, TEMPLATES.read_text().splitlines())}
    name = {"single": "single-{}", "pair": "pair-{}"}[kind].format(
        "math-v1" if with_reference else {"single": "v1", "pair": "v2"}[kind]
    )
    template = templates[name + "-multi-turn" * (turns == 2)]
    fields = {"question": "Q {1}?", "answer": "a1", "answer_a": "a1", "answer_b": "b1"}
    fields |= {"question_1": "Q {1}?", "question_2": "Q2?", "answer_1": "a1", "answer_2": "a2"}
    fields |= {"answer_a_1": "a1", "answer_a_2": "a2", "answer_b_1": "b1", "answer_b_2": "b2"}
    fields |= {"ref_answer_1": "r1", "ref_answer_2": "r2"}
    questions, references = ["Q {1}?", "Q2?"][:turns], ["r1", "r2"][:turns] if with_reference else None
    a, b = ["a1", "a2"][:turns], ["b1", "b2"][:turns]
    made = (
        fastchat_prompts.single(questions, a, references)
        if kind == "single"
        else fastchat_prompts.pairwise(questions, a, b, references)
    )
    assert made == (template["system_prompt"], template["prompt_template"].format(**fields))


def test_a_reference_answer_is_shown_for_math_and_not_for_writing() -> None:
    for category, shown in (("math", True), ("Coding", True), (None, True), ("writing", False)):
        [question, *_] = ask("single", inputs(category=category, reference=True))
        assert ("truth 0.1" in texts(question)[1]) is shown
    [question, *_] = ask("single", inputs(category="math", reference=True), reference=False)
    assert "truth" not in texts(question)[1]


def test_single_grades_every_answer_in_every_turn_at_temperature_0() -> None:
    asked = ask("single", inputs(prompts=2, turns=2))
    assert len(asked) == 2 * 2 * 3
    assert {question.request.temperature for question in asked} == {0.0}
    second = next(question for question in asked if question.turn == 2)
    assert "<dt 0.1>" in texts(second)[1]
    assert "<dt 0.2>" in texts(second)[1]


def test_multi_in_paper_mode_has_the_papers_prompt_names_and_order() -> None:
    of = inputs(names=("DT", "PPO", "MLE", "RWR", "SFT"))
    [question] = ask("multi", of, blind=False)
    system, user = texts(question)
    assert "provided by five AI assistants" in system
    assert "{Assistant name}: {score}, where the range of {score} is 1 to 10." in system
    assert system.endswith("the question and answers of Assistant DT, PPO, MLE, RWR and SFT,")
    places = [user.index(f"The answer of Assistant {name}:\n<{name} 0.1>") for name in ("DT", "PPO", "MLE")]
    assert places == sorted(places)
    scores = outcomes(question, Completion("Assistant DT: 9\nAssistant PPO: 8\nMLE: 7\nAssistant SFT: 5"))
    assert [(name_of(of, score.place.a), score.value, score.status) for score in scores] == [
        ("DT", 9.0, "ok"),
        ("PPO", 8.0, "ok"),
        ("MLE", 7.0, "ok"),
        ("RWR", None, "unparsed"),
        ("SFT", 5.0, "ok"),
    ]


def test_multi_is_blind_by_default_and_its_order_is_drawn_for_each_prompt() -> None:
    of = inputs(prompts=60)
    asked = ask("multi", of)
    orders = []
    for question in asked:
        everything = "".join(texts(question)).replace("<dt", "<").replace("<ppo", "<").replace("<sft", "<")
        assert not any(name in everything for name in NAMES)
        order = [name_of(of, place.a) for place in question.places]
        places = [texts(question)[1].index(f"<{name} ") for name in order]
        assert places == sorted(places)
        assert [place.a_first for place in question.places] == [True, False, False]
        orders.append(tuple(order))
    assert set(orders) == set(itertools.permutations(NAMES))
    assert [question.request for question in ask("multi", of)] == [question.request for question in asked]
    assert [question.request for question in ask("multi", of, seed=1)] != [question.request for question in asked]


def test_pairwise_asks_every_pair_in_both_orders_and_turns_verdicts_round() -> None:
    of = inputs(turns=2)
    asked = ask("pairwise", of)
    assert len(asked) == 3 * 2 * 2
    for question in asked:
        [place] = question.places
        shown = texts(question)[1]
        first = "a" if shown.index(f"<{name_of(of, place.a)} ") < shown.index(f"<{name_of(of, place.b)} ") else "b"
        assert place.a_first is (first == "a")
        [outcome] = outcomes(question, Completion("[[A]]"))
        assert outcome.value == (1.0 if place.a_first else 0.0)
    assert len(ask("pairwise", of, both_orders=False)) == 3 * 2
    against = {name_of(of, question.places[0].b) for question in ask("pairwise", of, baseline="sft")}
    assert against == {"sft"}


def test_alpaca_eval_asks_once_in_an_order_that_is_drawn_and_reads_the_weights() -> None:
    of = inputs(prompts=40)
    asked = ask("alpaca_eval", of, baseline="sft")
    assert len(asked) == 40 * 2
    shown_first = {question.places[0].a_first for question in asked}
    assert shown_first == {True, False}
    weights = {"content": [{"top_logprobs": [{"token": "M", "logprob": -0.1}, {"token": "m", "logprob": -2.4}]}]}
    for question in asked:
        assert question.request.top_logprobs == 5
        [place] = question.places
        first = texts(question)[1].index(f"<{name_of(of, place.a)} ") < texts(question)[1].index("<sft ")
        assert place.a_first is first
        [outcome] = outcomes(question, Completion("M", logprobs=weights))
        assert outcome.value == pytest.approx(0.0911 if first else 0.9089, abs=1e-3)
        [outcome] = outcomes(question, Completion("m"))
        assert outcome.value == (1.0 if first else 0.0)


def test_arena_hard_asks_in_both_orders_and_weighs_clear_verdicts() -> None:
    of = inputs()
    asked = ask("arena_hard", of, baseline="sft")
    assert [(name_of(of, q.places[0].a), q.places[0].a_first) for q in asked] == [
        ("dt", False),
        ("dt", True),
        ("ppo", False),
        ("ppo", True),
    ]
    verdicts = [outcomes(question, Completion("My final verdict is: [[A>>B]]"))[0] for question in asked[:2]]
    assert [(verdict.value, verdict.weight) for verdict in verdicts] == [(0.0, 3), (1.0, 3)]


def test_benchmarks_of_one_turn_judge_the_last_of_a_conversation() -> None:
    for style in ("alpaca_eval", "arena_hard"):
        [question, *_] = ask(style, inputs(turns=2, names=("dt", "sft")), baseline="sft")
        assert question.turn == 2
        assert all(text in texts(question)[1] for text in ("Q0.1", "<dt 0.1>", "Q0.2", "<dt 0.2>", "<sft 0.2>"))


def test_what_lacks_an_answer_is_left_out_and_counted() -> None:
    of = inputs(prompts=2, missing=("ppo", 1))
    assert len(ask("single", of)) == 5
    assert len(ask("pairwise", of)) == 3 * 2 + 1 * 2
    assert [len(question.places) for question in ask("multi", of)] == [3, 2]
    assert styles.left_out(of) == 1


def test_ones_own_criteria_reach_every_judge() -> None:
    for style in ("multi", "single", "pairwise", "alpaca_eval", "arena_hard"):
        [question, *_] = ask(style, inputs(), baseline="sft", criteria="how well it rhymes")
        assert "how well it rhymes" in texts(question)[0]


def test_the_identity_of_a_request_is_who_is_asked_and_what() -> None:
    [one, other, *_] = (question.request for question in ask("single", inputs()))
    assert key_of("http://a/v1", one) == key_of("http://a/v1", replace(one))
    different = {
        key_of("http://a/v1", one),
        key_of("http://b/v1", one),
        key_of("http://a/v1", other),
        key_of("http://a/v1", replace(one, temperature=1.0)),
    }
    assert len(different) == 4


def test_answers_that_an_earlier_release_paid_for_are_found() -> None:
    request = request_of("gpt-x", ("system", "user"), temperature=0.0, max_tokens=100)
    assert key_of("http://a/v1", request) == "a41469b50e86336ad0caabce82c9ff96e4931157c754b84b721002faeb8f257e"
    repeated = key_of("http://a/v1", replace(request, top_logprobs=5), repeat=True)
    assert repeated == "4283df3dcf6ddcbe609b9e4af84404398bbced988e285245ae28e858f351585c"


def test_an_answer_without_verdict_is_refused_or_unparsed_and_says_why() -> None:
    [question, *_] = ask("single", inputs())
    cases = [
        (Completion("I'm sorry, but I can't do that."), "refused", "the judge declined"),
        (Completion("", "content_filter"), "refused", "the judge declined"),
        (Completion("Let me see", "length"), "unparsed", "no verdict before the token limit"),
        (Completion("Fine words"), "unparsed", "no verdict in the answer"),
        (Completion(" "), "unparsed", "an empty answer"),
        (Completion("I'm sorry to say: [[2]]"), "ok", None),
    ]
    for answer, status, detail in cases:
        [outcome] = outcomes(question, answer)
        assert (outcome.status, outcome.detail) == (status, detail)
