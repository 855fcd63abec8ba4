"""An evaluation whose entrants have answered everything, written straight into the database."""

from __future__ import annotations

import uuid

import orjson
from harness.running_platform import Bench

_ANSWER = "The answer has some length, as answers of models have. " * 20


def write_evaluation(bench: Bench, prompts: int, entrants: int) -> None:
    """Called `bench`, with entrants `entrant-0`, `entrant-1`, ..."""
    evaluation = uuid.uuid4()
    ids = [uuid.uuid4() for _ in range(entrants)]
    with bench.connect() as connection:
        connection.execute(
            """INSERT INTO evaluations (id, project_id, name, description, prompts_from, checked_against, seed, version,
                                        created_by)
               SELECT %s, id, 'bench', '', '{}', '[]', 0, 1, 'bench' FROM projects""",
            (evaluation,),
        )
        with connection.cursor() as cursor:
            columns = "(evaluation_id, position, question_id, messages, follow_ups)"
            with cursor.copy(f"COPY evaluation_prompts {columns} FROM STDIN".encode()) as copy:
                for position in range(prompts):
                    messages = orjson.dumps([{"role": "user", "content": f"What is {position} good for?"}]).decode()
                    copy.write_row((evaluation, position, f"q{position}", messages, "[]"))
            columns = "(id, evaluation_id, position, name, source, decoding, samples)"
            with cursor.copy(f"COPY evaluation_entrants {columns} FROM STDIN".encode()) as copy:
                for place, entrant in enumerate(ids):
                    copy.write_row((entrant, evaluation, place, f"entrant-{place}", "import", "{}", 1))
            columns = "(entrant_id, position, sample, turns)"
            with cursor.copy(f"COPY evaluation_responses {columns} FROM STDIN".encode()) as copy:
                for place, entrant in enumerate(ids):
                    for position in range(prompts):
                        turns = orjson.dumps([f"{place} of {position}. {_ANSWER}"]).decode()
                        copy.write_row((entrant, position, 0, turns))
    with bench.connect(autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
