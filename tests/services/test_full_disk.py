"""An import that is larger than the disk is refused, or fails, and everything else continues."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from test_services_up import Start, Up, headers, start

from support.patience import PATIENCE, wait_until
from support.processes.small_disk import MB, fill, free, small_disk

__all__ = ["start"]

RESERVE_MB = 80


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Everything that `up` writes goes here, its temporary files too."""
    with small_disk(tmp_path / "disk", 340) as place:
        (place / "tmp").mkdir()
        yield place


@pytest.fixture
def up(start: Start, disk: Path) -> Up:
    variables = {"STEERBOARD_DISK_RESERVE_MB": str(RESERVE_MB), "TMPDIR": str(disk / "tmp")}
    return start(disk / "home", "--no-worker", **variables)


def rows(path: Path, megabytes: int) -> Path:
    """Rows of texts that no one can make smaller."""
    draw = random.Random(7)
    with path.open("w") as file:
        for number in range(megabytes * 16):
            file.write(json.dumps({"prompt": f"row {number}", "response": draw.randbytes(32 << 10).hex()[: 64 << 10]}))
            file.write("\n")
    return path


class Server:
    def __init__(self, up: Up, home: Path) -> None:
        self.http = httpx.Client(base_url=f"{up.url}/api/v1", headers=headers(home), timeout=PATIENCE)
        self.up = up

    def upload(self, path: Path, name: str) -> httpx.Response:
        with path.open("rb") as file:
            return self.http.post("/projects/default/imports", files={"file": file}, data={"name": name})

    def send(self, megabytes: int, disk: Path, *, announced: bool) -> tuple[httpx.Response, int]:
        """The answer to an upload with or without its size announced, and the least free space meanwhile."""
        before = b'--b\r\nContent-Disposition: form-data; name="file"; filename="rows.jsonl"\r\n\r\n'
        after = b"\r\n--b--\r\n"
        least = free(disk)

        def pieces() -> Iterator[bytes]:
            nonlocal least
            yield before
            for _ in range(megabytes):
                yield b"x" * MB
                least = min(least, free(disk))
            yield after

        form = {"Content-Type": "multipart/form-data; boundary=b"}
        if announced:
            form["Content-Length"] = str(len(before) + megabytes * MB + len(after))
        return self.http.post("/projects/default/imports", content=pieces(), headers=form), least

    def imported(self, import_id: str) -> dict[str, Any]:
        self.http.post(f"/projects/default/imports/{import_id}/start").raise_for_status()

        def ended() -> dict[str, Any] | None:
            import_: dict[str, Any] = self.http.get(f"/projects/default/imports/{import_id}").json()
            return None if import_["state"] in ("importing", "validating") else import_

        return wait_until(ended, pause=0.1)

    def health(self) -> dict[str, str]:
        answer: dict[str, str] = self.http.get("/system/health").json()
        return answer


@pytest.mark.long
def test_what_does_not_fit_on_the_disk_is_refused_and_the_platform_goes_on(up: Up, disk: Path, tmp_path: Path) -> None:
    server = Server(up, disk / "home")
    assert server.health() == dict.fromkeys(("status", "database", "redis", "artifacts", "disk"), "ok")

    # Too large to be taken in at all, and refused before anything was stored, or before it has touched the reserve.
    room = (free(disk) >> 20) - RESERVE_MB
    for announced, touched in ((True, 8), (False, room + 8)):
        before = free(disk)
        refused, least = server.send(room + 20, disk, announced=announced)
        assert (refused.status_code, refused.json()["code"]) == (507, "no_space_left"), (
            announced,
            least >> 20,
            before >> 20,
            refused.text,
        )
        assert least > before - touched * MB, (announced, least >> 20, before >> 20)
    refused = server.upload(rows(tmp_path / "huge.jsonl", room + 20), "huge")
    assert (refused.status_code, refused.json()["code"]) == (507, "no_space_left"), refused.text
    assert "reserve" not in refused.json()["detail"]
    assert str(disk) not in refused.text

    # Fits as a file and not as rows.
    large = server.upload(rows(tmp_path / "large.jsonl", room // 2 - 12), "large").json()
    before = free(disk)
    failed = server.imported(large["id"])
    assert (failed["state"], failed["problem"]["code"]) == ("failed", "no_space_left"), failed
    assert free(disk) >= (RESERVE_MB - 24) * MB
    # All but the server's log (48 MB and the segment that is being written) is given back, whatever was written of it.
    wait_until(
        lambda: free(disk) >= before - 64 * MB,
        lambda: f"{free(disk) >> 20} of {before >> 20} MB are free",
        pause=0.1,
    )

    # It is shown everywhere, and everything that needs little room works.
    ballast = fill(disk, RESERVE_MB * MB // 2)
    assert server.health() == {
        "status": "degraded",
        "database": "ok",
        "redis": "ok",
        "artifacts": "ok",
        "disk": "full",
    }
    (waits,) = server.http.get("/projects/default/waiting").json()["items"]
    assert waits["kind"] == "disk"
    assert "STEERBOARD_DISK_RESERVE_MB" in doctor(disk / "home")
    assert server.http.post("/projects", json={"name": "small"}).status_code == 201
    small = rows(tmp_path / "small.jsonl", 4)
    # The database may have given back segments of its log in between.
    ballast = fill(disk, RESERVE_MB * MB // 2)
    assert server.upload(small, "small").json()["code"] == "no_space_left"

    # And once there is room again, so does the rest.
    ballast.unlink()
    assert server.http.delete(f"/projects/default/imports/{large['id']}").status_code == 204
    document = server.imported(server.upload(small, "small").json()["id"])
    assert document["state"] == "succeeded", document
    assert up.process.poll() is None
    log = (disk / "home" / "logs" / "postgres.log").read_text()
    assert "No space left" not in log
    assert "PANIC" not in log


def doctor(home: Path) -> str:
    environment = {**os.environ, "STEERBOARD_DISK_RESERVE_MB": str(RESERVE_MB)}
    done = subprocess.run(
        [sys.executable, "-m", "steerboard.cli.main", "doctor", "--home", str(home), "--json"],
        env=environment,
        capture_output=True,
        text=True,
    )
    (check,) = [check for check in json.loads(done.stdout)["checks"] if check["name"] == "disk"]
    assert not check["ok"]
    mend: str = check["mend"]
    return mend
