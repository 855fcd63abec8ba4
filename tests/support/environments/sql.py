"""Questions to a small SQLite database: each query is answered by its rows, and `ANSWER:` ends the rollout."""

import sqlite3


class Environment:
    def reset(self, row):
        self.wanted = row["reference"]
        self.database = sqlite3.connect(":memory:")
        self.database.execute("CREATE TABLE cities (name TEXT, people INTEGER)")
        self.database.executemany("INSERT INTO cities VALUES (?, ?)", [("Lima", 10), ("Oslo", 1), ("Rome", 3)])

    def step(self, answer):
        text = answer.strip()
        if text.startswith("ANSWER:"):
            return None, float(text.removeprefix("ANSWER:").strip() == self.wanted), True
        try:
            rows = self.database.execute(text).fetchmany(10)
        except sqlite3.Error as error:
            return f"error: {error}", -0.1, False
        return str(rows), 0.0, False
