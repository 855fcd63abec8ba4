"""Answers while they are written: how many tokens each may have, what ends it, what its text is. Every engine that
picks tokens here uses this, so that all of them cut, stop and spell alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from steerboard_contracts.decoding import Decoding, no_guidance
from steerboard_workers.alignment.rendering.render import Renderer, UnrenderableRows, answer_room
from steerboard_workers.engines.protocol import Completion, Delta, Request


@dataclass(frozen=True)
class TokenisedRequest:
    """A request as token ids. `limit`: how many tokens each of its answers may have. `against`: its prompt without the
    condition, where answers are guided."""

    request: Request
    prompt: list[int]
    limit: int
    against: list[int] | None = None


@dataclass
class Answer:
    """One answer being written. `prompt_tokens`: of the prompt that it answers."""

    row: int
    n: int
    limit: int
    ids: list[int] = field(default_factory=list)
    shown: str = ""
    prompt_tokens: int | None = None


def asked(renderer: Renderer, requests: Sequence[Request], decoding: Decoding) -> list[TokenisedRequest]:
    """The requests as token ids, the longest first, so that memory fails early or never. Prompts that leave no room
    are cut from the left. Equal lengths keep the order of their rows.

    Raises `BadInput` (`too_many_new_tokens`) when `max_new_tokens` alone fills the model's window, or (`no_guidance`)
    when answers are to be guided and a request has no condition, and `UnrenderableRows`.
    """
    window = renderer.max_length
    most = answer_room(window, decoding.max_new_tokens)
    written = [r.score_text for r in requests]
    if decoding.guided and None in written:
        raise no_guidance(decoding.guidance, "of a model that takes no scores")
    against: list[list[int]] | None = None
    try:
        prompts = renderer.prompts_ids([r.prompt for r in requests], written, room=most)
        if decoding.guided:
            against = renderer.prompts_ids([r.prompt for r in requests], [""] * len(requests), room=most)
    except UnrenderableRows as error:
        rows = {requests[place].row: fault for place, fault in error.faults.items()}
        raise UnrenderableRows(rows, len(requests)) from error
    order = sorted(range(len(requests)), key=lambda i: -len(prompts[i]))
    return [
        TokenisedRequest(requests[i], prompts[i], min(most, window - len(prompts[i])), against[i] if against else None)
        for i in order
    ]


class Writer:
    """Collects tokens into answers and reports when one has ended."""

    def __init__(
        self,
        renderer: Renderer,
        stop_ids: frozenset[int],
        stops: Sequence[str],
        on_delta: Callable[[Delta], None] | None,
    ) -> None:
        self._renderer = renderer
        self._stop_ids = stop_ids
        self._stops = stops
        self._on_delta = on_delta

    def take(self, answer: Answer, tokens: Iterable[int]) -> Completion | None:
        """Add tokens to an answer, one after the other; its completion when one of them ends it."""
        completion = None
        for token in tokens:
            completion = self._take(answer, token)
            if completion is not None:
                break
        if self._on_delta is not None:
            self._show(answer, completion, self._on_delta)
        return completion

    def _take(self, answer: Answer, token: int) -> Completion | None:
        if token in self._stop_ids:
            return _completion(answer, self._renderer.response_text(answer.ids), finished=True, end=token)
        answer.ids.append(token)
        if self._stops and self._may_stop(answer):
            text = self._renderer.response_text(answer.ids)
            cut = min((at for at in (text.find(s) for s in self._stops) if at >= 0), default=-1)
            if cut >= 0:
                return _completion(answer, text[:cut], finished=True)
        if len(answer.ids) >= answer.limit:
            return _completion(answer, self._renderer.response_text(answer.ids), finished=False)
        return None

    def _may_stop(self, answer: Answer) -> bool:
        """Whether the last tokens hold a stop string: a token has at least one byte, so this many suffice."""
        window = max(len(s.encode()) for s in self._stops) + 4
        tail = self._renderer.tokenizer.decode(answer.ids[-window:], skip_special_tokens=True)
        return any(s in tail for s in self._stops)

    def _show(self, answer: Answer, completion: Completion | None, on_delta: Callable[[Delta], None]) -> None:
        """Hand out what is new. A half-written character (U+FFFD) waits for its other bytes, and what may be the
        beginning of a stop string for its end."""
        text = self._renderer.response_text(answer.ids) if completion is None else completion.text
        if completion is None:
            if text.endswith("\ufffd"):
                return
            text = text[: len(text) - self._begun_stop(text)]
        if completion is not None or len(text) > len(answer.shown):
            on_delta(Delta(answer.row, answer.n, text[len(answer.shown) :], completion))
            answer.shown = text

    def _begun_stop(self, text: str) -> int:
        """How many characters at the end of `text` a stop string begins with."""
        longest = max((len(stop) - 1 for stop in self._stops), default=0)
        ends = range(min(longest, len(text)), 0, -1)
        return next((n for n in ends if any(stop.startswith(text[-n:]) for stop in self._stops)), 0)


def _completion(answer: Answer, text: str, finished: bool, end: int | None = None) -> Completion:
    return Completion(answer.row, answer.n, text, answer.ids, finished, end, answer.prompt_tokens)


def end_ids(renderer: Renderer, own: int | list[int] | None) -> frozenset[int]:
    """The tokens that end an answer: the renderer's and the model's `own` (`eos_token_id` of its generation config)."""
    ends = {*renderer.stop_ids, *(own if isinstance(own, list) else [own] if own is not None else [])}
    return frozenset(int(i) for i in ends)
