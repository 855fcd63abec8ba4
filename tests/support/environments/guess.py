"""Guess a number from 1 to 20: an environment whose rollouts end by a hit."""

import random
import re


class Environment:
    def reset(self, row):
        self.number = random.Random(row["seed"]).randint(1, 20)
        return "Guess my number from 1 to 20."

    def step(self, answer):
        given = re.search(r"\d+", answer)
        if given is None:
            return "Say a number.", -0.1, False
        guess = int(given.group())
        if guess == self.number:
            return None, 1.0, True
        return ("Higher." if guess < self.number else "Lower."), 0.0, False
