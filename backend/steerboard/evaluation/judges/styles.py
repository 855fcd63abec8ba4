"""Which questions a judge of each style is asked, and in which order the answers are shown. Pure.

An order that is drawn depends on the seed, the prompt and the turn alone, so a resumed or repeated run asks the same.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from steerboard.evaluation.judges import verdict_parser
from steerboard.evaluation.judges.judge_inputs import (
    Answered,
    JudgedEntrant,
    JudgedPrompt,
    JudgeInputs,
    dialogue,
    written_out,
)
from steerboard.evaluation.judges.requests import Place, Question, Reading, request_of
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.evaluation.judges.verdict_parser import Preference
from steerboard.registry.endpoints.chat import ChatRequest, Completion
from steerboard_contracts.judge_prompts import fastchat_prompts, own_prompts
from steerboard_contracts.judge_prompts.own_prompts import Prompt

# AlpacaEval asks for one letter; some endpoints put a space or a quotation mark before it.
_LETTER_TOKENS = 16
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MOST_AT_ONCE = len(_LETTERS)


def questions(style: str, settings: JudgeSettings, model: str, inputs: JudgeInputs) -> Iterator[Question]:
    """All questions to a judge `model`, prompt by prompt. Items whose answers are missing are left out.

    `settings.baseline` and the entrants are known to be there (`judges.create_judge` sees to it).
    """
    ask = _Asking(settings, model, inputs)
    for prompt in inputs.prompts:
        for turn in range(1, prompt.turns + 1):
            match style:
                case "multi":
                    yield from ask.multi(prompt, turn)
                case "single":
                    yield from ask.single(prompt, turn)
                case "rubric":
                    yield from ask.rubric(prompt, turn)
                case "pairwise":
                    yield from ask.pairwise(prompt, turn)
                case "alpaca_eval" if turn == prompt.turns:
                    yield from ask.alpaca_eval(prompt, turn)
                case "arena_hard" if turn == prompt.turns:
                    yield from ask.arena_hard(prompt, turn)


def repeats(settings: JudgeSettings, questions: Iterator[Question]) -> Iterator[Question]:
    """The share of these questions that is asked once more, drawn by the seed."""
    for question in questions:
        places = [(place.a, place.b, place.a_first) for place in question.places]
        if draw(settings.seed, "repeat", question.position, question.turn, places).random() < settings.repeat_share:
            yield replace(question, repeat=True)


def left_out(inputs: JudgeInputs) -> int:
    """Prompts for which an entrant that should be judged has no complete answer."""
    return sum(
        any(inputs.answered(entrant, prompt, prompt.turns) is None for entrant in inputs.entrants)
        for prompt in inputs.prompts
    )


def draw(seed: int, *what: object) -> random.Random:
    """Random numbers of their own for each item."""
    digest = hashlib.sha256("\0".join(str(part) for part in (seed, *what)).encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))


class _Asking:
    def __init__(self, settings: JudgeSettings, model: str, inputs: JudgeInputs) -> None:
        self._settings = settings
        self._model = model
        self._inputs = inputs

    def multi(self, prompt: JudgedPrompt, turn: int) -> Iterator[Question]:
        """One request with everyone's answers, at least two."""
        answering = self._inputs.answers_of(prompt, turn)
        if len(answering) < 2:
            return
        names = [entrant.name for entrant, _ in answering]
        if self._settings.blind:
            draw(self._settings.seed, prompt.position, turn).shuffle(answering)
            names = list(_LETTERS[: len(answering)])
        turns = prompt.questions(turn)
        # Each turn is a separate question here; earlier turns are written out within each answer.
        texts = [answers[0] if turn == 1 else written_out(turns, answers) for _, answers in answering]
        question = turns[0] if turn == 1 else f"{turns[-1]}\n\n(This is turn {turn}; judge the last answer of each.)"
        references = self._references(prompt, turn)
        text = own_prompts.multi(
            question, names, texts, references[-1] if references else None, self._settings.criteria
        )
        places = tuple(Place(entrant.id, None, number == 0) for number, (entrant, _) in enumerate(answering))
        yield self._question(
            prompt, turn, places, text, lambda answer: verdict_parser.named_scores(answer.content, names)
        )

    def single(self, prompt: JudgedPrompt, turn: int) -> Iterator[Question]:
        for entrant, answers in self._inputs.answers_of(prompt, turn):
            text = fastchat_prompts.single(prompt.questions(turn), answers, self._references(prompt, turn))
            places = (Place(entrant.id, None, None),)
            yield self._question(
                prompt, turn, places, self._weighing(text), lambda a: [verdict_parser.rating(a.content)]
            )

    def rubric(self, prompt: JudgedPrompt, turn: int) -> Iterator[Question]:
        """Each answer by itself, with the conversation before it written out."""
        criteria = self._settings.rubric or ()
        asked, weights = [each.question for each in criteria], [each.weight for each in criteria]
        for entrant, answers in self._inputs.answers_of(prompt, turn):
            references = self._references(prompt, turn)
            conversation, answer = dialogue(prompt.questions(turn), answers)
            text = own_prompts.rubric(
                conversation, answer, references[-1] if references else None, asked, self._settings.criteria
            )
            places = (Place(entrant.id, None, None),)
            yield self._question(
                prompt, turn, places, text, lambda a: [verdict_parser.criteria_met(a.content, weights)]
            )

    def pairwise(self, prompt: JudgedPrompt, turn: int) -> Iterator[Question]:
        """Every pair, or every other entrant against the baseline."""
        for (left, ones), (other, others) in self._pairs(prompt, turn):
            for first in self._orders(prompt, turn, left, other):
                shown = (ones, others) if first else (others, ones)
                text = fastchat_prompts.pairwise(prompt.questions(turn), *shown, self._references(prompt, turn))
                places = (Place(left.id, other.id, first),)
                yield self._question(prompt, turn, places, self._weighing(text), _of_a(verdict_parser.pair, first))

    def alpaca_eval(self, prompt: JudgedPrompt, turn: int) -> Iterator[Question]:
        """Each entrant against the baseline, once, in an order that is drawn."""
        for (entrant, ones), (baseline, others) in self._pairs(prompt, turn):
            first = draw(self._settings.seed, prompt.position, turn, entrant.name).random() < 0.5
            turns = prompt.questions(turn)
            question, own = dialogue(turns, ones)
            question_b, rival = dialogue(turns, others)
            if question != question_b:  # earlier turns differ, so they belong to the answers
                question, own, rival = turns[-1], written_out(turns, ones), written_out(turns, others)
            shown = (own, rival) if first else (rival, own)
            text = own_prompts.alpaca_eval(question, *shown, self._settings.criteria)
            request = self._request(text, _LETTER_TOKENS, top_logprobs=5)
            yield Question(prompt.position, turn, (Place(entrant.id, baseline.id, first),), request, _letter(first))

    def arena_hard(self, prompt: JudgedPrompt, turn: int) -> Iterator[Question]:
        """Each entrant against the baseline, the baseline first and then second."""
        for (entrant, ones), (baseline, others) in self._pairs(prompt, turn):
            turns = prompt.questions(turn)
            references = self._references(prompt, turn)
            for first in self._orders(prompt, turn, entrant, baseline):
                texts = [ones[0], others[0]] if turn == 1 else [written_out(turns, ones), written_out(turns, others)]
                shown = texts if first else texts[::-1]
                text = own_prompts.arena_hard(
                    turns[-1], shown[0], shown[1], references[-1] if references else None, self._settings.criteria
                )
                places = (Place(entrant.id, baseline.id, first),)
                yield self._question(prompt, turn, places, text, _of_a(verdict_parser.arena, first))

    def _pairs(self, prompt: JudgedPrompt, turn: int) -> Iterator[tuple[Answered, Answered]]:
        return self._inputs.pairs(prompt, turn, self._settings.baseline)

    def _orders(self, prompt: JudgedPrompt, turn: int, entrant: JudgedEntrant, other: JudgedEntrant) -> Sequence[bool]:
        """Whether `one` is shown first: both ways, or one that is drawn."""
        if self._settings.both_orders:
            return (False, True)
        return (draw(self._settings.seed, prompt.position, turn, entrant.name, other.name).random() < 0.5,)

    def _references(self, prompt: JudgedPrompt, turn: int) -> list[str] | None:
        return prompt.references(turn) if self._settings.reference else None

    def _weighing(self, prompt: Prompt) -> Prompt:
        """FastChat's prompt unchanged, preceded by custom criteria if there are any."""
        system, user = prompt
        criteria = self._settings.criteria
        return (f"{system.rstrip()} In this evaluation, weigh above all: {criteria}" if criteria else system), user

    def _question(
        self, prompt: JudgedPrompt, turn: int, places: tuple[Place, ...], text: Prompt, read: Reading
    ) -> Question:
        return Question(prompt.position, turn, places, self._request(text, self._settings.max_tokens), read)

    def _request(self, text: Prompt, max_tokens: int, top_logprobs: int | None = None) -> ChatRequest:
        return request_of(
            self._model,
            text,
            temperature=self._settings.temperature or 0.0,
            max_tokens=min(max_tokens, self._settings.max_tokens),
            top_logprobs=top_logprobs,
        )


def _of_a(parse: Callable[[str], Preference | None], first: bool) -> Reading:
    """A verdict on what was shown, turned round where entrant a was shown second."""

    def read(answer: Completion) -> list[Preference | None]:
        preference = parse(answer.content)
        return [preference if preference is None or first else Preference(1.0 - preference.value, preference.weight)]

    return read


def _letter(first: bool) -> Reading:
    """`m` is what was shown first; the value is the probability of entrant a."""

    def read(answer: Completion) -> list[float | None]:
        second_better = verdict_parser.weighted_choice(verdict_parser.top_logprobs(answer.logprobs))
        if second_better is None:
            second_better = verdict_parser.worded_choice(answer.content)
        return [second_better if second_better is None else 1.0 - second_better if first else second_better]

    return read
