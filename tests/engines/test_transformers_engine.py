"""The engine's answers against transformers' own generate, and against itself under other batchings."""

from __future__ import annotations

import pytest
import torch
from engine_prompts import PROMPTS
from transformers import GPT2Config, GPT2LMHeadModel

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.errors import BadInput
from steerboard_workers.engines.protocol import Request
from steerboard_workers.engines.transformers_engine import TransformersEngine

GREEDY = Decoding(max_new_tokens=40)
SAMPLED = Decoding(temperature=0.9, top_p=0.95, top_k=50, n=3, max_new_tokens=30)


def requests(count: int = 40) -> list[Request]:
    return [Request(row, [{"role": "user", "content": p}]) for row, p in enumerate(PROMPTS[:count])]


def answers(completions):
    return {(c.row, c.n): (c.text, tuple(c.token_ids), c.finished) for c in completions}


def test_greedy_equals_transformers_generate_token_for_token(make_engine, model, renderer, tokenizer):
    ours = {c.row: c for c in make_engine().generate(requests(), GREEDY, seed=0)}
    ends = set(model.generation_config.eos_token_id)
    lengths = set()
    for request in requests():
        ids = torch.tensor([renderer.prompt_ids(request.prompt)])
        theirs = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=40, do_sample=False)
        theirs = theirs[0, ids.shape[1] :].tolist()
        finished = theirs[-1] in ends
        assert ours[request.row].token_ids == (theirs[:-1] if finished else theirs)
        assert ours[request.row].finished == finished
        lengths.add(len(theirs))
    assert len(lengths) > 4, "the test model must end its answers at different lengths"


def test_greedy_equals_generate_with_absolute_positions(tokenizer, renderer):
    """Rotary positions forgive a shift by padding; learned ones do not."""
    torch.manual_seed(2)
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=160, n_embd=32, n_layer=2, n_head=2)
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6 if parameter.dim() == 2 else 1)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    engine = TransformersEngine(model, renderer, torch.device("cpu"), 8)
    for completion in engine.generate(requests(8), Decoding(max_new_tokens=12), seed=0):
        ids = torch.tensor([renderer.prompt_ids(requests(8)[completion.row].prompt)])
        theirs = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False)
        assert completion.token_ids == theirs[0, ids.shape[1] :].tolist()[: completion.tokens]
        assert completion.tokens == 12 or completion.finished


def test_batch_size_and_order_change_no_sampled_answer(make_engine):
    alone = answers(make_engine(1).generate(requests(12), SAMPLED, seed=7))
    together = answers(make_engine(64).generate(list(reversed(requests(12))), SAMPLED, seed=7))
    assert alone == together
    assert len(alone) == 36


def test_shards_together_give_the_answers_of_one_run(make_engine):
    whole = answers(make_engine(8).generate(requests(12), SAMPLED, seed=7))
    parts = {}
    for shard in range(3):
        parts |= answers(make_engine(5).generate(requests(12)[shard::3], SAMPLED, seed=7))
    assert parts == whole


def test_samples_of_one_prompt_differ_and_another_seed_differs(make_engine):
    first = answers(make_engine().generate(requests(6), SAMPLED, seed=1))
    other = answers(make_engine().generate(requests(6), SAMPLED, seed=2))
    assert len({first[(0, n)] for n in range(3)}) == 3
    assert first != other


def test_stop_string_ends_the_answer_before_it(make_engine):
    plain = answers(make_engine().generate(requests(), GREEDY, seed=0))
    text = next(t for t, _, _ in plain.values() if len(t) > 12)
    stop = text[6:9]
    stopped = answers(make_engine().generate(requests(), Decoding(max_new_tokens=40, stop=[stop]), seed=0))
    for key, (before, _, finished) in plain.items():
        assert stopped[key][0] == before.split(stop)[0]
        assert stopped[key][2] == (finished or stop in before)


def test_limit_cuts_an_answer_and_says_so(make_engine):
    for completion in make_engine().generate(requests(), Decoding(max_new_tokens=3), seed=0):
        assert completion.tokens == 3 or completion.finished
    everything = list(make_engine().generate(requests(), Decoding(max_new_tokens=3), seed=0))
    assert any(not c.finished for c in everything)


def test_a_prompt_longer_than_the_window_is_cut_and_its_answer_fits(make_engine):
    long = Request(0, [{"role": "user", "content": " ".join(PROMPTS)}])
    (completion,) = make_engine().generate([long], Decoding(max_new_tokens=50), seed=0)
    assert 0 < completion.tokens <= 50


def test_without_a_limit_an_answer_may_take_half_of_a_small_window(make_engine):
    everything = list(make_engine().generate(requests(), Decoding(), seed=0))
    assert max(c.tokens for c in everything) <= 80
    assert all(c.finished or c.tokens == 80 for c in everything)


def test_new_tokens_that_fill_the_window_are_refused(make_engine):
    with pytest.raises(BadInput) as caught:
        list(make_engine().generate(requests(1), Decoding(max_new_tokens=160), seed=0))
    assert caught.value.code == "too_many_new_tokens"


@pytest.mark.parametrize("stop", [[], ["ing", "e to"]], ids=["to-the-end", "to-a-stop-string"])
def test_streamed_pieces_add_up_to_the_answers(make_engine, stop):
    decoding = Decoding(max_new_tokens=40, stop=stop)
    pieces: dict[tuple[int, int], str] = {}

    def collect(delta):
        pieces[(delta.row, delta.n)] = pieces.get((delta.row, delta.n), "") + delta.text

    done = answers(make_engine().generate(requests(), decoding, seed=0, on_delta=collect))
    assert {key: text for key, text in pieces.items() if text} == {
        key: text for key, (text, _, _) in done.items() if text
    }
