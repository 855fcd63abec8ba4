"""Classifier-free guidance: against transformers' own, and against itself under other batchings."""

from __future__ import annotations

import pytest
import torch
from engine_prompts import PROMPTS

from steerboard_contracts.decoding import Decoding
from steerboard_contracts.errors import BadInput
from steerboard_workers.engines.protocol import Request
from steerboard_workers.engines.sampling import guided

SCORES = ("5.00", "-5.00", "0.10")
SAMPLED = Decoding(temperature=0.9, n=3, max_new_tokens=100, guidance=2.5)


def requests(count: int, score: str | None = "") -> list[Request]:
    """Behind scores in turn, or all behind `score` where one is given."""
    return [
        Request(row, [{"role": "user", "content": prompt}], score or (SCORES[row % 3] if score == "" else None))
        for row, prompt in enumerate(PROMPTS[:count])
    ]


def ids_of(engine, asked, decoding):
    return {(c.row, c.n): c.token_ids for c in engine.generate(asked, decoding, seed=3)}


@pytest.mark.parametrize("guidance", [0.5, 1.7, 3.0])
def test_greedy_guided_answers_equal_those_of_transformers(make_engine, model, renderer, guidance):
    asked = requests(12)
    ours = ids_of(make_engine(5), asked, Decoding(max_new_tokens=30, guidance=guidance))
    ends = set(model.generation_config.eos_token_id)
    for request in asked:
        ids = torch.tensor([renderer.prompt_ids(request.prompt, request.score_text)])
        without = torch.tensor([renderer.prompt_ids(request.prompt)])
        theirs = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            negative_prompt_ids=without,
            negative_prompt_attention_mask=torch.ones_like(without),
            guidance_scale=guidance,
            max_new_tokens=30,
            do_sample=False,
        )[0, ids.shape[1] :].tolist()
        assert ours[request.row, 0] == (theirs[:-1] if theirs[-1] in ends else theirs)


def test_a_guidance_of_one_gives_the_unguided_answers_and_zero_those_without_a_score(make_engine):
    plain = Decoding(temperature=0.9, n=2, max_new_tokens=30)
    unguided = Decoding(temperature=0.9, n=2, max_new_tokens=30, guidance=1.0)
    none = Decoding(temperature=0.9, n=2, max_new_tokens=30, guidance=0.0)
    unasked = [Request(request.row, request.prompt) for request in requests(12)]
    assert ids_of(make_engine(), requests(12), unguided) == ids_of(make_engine(), requests(12), plain)
    assert ids_of(make_engine(), requests(12), none) == ids_of(make_engine(), unasked, plain)


def test_batch_size_and_order_change_no_guided_answer(make_engine):
    alone = ids_of(make_engine(1), requests(24), SAMPLED)
    assert ids_of(make_engine(64), list(reversed(requests(24))), SAMPLED) == alone
    assert ids_of(make_engine(5), requests(24), SAMPLED) == alone, "rows that ended are given to other prompts"
    assert len(alone) == 72


def test_guided_answers_differ_by_what_is_asked_for_and_how_strongly(make_engine):
    asked = [Request(0, [{"role": "user", "content": PROMPTS[0]}], score) for score in SCORES]
    answers = {
        tuple(ids_of(make_engine(), [request], Decoding(max_new_tokens=30, guidance=guidance))[0, 0])
        for request in asked
        for guidance in (1.0, 6.0)
    }
    assert len(answers) > 2


def test_guidance_of_a_model_without_scores_is_refused(make_engine):
    with pytest.raises(BadInput, match="takes no scores") as refused:
        list(make_engine().generate(requests(2, None), SAMPLED, seed=0))
    assert refused.value.code == "no_guidance"


def test_a_token_that_is_ruled_out_stays_ruled_out():
    ruled_out = torch.tensor([[0.0, -torch.inf, 1.0]])
    assert guided(ruled_out, torch.tensor([[1.0, -torch.inf, 1.0]]), 3.0).tolist() == [[-2.0, -torch.inf, 1.0]]
