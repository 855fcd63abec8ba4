"""An environment that asks again after every answer, and rewards the letter s: any model can be trained in it."""


class Environment:
    def reset(self, row):
        self.turns = 0

    def step(self, answer):
        self.turns += 1
        return f"Again, {self.turns}.", float("s" in answer), "e" in answer
