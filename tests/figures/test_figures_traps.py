"""What looks like another file than it is: blank and padded ids, copies, columns that are misspelt, diluted judges."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from figures.figures_runner import annotation, figures, invalid, run, single, write
from steerboard_contracts.errors import BadInput, SteerboardError


def battles(number: int, **more: Any) -> list[dict[str, Any]]:
    names = [("a", "b"), ("b", "c"), ("c", "a")]
    return [
        {"model_a": names[n % 3][0], "model_b": names[n % 3][1], "winner": "model_a" if n % 4 else "model_b", **more}
        for n in range(number)
    ]


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_blank_id_is_none(tmp_path: Path) -> None:
    rows = battles(60)
    plain = figures(write(tmp_path / "plain.jsonl", *rows))
    for name in ("battle", "id"):
        blank = figures(write(tmp_path / f"{name}.jsonl", *({**row, name: " "} for row in rows)))
        assert blank == {**plain, "bad": []}, name
    computed = invalid(write(tmp_path / "mt.jsonl", *(single(n, 5) | {"question_id": ""} for n in range(80))))
    assert "has no `question_id`" in computed["bad"][0]
    verdicts = (f",Natural,e,1,{1 + (n % 2)},1" for n in range(40))
    llmbar = table(tmp_path / "l.csv", "idx,dataset,evaluator,label,winner_order12,winner_order21", *verdicts)
    assert figures(llmbar)["evaluators"][0]["n"] == 40


def test_ids_with_spaces_around_them_are_the_same(tmp_path: Path) -> None:
    rows = [single(n, 9) | {"question_id": f"{n}"} for n in range(81, 161)]
    again = [single(n, 3) | {"question_id": f" {n} "} for n in range(81, 161)]
    computed = figures(write(tmp_path / "mt.jsonl", *rows, *again), "--repeats", "last")
    (model,) = computed["models"]
    assert (model["n"], model["superseded"], model["average"]) == (80, 80, 3)
    assert computed["warnings"]


def test_the_same_rows_in_two_files_are_refused(tmp_path: Path) -> None:
    one, other = (write(tmp_path / name, *battles(30)) for name in ("one.jsonl", "other.jsonl"))
    for again in (one, other):
        with pytest.raises(BadInput, match="would count twice"):
            run(one, again)
    rows = [{"subset": "hep-go", "chosen_reward": n, "rejected_reward": 1} for n in range(5)]
    pairs = write(tmp_path / "pairs.jsonl", *rows)
    with pytest.raises(BadInput, match="would count twice"):
        run(pairs, pairs)


def test_battles_of_two_files_are_not_one_because_they_have_one_number(tmp_path: Path) -> None:
    first = write(tmp_path / "1.jsonl", *({**row, "battle": n} for n, row in enumerate(battles(30))))
    other = write(tmp_path / "2.jsonl", *({**row, "battle": n} for n, row in enumerate(battles(30)[::-1])))
    assert figures(first, other)["n"] == 60


def test_rows_without_a_baseline_are_not_against_themselves(tmp_path: Path) -> None:
    games = [{"score": "B>A"}, {"score": "A>B"}]
    rows = [
        {"question_id": n, "model": model, "games": games if n % 3 else games[::-1]}
        for n in range(30)
        for model in "ax"
    ]
    file = write(tmp_path / "games.jsonl", *rows)
    assert {model["model"] for model in figures(file)["models"]} == {"a", "x", "gpt-4-0314"}
    assert {model["model"] for model in figures(file, "--baseline", "base")["models"]} == {"a", "x", "base"}
    with pytest.raises(BadInput, match="30 rows of a name no baseline"):
        run(file, "--baseline", "a")


def test_weights_and_difficulties_that_contradict_themselves_or_are_misspelt_are_refused(tmp_path: Path) -> None:
    rows = [f"m,{1.3 if n % 2 else 1.8},{900 + n},{800 + 2 * n},{n}" for n in range(40)]
    file = table(tmp_path / "rows.csv", "model,preference,len_1,len_2,row", *rows)
    hard = table(tmp_path / "hard.csv", "index,instruction_difficulty", *(f"{n},{n / 40}" for n in range(40)))
    names = "model,np.tanh(std_delta_len),instruction_difficulty,not_gamed_baseline.astype(float)"
    good = table(tmp_path / "good.csv", names, "m,-1,0.5,0.8")
    computed = figures(file, "--difficulty", hard, "--weights", good)["models"][0]
    assert computed["variant"] == "full"
    twice = table(tmp_path / "twice.csv", names, "m,-1,0.5,0.8", "m,0,0,5")
    with pytest.raises(BadInput, match="line 3: has other weights of m"):
        run(file, "--difficulty", hard, "--weights", twice)
    misspelt = table(tmp_path / "misspelt.csv", names.removesuffix(".astype(float)"), "m,-1,0.5,0.8")
    with pytest.raises(SteerboardError, match=r"has no column 'not_gamed_baseline.astype\(float\)'"):
        run(file, "--difficulty", hard, "--weights", misspelt)
    table(hard, "index,instruction_difficulty", *(f"{n},{n / 40}" for n in range(40)), "7,9")
    with pytest.raises(BadInput, match="line 42: has another difficulty of place 7"):
        run(file, "--difficulty", hard, "--weights", good)


@pytest.mark.parametrize("value", ['"n/a"', "true", "[0.5]"])
def test_an_accuracy_that_is_no_number_is_refused_and_not_left_out(tmp_path: Path, value: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(f'{{"hep-go": 0.5, "math-prm": {value}, "model": "m"}}')
    with pytest.raises(BadInput, match=r"math-prm has .*, not an accuracy"):
        run(path)


def test_a_subset_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"hep-go": 0.5, "hep-js": 0.5, "hep-go": 0.1}')
    with pytest.raises(BadInput, match="has 'hep-go' twice"):
        run(path)


def test_a_row_with_a_field_twice_is_bad(tmp_path: Path) -> None:
    rows = [json.dumps(single(n, 9)) for n in range(80)]
    twice = [row[:-1] + ', "score": 2}' for row in rows[60:]]
    computed = invalid(write(tmp_path / "mt.jsonl", *rows[:60], *twice))
    assert computed["bad"][0].endswith("has `score` twice, and it is unknown which one counts")
    inside = [row[:-1] + ', "more": [{"x": 1, "x": 2}]}' for row in rows[60:]]
    computed = invalid(write(tmp_path / "inside.jsonl", *rows[:60], *inside))
    assert computed["bad"][0].endswith("has `x` twice, and it is unknown which one counts")
    # Neither a text that is also a name, or reads like some, nor a name at another depth is one.
    alike = [single(n, 9, judgment='score {"a": 1, "a": 2}', more={"score": 1}) for n in range(80)]
    assert figures(write(tmp_path / "alike.jsonl", *alike))["models"][0]["average"] == 9


def test_a_style_is_read_from_texts_and_never_taken_for_nothing(tmp_path: Path) -> None:
    def metadata(n: int) -> dict[str, Any]:
        sides = {"a": n, "b": 3 * n + 1}
        lengths = {f"sum_assistant_{side}_tokens": of % 7 + 1 for side, of in sides.items()}
        marks = {
            f"{name}_count_{side}": {"h1": of % 3} for name in ("header", "list", "bold") for side, of in sides.items()
        }
        return lengths | marks

    plain = [{**row, "conv_metadata": metadata(n)} for n, row in enumerate(battles(90))]
    expected = figures(write(tmp_path / "plain.jsonl", *plain))["style_controlled"]
    texts = [{**row, "conv_metadata": json.dumps(row["conv_metadata"])} for row in plain]
    assert figures(write(tmp_path / "texts.jsonl", *texts))["style_controlled"] == expected
    words = json.loads(json.dumps(plain), parse_int=str)
    assert figures(write(tmp_path / "words.jsonl", *words))["style_controlled"] == expected
    broken = json.loads(json.dumps(plain))
    for row in broken[:10]:
        row["conv_metadata"]["bold_count_a"] = "many"
    computed = figures(write(tmp_path / "broken.jsonl", *broken))
    assert computed["style_controlled"]["models"] == []
    assert "10 of 90 verdicts have no style" in computed["warnings"][0]


def test_conversations_in_cells_are_read_as_conversations(tmp_path: Path) -> None:
    def turns(text: str) -> list[dict[str, str]]:
        return [{"role": "user", "content": "# Say **it**"}, {"role": "assistant", "content": text}]

    rows = [
        {**row, "conversation_a": turns("# x\n" * (n % 3) + "y" * n), "conversation_b": turns("- z\n" * (n % 2) + "w")}
        for n, row in enumerate(battles(60))
    ]
    expected = figures(write(tmp_path / "rows.jsonl", *rows))["style_controlled"]
    sides = ("conversation_a", "conversation_b")
    cells = [{**row, **{side: json.dumps(row[side]) for side in sides}} for row in rows]
    assert figures(write(tmp_path / "cells.jsonl", *cells))["style_controlled"] == expected


def test_a_judges_unreadable_rows_are_not_diluted_by_anothers(tmp_path: Path) -> None:
    good = [single(n, 5, judge=["large", "single-v1"]) for n in range(480)]
    some = [single(n, 9, judge=["small", "single-v1"]) for n in range(40)]
    for row in some[20:]:
        del row["model"]
    computed = invalid(write(tmp_path / "rows.jsonl", *good, *some))
    of = {result["judge"]: result["models"][0] for result in computed["results"]}
    assert (of["large"]["valid"], of["large"]["average"]) == (True, 5)
    assert (of["small"]["valid"], of["small"]["average"]) == (False, None)
    assert "20 unreadable of small" in of["small"]["reason"]
    assert run(tmp_path / "rows.jsonl", "--judge", "large")[0] == 0
    assert run(tmp_path / "rows.jsonl", "--judge", "small")[0] == 1


def test_whole_numbers_of_columns_with_gaps_are_verdicts(tmp_path: Path) -> None:
    rows = (f"{n},Natural,e,1.0,1.0,2.0" for n in range(40))
    path = table(tmp_path / "l.csv", "idx,dataset,evaluator,label,winner_order12,winner_order21", *rows)
    assert figures(path)["evaluators"][0]["correct_average"] == 0.5
    prompts = [{"subset": "Math", "id": n, "num_correct": "1", "scores": [1, 0, 0, 0]} for n in range(40)]
    assert figures(write(tmp_path / "two.jsonl", *prompts))["domains"]["Math"] == 1


def test_a_constant_leaderboard_has_no_correlation_and_that_is_told(tmp_path: Path) -> None:
    constant = table(tmp_path / "one.csv", "model,score", *(f"m{n},{n}" for n in range(10)))
    same = table(tmp_path / "same.csv", "model,score", *(f"m{n},5" for n in range(10)))
    computed = figures(constant, same, "--format", "leaderboards")
    assert computed["pearson"] is None
    assert "same.csv has the same figure for all 10 models" in computed["warnings"][0]


def test_pairs_of_rewards_in_a_table_are_recognised(tmp_path: Path) -> None:
    rows = (f"hep-go,{n % 2},0.5" for n in range(164))
    assert figures(table(tmp_path / "p.csv", "subset,chosen_reward,rejected_reward", *rows))["subsets"] == {
        "hep-go": 0.5
    }


def test_preferences_on_another_scale_are_warned_of(tmp_path: Path) -> None:
    computed = figures(write(tmp_path / "a.jsonl", *(annotation(n, n % 2) for n in range(20))))
    assert any("on a scale from 0 to 1" in warning for warning in computed["warnings"])
    for preferences in ([1, 2], [0, 1, 2], [0], [1]):
        rows = (annotation(n, preferences[n % len(preferences)]) for n in range(20))
        computed = figures(write(tmp_path / "b.jsonl", *rows))
        assert not any("scale" in warning for warning in computed["warnings"]), preferences


def test_a_file_of_unreadable_rows_is_refused_with_the_first_reason(tmp_path: Path) -> None:
    with pytest.raises(SteerboardError, match=r"no row that can be read: line 1 .*winner"):
        run(write(tmp_path / "b.jsonl", *['{"model_a": "a", "model_b": "b", "winner": "a", "winner": "b"}'] * 3))


def test_a_pipe_is_refused_with_what_to_do(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(BadInput, match="pipe is not a regular file"):
        run(pipe)
