"""Divergences of whole distributions: their values and gradients, however the rows are cut."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from steerboard_workers.alignment.divergence import Comparison, compare, read
from steerboard_workers.alignment.head import chunks

BETAS = [0.0, 0.1, 0.5, 0.9, 1.0]


def pair(rows: int = 7, vocabulary: int = 11) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    student, teacher = (3 * torch.randn(rows, vocabulary, generator=draw) for _ in range(2))
    return student.requires_grad_(), teacher, torch.randint(0, vocabulary, (rows,), generator=draw)


def plain(student: Tensor, teacher: Tensor, beta: float, temperature: float) -> Tensor:
    """Eq. 1 of the paper in float64, (N,), as it is written there."""
    q, p = ((logits.double() / temperature).softmax(-1) for logits in (student, teacher))

    def kl(a: Tensor, b: Tensor) -> Tensor:
        return (a * (a / b).log()).sum(-1)

    mixture = beta * p + (1 - beta) * q
    if beta in (0, 1):
        return kl(p, q) if beta == 0 else kl(q, p)
    return beta * kl(p, mixture) + (1 - beta) * kl(q, mixture)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_divergences_and_their_gradients_are_those_of_the_equation(beta, temperature):
    student, teacher, labels = pair()
    weights = torch.linspace(0.2, 1.4, len(labels))
    expected = plain(student, teacher, beta, temperature)
    (gradient,) = torch.autograd.grad((weights * expected).sum(), student)
    compared = read(student, teacher, labels, beta, temperature)
    assert_close(compared.divergences, expected.float())
    (ours,) = torch.autograd.grad((weights * compared.divergences).sum(), student)
    assert_close(ours, gradient.float(), rtol=1e-4, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("temperature", [1.0, 0.9])
def test_divergences_and_their_gradients_are_those_of_trl(beta, temperature):
    trl = pytest.importorskip("trl.experimental.gkd")
    student, teacher, labels = pair()
    loss = trl.GKDTrainer.generalized_jsd_loss(
        student[None], teacher[None], labels[None], beta=beta, temperature=temperature
    )
    (expected,) = torch.autograd.grad(loss, student)
    ours = read(student, teacher, labels, beta, temperature).divergences.mean()
    assert_close(ours, loss)
    assert_close(torch.autograd.grad(ours, student)[0], expected, rtol=1e-4, atol=1e-6)


def test_log_probs_entropies_and_agreement_are_read_in_the_same_pass():
    student, teacher, labels = pair()
    labels[0] = student[0].argmax()
    compared = read(student, teacher, labels, 0.5, 2.0)
    log_q, log_p = (student / 2).log_softmax(-1), (teacher / 2).log_softmax(-1)
    picked = log_q.gather(1, labels[:, None]).squeeze(1)
    assert_close(compared.log_probs, picked)
    assert_close(compared.entropies, -(log_q.exp() * log_q).sum(-1))
    assert_close(compared.teacher_entropies, -(log_p.exp() * log_p).sum(-1))
    assert compared.correct.tolist() == (labels == log_q.argmax(-1)).tolist()
    assert compared.agrees.tolist() == (log_q.argmax(-1) == log_p.argmax(-1)).tolist()
    both = (compared.log_probs - 0.3 * compared.divergences).sum()
    (ours,) = torch.autograd.grad(both, student)
    (expected,) = torch.autograd.grad((picked - 0.3 * plain(student, teacher, 0.5, 2.0)).sum(), student)
    assert_close(ours, expected.float(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("extra", [3, -3])
def test_tokens_that_only_pad_one_of_the_vocabularies_are_left_out(extra):
    student, teacher, labels = pair()
    padding = torch.full((len(labels), abs(extra)), 9.0)
    wider = [torch.cat([student, padding], 1), teacher] if extra < 0 else [student, torch.cat([teacher, padding], 1)]
    padded, expected = read(*wider, labels, 1.0), read(student, teacher, labels, 1.0)
    assert_close(padded.divergences, expected.divergences)


@pytest.mark.parametrize("rows", [1, 3])
def test_chunks_of_rows_change_nothing_and_never_make_all_logits(rows):
    draw = torch.Generator().manual_seed(1)
    head, of_teacher = torch.nn.Linear(5, 11, bias=False), torch.nn.Linear(4, 11)
    states, theirs = (torch.randn(7, width, generator=draw).requires_grad_() for width in (5, 4))
    labels = torch.randint(0, 11, (7,), generator=draw)
    made: list[int] = []

    def logits(some: Tensor) -> Tensor:
        made.append(len(some))
        return head(some)

    def values_and_gradients(rows: int) -> tuple[Tensor, ...]:
        with_ = Comparison(theirs, of_teacher, 0.5)
        compared = compare(logits, states, labels, with_, 1.0, chunks(7, rows, False, states.device))
        loss = (compared.divergences - compared.log_probs).sum()
        return (*compared, *torch.autograd.grad(loss, [states, head.weight]))

    whole = values_and_gradients(7)
    assert made == [7]
    made.clear()
    for ours, expected in zip(values_and_gradients(rows), whole, strict=True):
        assert_close(ours, expected)
    assert max(made) == rows
    # Nothing reaches the teacher.
    assert theirs.grad is None
    assert of_teacher.weight.grad is None
