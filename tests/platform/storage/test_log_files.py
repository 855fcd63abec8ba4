from __future__ import annotations

from pathlib import Path

from steerboard.platform.storage.log_files import trim


def test_a_large_log_is_cut_short_while_it_is_written_and_its_end_is_kept(tmp_path: Path) -> None:
    large, small = tmp_path / "worker-1.log", tmp_path / "valkey.log"
    small.write_text("a line\n")
    with large.open("ab", buffering=0) as writer:
        for number in range(2000):
            writer.write(f"line {number}\n".encode())
        trim(tmp_path, most=10_000, kept=1000)
        writer.write(b"and on\n")
    assert large.read_text() == "and on\n"
    assert (tmp_path / "worker-1.log.1").read_text().endswith("line 1998\nline 1999\n")
    assert (tmp_path / "worker-1.log.1").stat().st_size == 1000
    assert small.read_text() == "a line\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["valkey.log", "worker-1.log", "worker-1.log.1"]
