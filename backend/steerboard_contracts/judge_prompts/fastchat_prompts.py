"""The prompts of MT-Bench's judges, so that verdicts can be compared with published ones.

NOTICE: the texts are from FastChat (https://github.com/lm-sys/FastChat, fastchat/llm_judge/data/judge_prompts.jsonl),
Copyright its authors, LMSYS, under the Apache License, Version 2.0. Changed: composed from their common parts, and for
more than two turns.
"""

from __future__ import annotations

from collections.abc import Sequence

_FACTORS = (
    "factors such as the helpfulness, relevance, accuracy, depth, creativity, and level of detail of {of} response"
)
_CORRECTNESS = "Your evaluation should consider correctness and helpfulness."
_MISTAKES = "Identify and correct any mistakes."
_RATE = (
    "Be as objective as possible. After providing your explanation, you must rate the response on a scale of 1 to 10 "
    'by strictly following this format: "[[rating]]", for example: "Rating: [[5]]".\n\n'
)
_NO_BIAS = (
    "Avoid any position biases and ensure that the order in which the responses were presented does not influence your "
    "decision. Do not allow the length of the responses to influence your evaluation. Do not favor certain names of "
    "the assistants. Be as objective as possible. After providing your explanation, output your final verdict by "
    'strictly following this format: "[[A]]" if assistant A is better, "[[B]]" if assistant B is better, and "[[C]]" '
    "for a tie."
)
_ONE = "Please act as an impartial judge and evaluate the quality of the response provided by an AI assistant to the "
_TWO = (
    "Please act as an impartial judge and evaluate the quality of the responses provided by two AI assistants to the "
)

Prompt = tuple[str, str]
"""System prompt and user prompt."""


def single(questions: Sequence[str], answers: Sequence[str], references: Sequence[str] | None) -> Prompt:
    """Rates the last of `answers`, one for each of `questions`; references, where given, have as many texts."""
    if len(questions) == 1:
        begin = _ONE + "user question displayed below. "
        if references is None:
            criteria = (
                f"Your evaluation should consider {_FACTORS.format(of='the')}. "
                "Begin your evaluation by providing a short explanation. "
            )
        else:
            criteria = f"{_CORRECTNESS} {_against_reference()}{_MISTAKES} "
        parts = [f"[Instruction]\n{begin}{criteria}{_RATE}[Question]\n{questions[0]}"]
        if references is not None:
            parts.append(_block("Reference Answer", references[0]))
        parts.append(_block("Assistant's Answer", answers[0]))
        return "You are a helpful assistant.", "\n\n".join(parts)
    last = _ordinal(len(questions))
    if references is None:
        system = (
            f"{_ONE}user question displayed below. Your evaluation should consider {_FACTORS.format(of='the')}. You "
            f"evaluation should focus on the assistant's answer to the {last} user question. Begin your evaluation by "
            f"providing a short explanation. {_RATE}"
        )
        return system, _conversation("A", questions, answers)
    system = (
        f"{_ONE}user question. {_CORRECTNESS} You will be given a reference answer and the assistant's answer. You "
        f"evaluation should focus on the assistant's answer to the {last} question. Begin your evaluation by comparing "
        f"the assistant's answer with the reference answer. {_MISTAKES} {_RATE}"
    )
    return system, f"{_reference_conversation(questions, references)}\n\n\n{_conversation('A', questions, answers)}"


def pairwise(
    questions: Sequence[str], answers_a: Sequence[str], answers_b: Sequence[str], references: Sequence[str] | None
) -> Prompt:
    """Compares two assistants on the last of `questions`."""
    if len(questions) == 1:
        if references is None:
            criteria = (
                "You should choose the assistant that follows the user's instructions and answers the user's question "
                f"better. Your evaluation should consider {_FACTORS.format(of='their')}s. Begin your evaluation by "
                "comparing the two responses and provide a short explanation. "
            )
        else:
            criteria = (
                f"{_CORRECTNESS} You will be given a reference answer, assistant A's answer, and assistant B's answer. "
                "Your job is to evaluate which assistant's answer is better. Begin your evaluation by comparing both "
                f"assistants' answers with the reference answer. {_MISTAKES} "
            )
        parts = [f"[User Question]\n{questions[0]}"]
        if references is not None:
            parts.append(_block("Reference Answer", references[0]))
        parts += [_block("Assistant A's Answer", answers_a[0]), _block("Assistant B's Answer", answers_b[0])]
        return f"{_TWO}user question displayed below. {criteria}{_NO_BIAS}", "\n\n".join(parts)
    last = _ordinal(len(questions))
    if references is None:
        criteria = (
            "You should choose the assistant that follows the user's instructions and answers the user's questions "
            f"better. Your evaluation should consider {_FACTORS.format(of='their')}s. You should focus on who provides "
            f"a better answer to the {last} user question. Begin your evaluation by comparing the responses of the two "
            "assistants and provide a short explanation. "
        )
    else:
        criteria = (
            f"{_CORRECTNESS} You will be given reference answers, the assistant A's answers, the assistant B's "
            "answers. Your job is to determine which assistant provides correct and helpful answers to the "
            f"{last} user question. Begin your evaluation by comparing both assistants' answers with the reference "
            f"answers. {_MISTAKES} "
        )
    parts = [_conversation("A", questions, answers_a), _conversation("B", questions, answers_b)]
    if references is not None:
        parts.insert(0, _reference_conversation(questions, references))
    return f"{_TWO}user questions. {criteria}{_NO_BIAS}", "\n\n\n".join(parts)


def _against_reference() -> str:
    return (
        "You will be given a reference answer and the assistant's answer. Begin your evaluation by comparing the "
        "assistant's answer with the reference answer. "
    )


def _block(title: str, text: str) -> str:
    return f"[The Start of {title}]\n{text}\n[The End of {title}]"


def _conversation(letter: str, questions: Sequence[str], answers: Sequence[str]) -> str:
    return _turns(f"Assistant {letter}'s Conversation with User", f"Assistant {letter}", questions, answers)


def _reference_conversation(questions: Sequence[str], references: Sequence[str]) -> str:
    return _turns("Reference Answer", "Reference answer", questions, references)


def _turns(title: str, speaker: str, questions: Sequence[str], answers: Sequence[str]) -> str:
    turns = [
        f"### User:\n{question}\n\n### {speaker}:\n{answer}\n\n"
        for question, answer in zip(questions, answers, strict=True)
    ]
    return f"<|The Start of {title}|>\n\n{''.join(turns)}<|The End of {title}|>"


def _ordinal(turn: int) -> str:
    return {2: "second", 3: "third", 4: "fourth", 5: "fifth"}.get(turn, f"{turn}th")
