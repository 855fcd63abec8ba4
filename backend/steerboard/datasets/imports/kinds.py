"""The fields of every kind of dataset, described for the form that maps columns to them."""

from __future__ import annotations

from steerboard.datasets.imports.schemas import ImportField, ImportKind
from steerboard.datasets.parsing.mapping import FIELDS, NEEDED

_ABOUT = {
    "prompt": "The model's input: a text, a list of messages, or a Human/Assistant transcript.",
    "response": "The answer.",
    "chosen": "The better answer, or the whole dialogue that ends with it.",
    "rejected": "The worse answer, or the whole dialogue that ends with it.",
    "margin": "How much better the chosen answer is, a number.",
    "desirable": "Whether the answer is good: true or false, 1 or 0, yes or no, up or down.",
    "reward": "The grade of the answer, a finite number; rows with attributes may lack it.",
    "reference": "A reference answer.",
    "source": "Where the row comes from: a corpus, or a subset of a benchmark.",
    "messages": "The conversation as a list of messages; it replaces the prompt, and the response where it ends "
    "with one.",
    "system": "A system message before the prompt.",
    "tools": "The tools that the conversation offers: a list of JSON schemas, or that list as JSON.",
    "input": "More text, appended to the prompt.",
    "group": "Where a prompt has several answers: a whole number that these share.",
    "attributes": "Grades of the answer by name, such as {helpfulness: 4, verbosity: 2}; what is missing is left out.",
    "candidate": "Which of its group's answers this is: a whole number from 0.",
    "completions": "The steps of the answer: a list of texts.",
    "labels": "Whether each step is right: a list of true and false, or of numbers from 0 to 1.",
    "item": "A benchmark's own name of the prompt, such as RewardBench 2's tied:3.",
}

KINDS: list[ImportKind] = [
    ImportKind(
        kind=kind,
        fields=[ImportField(name=name, required=name in NEEDED[kind], about=_ABOUT[name]) for name in fields],
    )
    for kind, fields in FIELDS.items()
]
