"""What the synthetic demo talks about: topics with their steps, situations of the asker, forms of the question."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """One thing to ask about. `verb` completes "How can I ...", `noun` names it, `question` asks back about it,
    `steps` are the facts of a full answer, in their natural order."""

    verb: str
    noun: str
    question: str
    steps: tuple[str, ...]


@dataclass(frozen=True)
class Situation:
    """A side condition in the prompt, and the sentence by which an answer takes it up."""

    phrase: str
    reply: str


TOPICS: tuple[Topic, ...] = (
    Topic(
        "improve my time management skills",
        "time management",
        "What kinds of things do you need to do?",
        (
            "Set clear goals for the week.",
            "Write a schedule and give every task a slot.",
            "Do the most important task in the morning.",
            "Turn off notifications on your phone.",
            "Take short breaks between two tasks.",
            "Look back on Friday at what took too long.",
        ),
    ),
    Topic(
        "grow tomatoes",
        "tomatoes",
        "What does your garden look like?",
        (
            "Pick a spot with six hours of sun.",
            "Mix compost into the soil before planting.",
            "Plant the seedlings deep and far apart.",
            "Tie the stems to a tall stake.",
            "Water the roots early and keep the leaves dry.",
            "Pinch off side shoots and harvest the red fruit.",
        ),
    ),
    Topic(
        "bake a loaf of bread",
        "bread",
        "What kind of oven do you have?",
        (
            "Weigh the flour, the salt and the yeast.",
            "Knead the dough until it is smooth.",
            "Let the dough rise until it has doubled.",
            "Shape it and place it in a tin.",
            "Heat the oven well before baking.",
            "Cool the loaf on a rack and then slice it.",
        ),
    ),
    Topic(
        "learn to play the guitar",
        "the guitar",
        "What music do you like?",
        (
            "Tune the strings every time you play.",
            "Learn three simple chords first.",
            "Practise changing chords with a metronome.",
            "Strum an easy song that you love.",
            "Record yourself and listen for buzzing notes.",
            "Play with a friend to keep a steady rhythm.",
        ),
    ),
    Topic(
        "save more money",
        "saving money",
        "What do you spend the most on?",
        (
            "Note down every expense for a month.",
            "Make a budget with a limit for each category.",
            "Move a fixed sum to savings on payday.",
            "Cancel subscriptions that you never use.",
            "Compare prices before a big purchase.",
            "Pay off the debt with the highest interest.",
        ),
    ),
    Topic(
        "sleep better at night",
        "sleep",
        "When do you usually go to bed?",
        (
            "Go to bed at the same hour every night.",
            "Keep the bedroom dark and cool.",
            "Avoid coffee after lunch.",
            "Put screens away an hour before bedtime.",
            "Read a calm book to relax.",
            "Get daylight and exercise during the day.",
        ),
    ),
    Topic(
        "train a puppy",
        "a puppy",
        "How old is the dog?",
        (
            "Choose one word for each command.",
            "Reward good behaviour with a small treat.",
            "Keep every lesson under five minutes.",
            "Take the puppy outside after each meal.",
            "Let it meet other dogs and people gently.",
            "Never shout and ignore unwanted barking.",
        ),
    ),
    Topic(
        "prepare for a job interview",
        "a job interview",
        "Which company is it?",
        (
            "Research the company and its products.",
            "Reread the job description and mark the key skills.",
            "Prepare examples of your past work.",
            "Rehearse answers aloud with somebody.",  # prose: ok
            "Choose neat clothes the evening before.",
            "Ask the interviewer two good questions.",
        ),
    ),
    Topic(
        "run my first five kilometre race",
        "a first race",
        "How often do you run now?",
        (
            "Buy running shoes that fit well.",
            "Start by jogging and walking in turns.",
            "Run three times a week at an easy pace.",
            "Add a little distance every week.",
            "Stretch your legs and rest on two days.",
            "Eat lightly and start the race slowly.",
        ),
    ),
    Topic(
        "paint a bedroom wall",
        "painting a wall",
        "Which colour would you like?",
        (
            "Cover the floor with old sheets.",
            "Fill the holes and sand the wall smooth.",
            "Put masking tape along the edges.",
            "Apply primer and wait until it dries.",
            "Roll on the paint in two thin coats.",
            "Remove the tape and wash the brushes.",
        ),
    ),
    Topic(
        "learn Spanish",
        "Spanish",
        "Do you know any other language?",
        (
            "Learn ten new words a day with cards.",
            "Listen to Spanish radio on the way home.",
            "Study one grammar rule at a time.",
            "Speak with a native partner online.",
            "Watch films with subtitles.",
            "Keep a small diary in Spanish.",
        ),
    ),
    Topic(
        "cook a vegetable soup",
        "a vegetable soup",
        "Which vegetables do you have?",
        (
            "Chop the carrots, leeks and potatoes.",
            "Fry the onions gently in oil.",
            "Pour in the stock and bring it to a boil.",
            "Simmer everything for half an hour.",
            "Season with pepper and fresh herbs.",
            "Blend it and serve it with a spoon of cream.",
        ),
    ),
)

SITUATIONS: tuple[Situation, ...] = (
    Situation("", ""),
    Situation(" as a complete beginner", "As a beginner, start small and expect mistakes."),
    Situation(" on a small budget", "On a small budget, borrow what you can."),
    Situation(" with very little time", "With little time, ten minutes a day are enough."),
    Situation(" together with my children", "Together with children, leave the easy parts to them."),
    Situation(" during the winter", "During the winter, allow for cold and short days."),
    Situation(" in a tiny flat", "In a tiny flat, one free corner is enough."),
)

# Each takes `{ask}` = verb and situation.
QUESTIONS: tuple[str, ...] = (
    "How can I {ask}?",
    "What is the best way to {ask}?",
    "Give me some advice. I want to {ask}.",
    "I would like to {ask}. Where do I start?",
    "Can you help me {ask}?",
    "Please explain how to {ask}.",
    "What should I know before I {ask}?",
    "Tell me how I could {ask}.",
    "Is there a simple plan to {ask}?",
    "I have never managed to {ask}. What would you suggest?",
)


def prompt_text(topic: Topic, situation: Situation, question: str) -> str:
    return question.format(ask=topic.verb + situation.phrase)
