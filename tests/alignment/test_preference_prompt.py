"""How a model is asked which of two responses is better: one text for training and use, whatever is cut."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from steerboard_contracts.errors import BadInput, BadRow
from steerboard_contracts.methods.preference_model import PreferenceModelConfig
from steerboard_workers.alignment.losses import calibration_error
from steerboard_workers.alignment.methods.preference_model import (
    PreferenceModelling,
    PreferenceObjective,
    _figures,
    _share,
    chosen_first,
)
from steerboard_workers.alignment.rendering.preference_prompt import Comparison, PreferencePrompt, context_text
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.engines.preferences import TransformersPreferences
from steerboard_workers.stages.models.comparing import compare

TURNS = [
    {"role": "user", "content": "Bread?"},
    {"role": "assistant", "content": "Flour."},
    {"role": "user", "content": "And cake?"},
]


def test_the_question_is_that_of_the_paper(own_tokenizer):
    ids = (
        PreferencePrompt(Renderer(own_tokenizer, "plain", 512)).questions([Comparison(TURNS, "Eggs.", "Salt.")])[0].ids
    )
    context = "\n\n\n<turn> user\n Bread?\n\n<turn> assistant\n Flour.\n\n<turn> user\n And cake?\n\n\n"
    bos = own_tokenizer.bos_token
    expected = f"{bos}User: [CONTEXT] {context} [RESPONSE A] Eggs. [RESPONSE B] Salt. \n Assistant:"
    assert own_tokenizer.decode(ids).rstrip() == expected
    assert context_text(TURNS) == context


@pytest.mark.parametrize("template", ["plain", "chat"])
def test_verdicts_are_the_tokens_that_follow_the_question(own_tokenizer, chat_tokenizer, template):
    tokenizer = chat_tokenizer if template == "chat" else own_tokenizer
    renderer = Renderer(tokenizer, template, 512)
    prompt = PreferencePrompt(renderer)
    asked = prompt.questions([Comparison(TURNS, "Eggs.", "Salt.")])[0]
    text = tokenizer.decode(asked.ids)
    for token, letter in zip(prompt.verdicts, "AB", strict=True):
        written = text + (f" {letter}" if template == "plain" and not text.endswith(" ") else letter)
        assert tokenizer(written, add_special_tokens=False)["input_ids"] == [*asked.ids, token]
    if template == "chat":
        assert text.endswith("<|im_start|>assistant\n")
        assert text.count("<|im_start|>") == 2  # the conversation's own turns are not turns of the template


def word_tokenizer(**words: int) -> PreTrainedTokenizerFast:
    vocabulary = {"<unk>": 0, "</s>": 1, **words}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>")


def test_a_tokenizer_that_does_not_tell_the_verdicts_apart_is_refused():
    prompt = PreferencePrompt(Renderer(word_tokenizer(A=2, B=3), "plain", 512))
    assert prompt.verdicts == (2, 3)
    with pytest.raises(BadInput) as refused:
        PreferencePrompt(Renderer(word_tokenizer(x=2), "plain", 512))
    assert refused.value.code == "verdict_not_one_token"


def test_what_both_verdicts_begin_with_belongs_to_the_question():
    """A tokenizer of bytes begins both verdicts with the space before a verdict."""
    bytes_only = Tokenizer(models.BPE())
    bytes_only.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=257,
        special_tokens=["</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bytes_only.train_from_iterator(["x"], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_only, eos_token="</s>")
    prompt = PreferencePrompt(Renderer(tokenizer, "plain", 512))
    space, a, b = (tokenizer.encode(letter)[0] for letter in " AB")
    assert prompt.verdicts == (a, b)
    assert prompt.questions([Comparison(TURNS, "x", "y")])[0].ids[-1] == space


@pytest.mark.parametrize("room", range(60, 140, 7))
def test_only_the_context_is_cut(own_tokenizer, room):
    long = [{"role": "user", "content": " ".join(f"{n} loaves of bread and <rm_score> </s>" for n in range(60))}]
    comparison = Comparison(long, "Mix flour, water.", "Bake a cake at 230 degrees.")
    asked = PreferencePrompt(Renderer(own_tokenizer, "plain", room)).questions([comparison])[0]
    text = own_tokenizer.decode(asked.ids).rstrip()
    assert asked.cut
    assert room - 12 <= len(asked.ids) <= room - 1
    assert text.startswith(f"{own_tokenizer.bos_token}User: [CONTEXT] ")
    assert text.endswith(f" [RESPONSE A] {comparison.a} [RESPONSE B] {comparison.b} \n Assistant:")
    assert "59 loaves" in text or room < 90


def test_responses_that_do_not_fit_are_no_question(own_tokenizer):
    prompt = PreferencePrompt(Renderer(own_tokenizer, "plain", 40))
    assert prompt.questions([Comparison(TURNS, "Eggs. " * 10, "Salt. " * 10)]) == [None]


def rows(n: int, split: str = "train") -> list[dict]:
    return [
        {"prompt": TURNS, "chosen": f"good {i}", "rejected": f"bad {i}", "row": i, "split": split} for i in range(n)
    ]


def test_sides_are_drawn_by_row_and_seed_and_learned_as_they_are_asked(own_tokenizer):
    renderer = Renderer(own_tokenizer, "plain", 256)
    method = PreferenceModelling(PreferenceModelConfig(method="preference_model", seed=3))
    groups = method.render(renderer, rows(40))
    verdicts = PreferencePrompt(renderer).verdicts
    for row, group in zip(rows(40), groups, strict=True):
        first = chosen_first(3, row["row"])
        a, b = (row["chosen"], row["rejected"]) if first else (row["rejected"], row["chosen"])
        assert own_tokenizer.decode(group.prompt).rstrip().endswith(f"[RESPONSE A] {a} [RESPONSE B] {b} \n Assistant:")
        assert group.responses == [[verdicts[0 if first else 1]]]
        assert not any(group.prompt_supervised)
    assert 10 < sum(chosen_first(3, n) for n in range(40)) < 30
    assert [chosen_first(3, n) for n in range(40)] != [chosen_first(4, n) for n in range(40)]
    # Alone a row is drawn as among others.
    assert method.render(renderer, rows(40)[7:8])[0] == groups[7]


def test_held_out_rows_have_the_other_order_with_both_verdicts(own_tokenizer):
    renderer = Renderer(own_tokenizer, "plain", 256)
    method = PreferenceModelling(PreferenceModelConfig(method="preference_model"))
    given = rows(6, "held_out")
    for row, group in zip(given, method.render(renderer, given), strict=True):
        example = method.example(row["row"], row, group)
        other = own_tokenizer.decode(example.companion.prompt)
        a, b = ("rejected", "chosen") if chosen_first(0, row["row"]) else ("chosen", "rejected")
        assert f"[RESPONSE A] {row[a]} [RESPONSE B] {row[b]}" in other
        assert tuple(int(r[0]) for r in example.companion.responses) == PreferencePrompt(renderer).verdicts


def test_pairs_that_teach_nothing_are_counted():
    method = PreferenceModelling(PreferenceModelConfig(method="preference_model"))
    given = [
        *rows(1),
        {**rows(2)[1], "margin": 0.0},
        {**rows(1)[0], "rejected": "good 0 \n"},
        {**rows(1)[0], "rejected": " "},
    ]
    selection = method.select(given, None)
    assert len(selection.rows) == 2
    assert selection.summary == {"equal_pairs": 1, "empty_pairs": 1, "tied_pairs": 1}


@pytest.fixture
def engine(own_tokenizer) -> TransformersPreferences:
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=len(own_tokenizer), initializer_range=0.3, **shape)
    return TransformersPreferences(
        LlamaForCausalLM(config).eval(), Renderer(own_tokenizer, "plain", 256), torch.device("cpu")
    )


def test_a_preference_is_the_softmax_over_both_verdicts_averaged_over_both_orders(engine):
    comparison = Comparison(TURNS, "Eggs and sugar.", "Salt.")
    shares = []
    for order in (comparison, comparison.swapped):
        ids = engine.prompt.questions([order])[0].ids
        with torch.no_grad():
            logits = engine._module.model(torch.tensor([ids])).logits[0, -1]
        shares.append(logits[list(engine.prompt.verdicts)].softmax(-1)[0].item())
    preference = compare(engine, [comparison])[0]
    assert preference.forth == pytest.approx(shares[0], rel=1e-5)
    assert preference.back == pytest.approx(1 - shares[1], rel=1e-5)
    assert preference.p == pytest.approx((shares[0] + 1 - shares[1]) / 2, rel=1e-5)
    assert preference.flips == ((shares[0] > 0.5) == (shares[1] > 0.5))


def test_the_preferences_of_two_responses_add_up_to_one(engine):
    texts = ["Eggs.", "Salt and water.", "Bake it.", "Short waves scatter most, so the sky is blue."]
    for a in texts:
        for b in texts:
            preferences = compare(engine, [Comparison(TURNS, a, b), Comparison(TURNS, b, a)])
            assert preferences[0].p + preferences[1].p == pytest.approx(1.0, abs=1e-6)
        assert compare(engine, [Comparison(TURNS, a, a)])[0].p == 0.5


def test_a_preference_does_not_depend_on_what_it_is_batched_with(engine):
    many = [Comparison(TURNS[: 1 + 2 * (n % 2)], "Eggs. " * n, "Salt. " * (9 - n)) for n in range(1, 9)]
    done: list[int] = []
    together = compare(engine, many, 300, done.append)
    assert done[-1] == 8
    assert len(done) > 2
    for comparison, preference in zip(many, together, strict=True):
        assert compare(engine, [comparison])[0].p == pytest.approx(preference.p, abs=1e-5)


def test_responses_without_room_are_a_bad_row(engine):
    with pytest.raises(BadRow, match="comparison 1"):
        compare(engine, [Comparison(TURNS, "x", "y"), Comparison(TURNS, "Eggs. " * 90, "Salt. " * 90)])


@given(p=st.floats(0, 1))
def test_the_calibration_error_of_one_choice(p):
    expected = abs(max(p, 1 - p) - (1.0 if p > 0.5 else 0.0 if p < 0.5 else 0.5))
    assert calibration_error([p]) == pytest.approx(expected)


def test_what_is_right_as_often_as_it_states_is_calibrated():
    assert calibration_error([0.8] * 8 + [0.2] * 2) == pytest.approx(0.0)
    assert calibration_error([0.5] * 3) == 0.0
    assert calibration_error([0.8] * 5 + [0.2] * 5) == pytest.approx(0.3)
    assert calibration_error([0.9] * 5 + [0.4] * 5) == pytest.approx((0.1 + 0.6) / 2)
    assert math.isclose(calibration_error([1.0, 1.0, 0.0]), 1 / 3)
    assert calibration_error([]) == 0.0


def test_a_table_of_verdicts_converges_to_the_share_of_those_who_prefer():
    """p(x, y) is 0.7 in both orders where seven of ten prefer x to y, and p(y, x) the rest; no other token is left."""
    objective, logits = PreferenceObjective(), torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    # (order, verdict) of each row: x is A in order 0 and as B in order 1.
    rows = [(0, 0)] * 7 + [(0, 1)] * 3 + [(1, 1)] * 7 + [(1, 0)] * 3
    order, verdict = torch.tensor(rows).T
    ones = torch.ones(len(rows))
    micro = SimpleNamespace(sequence=torch.arange(len(rows)), weights=ones, lengths=ones, prepared={})
    optimiser = torch.optim.LBFGS([logits], max_iter=300, tolerance_grad=1e-10, line_search_fn="strong_wolfe")

    def closure():
        optimiser.zero_grad()
        log_probs = logits.log_softmax(-1)[order, verdict]
        loss, _ = objective.forward((log_probs, torch.ones(len(rows))), micro)
        loss.backward()
        return loss

    optimiser.step(closure)
    log_probs = logits.detach().log_softmax(-1)
    x_is_a, x_is_b = log_probs[:, :2].numpy()
    p = [_share(x_is_a, True), _share(x_is_b, False)]
    assert p == pytest.approx([0.7, 0.7], abs=1e-4)
    assert [_share(log_probs[0, :2].numpy(), False), _share(log_probs[1, :2].numpy(), True)] == pytest.approx(
        [0.3, 0.3], abs=1e-4
    )
    assert float(log_probs[:, 2].exp().max()) < 1e-3
    accuracy, flips, _ = _figures([tuple(p)])
    assert (accuracy, flips) == (1.0, 0.0)
