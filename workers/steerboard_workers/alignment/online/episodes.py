"""Rollouts of several turns: the policy answers, an environment answers that, and the policy answers again.

The ids that were sampled are those that are learned: an observation is tokenised between the end of an
answer and the beginning of the next, as the template writes it there, and no answer is ever tokenised again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from steerboard_contracts.errors import BadInput
from steerboard_contracts.online.environments import EnvironmentConfig, EpisodicConfig
from steerboard_contracts.online.reward_access import RewardAccess
from steerboard_contracts.samples import sample_problems
from steerboard_contracts.turns import SamplePrompt
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.online.environment_protocol import Call, EnvironmentFailed, Step
from steerboard_workers.alignment.online.outside import environment_of, from_main
from steerboard_workers.alignment.online.rows import RowTexts
from steerboard_workers.alignment.rendering.render import Renderer, answer_room
from steerboard_workers.alignment.rollouts import LivePolicy, Rollout, TurnOfRollout
from steerboard_workers.phases import Phases

# Turns of one sampling draw by other random numbers: the number of the turn is above those of all steps.
_TURN = 1 << 32
_SEED_BITS = (1 << 53) - 1  # JSON holds as many exactly everywhere
_PROMPT: TypeAdapter[list[Any]] = TypeAdapter(SamplePrompt)

Groups = list[list[Rollout]]
Messages = list[dict[str, Any]]


@dataclass
class _Episode:
    """A rollout under way. `messages`: the conversation for the template; `turns` have what was sampled so far, of
    which `pieces` are the ids and log-probs."""

    key: int
    row: dict[str, Any]
    prompt: Example
    messages: Messages
    turns: list[TurnOfRollout] = field(default_factory=list)
    pieces: list[Rollout] = field(default_factory=list)
    cut: bool = False
    ended: bool = False
    lost: bool = False

    @property
    def context(self) -> Example:
        """The ids that the next answer follows."""
        pieces = [self.prompt.prompt]
        for piece, turn in zip(self.pieces, self.turns, strict=True):
            pieces += [piece.ids, turn.after]
        return replace(self.prompt, prompt=np.concatenate(pieces))

    def call(self) -> Call:
        return Call(self.key, self.row, [piece.text for piece in self.pieces])

    def rollout(self, n: int) -> Rollout:
        last = self.pieces[-1]
        return Rollout(
            row=last.row,
            n=n,
            ids=np.concatenate([piece.ids for piece in self.pieces]),
            log_probs=np.concatenate([piece.log_probs for piece in self.pieces]),
            text=last.text,
            finished=last.finished and not self.cut,
            turns=tuple(self.turns),
            ended=self.ended,
            lost=self.lost,
            routes=last.routes if len(self.pieces) == 1 else None,
        )


class Episodes:
    """The rollouts of one run. The environment is opened at once, before anything is sampled."""

    def __init__(
        self,
        config: EpisodicConfig,
        environment: EnvironmentConfig,
        texts: RowTexts,
        renderer: Renderer,
        phases: Phases,
        access: RewardAccess,
    ) -> None:
        """Raises what `environment_of` does."""
        self._config, self._of, self._texts = config, environment, texts
        self._renderer, self._phases = renderer, phases
        self._environment = environment_of(environment, access)
        self._room = answer_room(renderer.max_length, config.max_new_tokens)
        window = renderer.max_length
        self._most = window if environment.max_tokens is None else environment.max_tokens

    def sample(
        self, policy: LivePolicy, step: int, prompts: Sequence[Example], *, seeds: int, answers: int, temperature: float
    ) -> tuple[list[Example], Groups]:
        """(prompts as the environment has them, `answers` rollouts to each). The environment draws by `seeds` and the
        row.

        Raises `EnvironmentFailed`, `EnvironmentServerFailed`, and `BadInput` for prompts of the environment that leave
        no room.
        """
        try:
            return self._sampled(policy, step, prompts, seeds, answers, temperature)
        finally:
            self._environment.end()

    def _sampled(
        self, policy: LivePolicy, step: int, prompts: Sequence[Example], seeds: int, answers: int, temperature: float
    ) -> tuple[list[Example], Groups]:
        asked = [self._begun(place, prompt, seeds, answers) for place, prompt in enumerate(prompts)]
        given = self._step([call for group in asked for call in group])
        episodes: list[list[_Episode]] = []
        for place, prompt in enumerate(prompts):
            steps = given[place * answers : (place + 1) * answers]
            opened, messages = self._opened(prompt, steps)
            episodes.append(
                [
                    _Episode(call.key, dict(call.row), opened, list(messages), lost=step.lost)
                    for call, step in zip(asked[place], steps, strict=True)
                ]
            )
        how: dict[str, Any] = {"temperature": temperature, "max_new_tokens": self._config.max_new_tokens}
        opened_prompts = [group[0].prompt for group in episodes]
        drawn = policy.sample(step, opened_prompts, answers=answers, **how)
        live = [episode for group in episodes for episode in group]
        pieces = [piece for group in drawn for piece in group]
        for turn in range(1, self._of.max_turns + 1):
            live = self._turn(live, pieces, turn)
            if not live:
                break
            contexts = [episode.context for episode in live]
            pieces = [piece for (piece,) in policy.sample(step + turn * _TURN, contexts, answers=1, **how)]
        return opened_prompts, [[episode.rollout(n) for n, episode in enumerate(group)] for group in episodes]

    def _turn(self, live: Sequence[_Episode], pieces: Sequence[Rollout], turn: int) -> list[_Episode]:
        """The rollouts that have another turn after this one, whose answers are `pieces`."""
        for episode, piece in zip(live, pieces, strict=True):
            episode.pieces.append(piece)
        heard = [episode for episode in live if not episode.lost]
        steps = iter(self._step([episode.call() for episode in heard]))
        going = []
        for episode in live:
            step = Step(lost=True) if episode.lost else next(steps)
            piece = episode.pieces[-1]
            own = TurnOfRollout(len(piece.ids), piece.text, step.reward, observation=tuple(step.observation))
            episode.turns.append(own)
            episode.ended, episode.lost = step.done, step.lost
            if step.done or step.lost or not piece.finished or turn == self._of.max_turns:
                continue
            after = self._after(episode, step)
            used = len(episode.context.prompt) + len(after)
            if used >= self._renderer.max_length or used - len(episode.prompt.prompt) >= self._most:
                episode.cut = True
                continue
            episode.turns[-1] = replace(own, after=after)
            going.append(episode)
        return going

    def _after(self, episode: _Episode, step: Step) -> np.ndarray:
        said = {"role": "assistant", "content": episode.pieces[-1].text}
        at = len(episode.messages)
        episode.messages += [said, *step.observation]
        return np.array(self._renderer.between_ids(episode.messages, at), dtype=np.int32)

    def _begun(self, place: int, prompt: Example, seeds: int, answers: int) -> list[Call]:
        """All rollouts of a row begin alike."""
        row = {
            "row": prompt.row,
            "prompt": self._texts.prompts[prompt.row],
            "reference": self._texts.references.get(prompt.row),
            "seed": _seed(self._config.seed, seeds, prompt.row),
        }
        return [Call(place * answers + n, row, ()) for n in range(answers)]

    def _opened(self, prompt: Example, steps: Sequence[Step]) -> tuple[Example, Messages]:
        """(the prompt, its messages), where the environment begins with some of its own."""
        begun = [list(step.observation) for step in steps if not step.lost]
        if not begun or not begun[0]:
            given = self._texts.prompts[prompt.row]
            return prompt, given if isinstance(given, list) else [{"role": "user", "content": given}]
        if any(messages != begun[0] for messages in begun):
            raise EnvironmentFailed(
                f"reset returned two different prompts for row {prompt.row}, whose rollouts are compared",
                hint="Draw them by row['seed'], which all rollouts of a row share.",
            )
        try:
            messages = [turn.model_dump(exclude_none=True) for turn in _PROMPT.validate_python(begun[0])]
        except ValidationError as error:
            raise EnvironmentFailed(
                f"reset returned no prompt for row {prompt.row}: {sample_problems(error)}"
            ) from None
        (group,) = self._renderer.render_prompts([messages], None, self._room)
        if group is None:
            raise BadInput(
                f"the environment's prompt of row {prompt.row} leaves no room for an answer of {self._room} tokens",
                code="bad_config",
                hint="Lower max_new_tokens, or begin with shorter prompts.",
            )
        return Example.of(prompt.row, group), messages

    def _step(self, calls: Sequence[Call]) -> list[Step]:
        most_lost = int(self._config.max_unscored * len(calls))
        with self._phases.measure("score"):
            return from_main(lambda: self._environment.step(calls, most_lost))


def _seed(*parts: int) -> int:
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") & _SEED_BITS


def turn_metrics(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """`turns` of a rollout on average, `ended_by_environment`, `environment_tokens` a rollout, and `reward_turn_K` of
    those that had a turn K with a reward."""
    by_turn: dict[int, list[float]] = {}
    for rollout in rollouts:
        for number, turn in enumerate(rollout.turns, 1):
            if turn.reward is not None:
                by_turn.setdefault(number, []).append(turn.reward)
    observed = [sum(len(turn.after) for turn in rollout.turns) for rollout in rollouts]
    return {
        "turns": float(np.mean([len(rollout.turns) for rollout in rollouts])),
        "ended_by_environment": float(np.mean([rollout.ended for rollout in rollouts])),
        "environment_tokens": float(np.mean(observed)),
        **{f"reward_turn_{number}": float(np.mean(given)) for number, given in sorted(by_turn.items())},
    }
