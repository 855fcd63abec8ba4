"""The known quality of an answer to a synthetic prompt: a number in [0, 1] from its text alone.

It grades what a model writes freely, not only the writer's own sentences: a step counts when most of its content
words are in one sentence, each step counts once, sentences about other topics and repeated ones pull down.
"""

from __future__ import annotations

import re
from functools import cache

from steerboard_workers.synthetic.answers import CLOSINGS, FILLER, OPENINGS, TERSE, lead, list_lead
from steerboard_workers.synthetic.topics import SITUATIONS, TOPICS, Situation, Topic

FULL_ANSWER_STEPS = 5
STEP_MATCH = 0.7
EMPTY_QUALITY = 0.08
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are at be by do each every for from had has have i in is it its me my of off on one or out so some "
        "that the them then there this to two up until use well what with you your",
    )
)


def quality(prompt: str, response: str) -> float:
    """Known quality of a response. Raises `ValueError` for a prompt that is not of this data.

    0: empty, or answers another question; below 0.1: terse or filler; 0.14: asks back; 0.24 and 0.34: one or two facts;
    0.5: complete but dry; 1: complete, fitted to the asker's situation, and friendly.
    """
    topic, situation = _subject(prompt)
    sentences = _sentences(response)
    if not sentences:
        return 0.0
    told: set[int] = set()
    on_topic = astray = aside = friendly = 0
    for sentence in sentences:
        kind, index = _classify(sentence)
        if kind == "step":
            here = TOPICS[index // 100] is topic
            on_topic += here
            astray += not here
            if here:
                told.add(index % 100)
        elif kind == "question":
            on_topic += TOPICS[index] is topic
            astray += TOPICS[index] is not topic
        elif kind == "situation":
            aside += SITUATIONS[index] is situation
            astray += SITUATIONS[index] is not situation
        elif kind == "noun":
            astray += TOPICS[index] is not topic
        friendly |= {"opening": 1, "closing": 2}.get(kind, 0)
        astray += kind == "unknown"
    fresh = len(set(sentences)) / len(sentences)
    focus = on_topic / (on_topic + astray) if on_topic else 0.0
    coverage = min(len(told), FULL_ANSWER_STEPS) / FULL_ANSWER_STEPS
    if not on_topic:
        # Nothing about the question. An answer to another question is worst: it misleads on top.
        return 0.0 if astray else EMPTY_QUALITY * fresh
    suited = 1.0 if not situation.phrase else float(aside > 0)
    warmth = (0.5 * bool(friendly & 1) + 0.5 * bool(friendly & 2)) * min(1.0, coverage * 2)
    return fresh**2 * focus**2 * (0.14 + 0.48 * coverage + 0.08 * suited * coverage + 0.30 * warmth)


def _subject(prompt: str) -> tuple[Topic, Situation]:
    for topic in TOPICS:
        if topic.verb in prompt:
            rest = prompt.split(topic.verb, 1)[1]
            for situation in SITUATIONS:
                if situation.phrase and rest.startswith(situation.phrase):
                    return topic, situation
            return topic, SITUATIONS[0]
    raise ValueError(f"this is not a prompt of the synthetic demo data: {prompt[:80]!r}")


def _sentences(text: str) -> list[str]:
    """Lower-cased sentences without list numbers; a lead such as `Here are some steps for bread:` stands alone."""
    text = re.sub(r"(?:(?<=\s)|^)\d+[.)]\s*", "\n", text.lower())
    parts = (part.strip(" ,;-") for part in re.split(r"(?<=[.!?:])\s+|\n+", text))
    return [part for part in parts if re.search(r"\w", part)]


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]+", text.lower())) - STOP_WORDS


@cache
def _references() -> list[tuple[str, int, frozenset[str]]]:
    """What a sentence can be, with its content words. A step's index is topic * 100 + place."""
    references: list[tuple[str, int, frozenset[str]]] = []
    for t, topic in enumerate(TOPICS):
        references += [("step", t * 100 + s, _words(step)) for s, step in enumerate(topic.steps)]
        references.append(("question", t, _words(topic.question)))
        references += [("noun", t, _words(text)) for text in (lead(topic), list_lead(topic))]
    references += [("situation", i, _words(s.reply)) for i, s in enumerate(SITUATIONS) if s.reply]
    references += [("opening", i, _words(text)) for i, text in enumerate(OPENINGS)]
    references += [("closing", i, _words(text)) for i, text in enumerate(CLOSINGS)]
    for kind, texts in (("terse", TERSE), ("filler", FILLER)):
        references += [(kind, i, _words(part)) for i, text in enumerate(texts) for part in _sentences(text)]
    return references


@cache
def _classify(sentence: str) -> tuple[str, int]:
    """The reference with the largest overlap (Dice) with the sentence, `unknown` when none comes near."""
    words = _words(sentence)
    best, best_overlap = ("unknown", -1), 0.0
    for kind, index, reference in _references():
        shared = len(words & reference)
        total = len(words) + len(reference)
        overlap = 2 * shared / total if total else 0.0
        if overlap > best_overlap:
            best, best_overlap = (kind, index), overlap
    return best if best_overlap >= STEP_MATCH else ("unknown", -1)
