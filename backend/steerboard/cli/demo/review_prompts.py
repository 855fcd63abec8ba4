"""Several hundred prompts that ask for one sentence about a film, a hotel or a phone, written for the real demo."""

from __future__ import annotations

from collections.abc import Iterator

_FILMS = (
    "a spy thriller, a romantic comedy, a space opera, a slow drama about a family, a horror film set in a school, "
    "an animated film about a fox, a war epic, a documentary about whales, a musical about dockworkers, a western, "
    "a heist film, a film about a chess player, a courtroom drama, a zombie comedy, a biopic of a singer, "
    "a road movie, a film about a cooking contest, a disaster film, a silent film, a film about a lighthouse keeper, "
    "a superhero sequel, a detective story, a film about two sisters, a science fiction film about memory, "
    "a boxing film, a film about a lost dog, a historical film about sailors, a teenage comedy"
)
_HOTELS = (
    "a seaside hotel, a hotel near the airport, a mountain lodge, a city hostel, a business hotel, "
    "a small guesthouse, a spa resort, a roadside motel, a boutique hotel, a castle hotel, "
    "a hotel with a rooftop pool, a ski hotel, a family resort, a capsule hotel, a lakeside inn, "
    "a hotel by the station, a farm stay, a desert camp, a converted monastery, a casino hotel, a jungle lodge, "
    "a houseboat, a hotel in the old town, a conference hotel, a beach bungalow, an eco lodge, "
    "a hotel above a bakery, a wellness retreat"
)
_PHONES = (
    "a budget phone, a foldable phone, a phone with a large battery, a gaming phone, a phone with three cameras, "
    "a rugged phone, a small phone, a phone with a stylus, a phone without a headphone jack, a phone for seniors, "
    "a refurbished phone, a phone with fast charging, a phone with a curved screen, a waterproof phone, "
    "a phone with a loud speaker, a phone with a bright display, a phone from a young brand, "
    "a phone with two SIM cards, a satellite phone, a phone with a keyboard, a phone with a thin body, "
    "a phone with wireless charging, a phone with an old processor, a phone with a fingerprint reader, "
    "a phone with a wide lens, a privacy phone, a phone with a metal frame, a phone with a repairable battery"
)
_WORDINGS = (
    "Write a one-sentence customer review of {}.",
    "In one sentence, give your opinion of {}.",
    "Write one sentence about {} that you just tried.",
    "Sum up your experience with {} in one sentence.",
    "Leave a short review, one sentence long, for {}.",
    "What did you think of {}? Answer in one sentence.",
)


def review_prompts() -> Iterator[str]:
    """Each thing in each wording, all distinct."""
    for things in (_FILMS, _HOTELS, _PHONES):
        for thing in things.split(", "):
            for wording in _WORDINGS:
                yield wording.format(thing)
