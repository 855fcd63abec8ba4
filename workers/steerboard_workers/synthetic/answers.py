"""Answers of clearly different quality to a synthetic prompt, best kinds first."""

from __future__ import annotations

import random
from typing import Literal, get_args

from steerboard_workers.synthetic.topics import TOPICS, Situation, Topic

AnswerKind = Literal["friendly", "dry", "brief", "short", "question", "terse", "filler", "off_topic"]
KINDS: tuple[AnswerKind, ...] = get_args(AnswerKind)

OPENINGS: tuple[str, ...] = (
    "Lovely question!",
    "Thanks for asking!",
    "Happy to help!",
    "Great idea, you will enjoy this!",
)
CLOSINGS: tuple[str, ...] = (
    "Good luck, and have fun!",
    "Let me know how it goes!",
    "Feel free to ask me anything else!",
    "You can do this, I believe in you!",
)
TERSE: tuple[str, ...] = ("It takes some practice.", "That depends.", "Just try it.", "There are many ways.")
FILLER: tuple[str, ...] = (
    "Well, people ask all sorts of things.",
    "Interesting, I suppose.",
    "Hard to say, really.",
    "Some manage it and some never do.",
)

NEIGHBOUR = 0.85


def write_answer(kind: AnswerKind, topic: Topic, situation: Situation, rng: random.Random) -> str:
    """One answer of the given kind to a question about `topic` in `situation`."""
    if kind == "off_topic":
        return write_off_topic(rng.choice(("dry", "brief", "short")), topic, situation, rng)
    if kind == "friendly":
        return f"{rng.choice(OPENINGS)} {_list(topic, situation, rng, rng.choice((4, 5, 5)))} {rng.choice(CLOSINGS)}"
    if kind == "dry":
        return _list(topic, situation if rng.random() < 0.5 else Situation("", ""), rng, rng.choice((3, 4)))
    if kind == "brief":
        first, second = _steps(topic, rng, 2)
        return f"{lead(topic)} {first} {second}"
    if kind == "short":
        return f"{lead(topic)} {_steps(topic, rng, 1)[0]}"
    if kind == "question":
        return topic.question
    return rng.choice(TERSE if kind == "terse" else FILLER)


def write_off_topic(form: AnswerKind, topic: Topic, situation: Situation, rng: random.Random) -> str:
    """A well written answer of the given form to a question about another topic, mostly always the same one: a
    confused writer slips to a neighbouring subject, and greedy decoding must be able to show that."""
    place = TOPICS.index(topic)
    step = 1 if rng.random() < NEIGHBOUR else rng.randrange(1, len(TOPICS))
    other = TOPICS[(place + step) % len(TOPICS)]
    return write_answer(form, other, situation, rng)


def _steps(topic: Topic, rng: random.Random, count: int) -> list[str]:
    chosen = sorted(rng.sample(range(len(topic.steps)), count))
    return [topic.steps[i] for i in chosen]


def _list(topic: Topic, situation: Situation, rng: random.Random, count: int) -> str:
    numbered = " ".join(f"{i}. {step}" for i, step in enumerate(_steps(topic, rng, count), start=1))
    aside = f" {situation.reply}" if situation.reply else ""
    return f"{list_lead(topic)} {numbered}{aside}"


def lead(topic: Topic) -> str:
    """How an answer of one or two facts begins."""
    return f"For {topic.noun}, you could try this:"


def list_lead(topic: Topic) -> str:
    return f"Here are some steps for {topic.noun}:"
