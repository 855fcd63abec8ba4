"""Tables on terminals of every width, and through a pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from steerboard.cli.output.listing import Column, id_ends, print_table
from steerboard.cli.output.progress import Bars
from support.processes.terminal import ESCAPES

COLUMNS = (
    Column("run"),
    Column("kind", drop=3),
    Column("seconds", lambda value: f"{value:.1f}", right=True, drop=4),
    Column("id", drop=1, id=True),
    Column("why", drop=2, words=True),
)
RUN = "offline-rlhf-12.independent"
ID = "01a20177-0b2f-7c11-9a3c-00d3f6a1b2c4"
WHY = "the worker was lost and the next one has not the memory that it needs"


def printed(rows: list[tuple[object, ...]], width: int, *, terminal: bool = True, **options: bool) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system=None)
    print_table(console, COLUMNS, rows, **options)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", range(36, 140))
def test_a_table_fits_the_terminal_and_no_name_is_broken(width: int) -> None:
    lines = printed([(RUN, "reward_model", 12.345, ID, WHY), ("a.b", "train", 1.0, ID[:-1] + "5", "")], width)
    assert max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines[1:]] == [RUN, "a.b"]


def test_what_matters_least_leaves_first() -> None:
    row = (RUN, "reward_model", 12.345, ID, WHY)
    assert printed([row], 140)[0].split() == ["run", "kind", "seconds", "id", "why"]
    assert printed([row], 76)[0].split() == ["run", "kind", "id", "why"]
    assert printed([row], 60)[0].split() == ["run", "id", "why"]
    assert printed([row], 40)[0].split() == ["run", "id"]
    assert printed([row], 30)[0].split() == ["run"]


def test_a_name_wider_than_the_terminal_stays_whole_on_a_line_of_its_own() -> None:
    assert "".join(printed([(RUN, "train", 1.0, ID, "")], 20)) == RUN


def test_text_is_cut_with_an_ellipsis_rather_than_a_name() -> None:
    (_, line) = printed([(RUN, "train", 1.0, ID, WHY)], 80)
    assert line.endswith("…")
    assert ID[-8:] in line


def test_through_a_pipe_a_row_is_one_line_of_whole_values_between_tabs() -> None:
    (line,) = printed([(RUN, "train", 12.345, ID, f"{WHY}\tand\nmore")], 40, terminal=False)
    assert line.split("\t") == [RUN, "train", "12.345", ID, f"{WHY} and more"]


def test_empty_cells_keep_their_place_in_a_pipe() -> None:
    (line,) = printed([(RUN, None, 0.0, ID, "")], 40, terminal=False)
    assert line.split("\t") == [RUN, "", "0.0", ID, ""]


def test_a_table_within_a_longer_text_has_its_headings_in_a_pipe_too() -> None:
    assert printed([], 40, terminal=False, heading=True) == ["run\tkind\tseconds\tid\twhy"]


@pytest.mark.parametrize("terminal", [True, False])
def test_escape_sequences_of_others_do_not_reach_the_terminal(terminal: bool) -> None:
    text = "\n".join(printed([(RUN, "train", 1.0, ID, "\x1b[2Jgone\x07\x9b1m")], 140, terminal=terminal))
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert "gone" in text


def test_ids_of_one_moment_are_told_apart_by_their_ends() -> None:
    near = [ID, ID[:-9] + "f" + ID[-8:], ID[:-1] + "0"]
    ends = id_ends(near)
    assert len(set(ends)) == 3
    assert all(id_.endswith(end) for id_, end in zip(near, ends, strict=True))
    assert id_ends([ID, ID]) == [ID[-8:]] * 2


@pytest.mark.parametrize("width", [40, 50, 69, 70, 80, 99, 100])
def test_bars_keep_to_their_lines(width: int) -> None:
    out = io.StringIO()
    run = {"id": "1", "name": "independent", "state": "running", "seconds": 3700.0, "reason": ""}
    progress = {"done": 12345, "total": 99999, "unit": "steps", "phase": "evaluating"}
    with Bars(Console(file=out, width=width, force_terminal=True, color_system=None)) as bars:
        bars.show([{**run, "progress": progress}, {**run, "id": "2", "state": "failed", "reason": WHY}])
    shown = [line for line in ESCAPES.sub("", out.getvalue()).splitlines() if "independent" in line]
    assert shown
    assert max(map(len, shown)) <= width
