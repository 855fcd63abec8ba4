from __future__ import annotations

import json
from pathlib import Path

from support.processes.command_line import Steerboard, steerboard, url
from support.rows.arena_world import NAMES, ArenaWorld

__all__ = ["steerboard", "url"]


def test_an_arena_is_listed_rated_exported_and_made_into_pairs(
    world: ArenaWorld, steerboard: Steerboard, url: str, token: str, tmp_path: Path
) -> None:
    world.arena()
    anna = world.person("anna")
    for number, name in enumerate((NAMES[0], NAMES[0], NAMES[1])):
        anna.prefer(anna.answered(f"{number}?"), name)
    anna.vote(anna.answered("tie?"), "tie")

    listed = steerboard(url, token, "arena", "list").stdout.split("\t")
    assert listed[:4] == ["quokka", "open", "4", "2"]
    rated = [line.split("\t") for line in steerboard(url, token, "arena", "leaderboard", "quokka").stdout.splitlines()]
    assert [line[0] for line in rated] == list(NAMES[:2])
    path = tmp_path / "battles.jsonl"
    assert "bytes" in steerboard(url, token, "arena", "export", "quokka", str(path)).stdout
    figures = json.loads(steerboard(url, token, "figures", str(path), "--json").stdout)
    board = json.loads(steerboard(url, token, "arena", "leaderboard", "quokka", "--json").stdout)
    assert figures["models"] == board["models"]
    made = steerboard(url, token, "arena", "pairs", "quokka", "--train-all").stdout
    assert "Made quokka-preferences-1: 3 pairs (0 held out)" in made
    assert "1 left out: tie" in made
