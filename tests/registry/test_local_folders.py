"""What of the server's machine may be read as a base model, tried as someone would who wants more than that."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steerboard.platform.settings import Settings
from steerboard_contracts.errors import BadInput, UnsafeModelFile
from steerboard_contracts.files.base_sources import is_model_file, source_type
from steerboard_contracts.files.local_folders import FolderNotAllowed, LocalFolders, ModelFolder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    model(folder / "mine")
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return model(tmp_path / "outside")


def model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"12345678")
    return folder


@contextmanager
def touched(below: Path) -> Iterator[list[str]]:
    """The paths below a folder that this process opens, lists or asks about in between."""
    seen: list[str] = []
    watching = True

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event in ("open", "os.listdir", "os.scandir"):
            name = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes) else ""
            if name.startswith(str(below)):
                seen.append(name)

    sys.addaudithook(hook)
    yield seen
    watching = False


def refusal(folders: LocalFolders, path: str) -> str:
    with pytest.raises(FolderNotAllowed) as caught, folders.open(path):
        pass
    return caught.value.detail.replace(path[:200], "PATH")


def test_a_folder_below_a_root_is_read_by_either_name_of_the_root(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    folders = LocalFolders(roots=(tmp_path / "link",))
    for path in (root / "mine", tmp_path / "link" / "mine"):
        with folders.open(str(path)) as folder:
            folder.check()
            assert (folder.path, folder.names) == (str(root / "mine"), ["config.json", "model.safetensors"])
            assert folder.open("config.json").read() == b"{}"


def test_what_lies_elsewhere_is_refused_alike_whether_it_is_there_or_not(root: Path, outside: Path) -> None:
    folders = LocalFolders(roots=(root,))
    (root / "leads-out").symlink_to(outside)
    (root / "leads-nowhere").symlink_to(outside / "nothing")
    tries = [
        *(outside, outside / "nothing", root / "nothing", root / "mine" / "config.json", root / "leads-out"),
        *(root / "leads-nowhere", root / "mine" / ".." / ".." / "outside", f"{root}-more", "/", "/proc/self/root"),
        *("/etc", "~", "~root", "./mine", "..", "x" * 5000, f"{root}/{'x' * 400}", f"{root}/mine\0", f"{root}/a\nb"),
    ]
    said = {refusal(folders, str(path)) for path in tries if len(str(path)) < 200 and str(path).isprintable()}
    assert len(said) == 1
    for path in tries:
        refusal(folders, str(path))


def test_what_is_spelled_as_lying_elsewhere_is_not_looked_for(root: Path, outside: Path) -> None:
    with touched(outside) as seen:
        refusal(LocalFolders(roots=(root,)), str(outside))
        refusal(LocalFolders(), str(outside))
    assert seen == []


def test_without_roots_nothing_is_read(root: Path) -> None:
    refusal(LocalFolders(), str(root / "mine"))


def test_a_link_out_of_the_roots_refuses_the_folder_whoever_would_have_read_it(root: Path, outside: Path) -> None:
    folders = LocalFolders(roots=(root,))
    for name in ("tokenizer.json", "README.md", "onnx"):
        link = root / "mine" / name
        link.symlink_to(outside if name == "onnx" else outside / "config.json")
        with pytest.raises(UnsafeModelFile, match=f"{name} leads outside"), folders.open(str(root / "mine")):
            pass
        link.unlink()


def test_links_that_stay_below_the_roots_are_followed(root: Path) -> None:
    (root / "mine" / "config.json").rename(root / "blob")
    (root / "mine" / "config.json").symlink_to("../blob")
    with LocalFolders(roots=(root,)).open(str(root / "mine")) as folder:
        assert folder.open("config.json").read() == b"{}"


def test_what_steerboard_keeps_is_never_read_not_even_through_a_link(tmp_path: Path) -> None:
    cached = model(tmp_path / ".steerboard" / "cache" / "models" / "0123")
    settings = Settings(home=tmp_path / ".steerboard", model_roots=f"{tmp_path}:/nowhere")
    refusal(settings.model_folders, str(cached))
    mine = model(tmp_path / "mine")
    (mine / "tokenizer.json").symlink_to(cached / "config.json")
    with pytest.raises(UnsafeModelFile), settings.model_folders.open(str(mine)):
        pass
    (tmp_path / "alias").symlink_to(cached)
    refusal(settings.model_folders, str(tmp_path / "alias"))
    elsewhere = model(tmp_path / "store" / "blobs")
    refusal(settings.model_copy(update={"artifact_url": f"file://{elsewhere.parent}"}).model_folders, str(elsewhere))


@pytest.mark.parametrize("kind", ["fifo", "device", "folder"])
def test_a_file_that_is_no_plain_one_neither_hangs_nor_opens(root: Path, kind: str) -> None:
    odd = root / "mine" / "tokenizer.json"
    if kind == "fifo":
        os.mkfifo(odd)
    elif kind == "folder":
        odd.mkdir()
    else:
        odd.symlink_to("/dev/zero")
    folders = LocalFolders(roots=(root, Path("/dev")))
    if kind == "folder":
        with folders.open(str(root / "mine")) as folder:
            assert "tokenizer.json" not in folder.names
        return
    with pytest.raises(UnsafeModelFile, match="plain file"), folders.open(str(root / "mine")):
        pass


def test_a_link_that_is_exchanged_after_the_check_leads_nowhere(root: Path, outside: Path) -> None:
    (outside / "config.json").write_text("secret")

    def exchange(folder: ModelFolder) -> None:
        (root / "mine" / "config.json").unlink()
        (root / "mine" / "config.json").symlink_to(outside / "config.json")

    with LocalFolders(roots=(root,)).open(str(root / "mine")) as folder:
        exchange(folder)
        with pytest.raises(UnsafeModelFile):
            folder.open("config.json")
    # The folder itself exchanged: what was opened is read, and nothing else.
    (root / "mine" / "config.json").unlink()
    (root / "mine" / "config.json").write_text("{}")
    with LocalFolders(roots=(root,)).open(str(root / "mine")) as folder:
        (root / "mine").rename(root / "moved")
        (root / "mine").symlink_to(outside)
        assert folder.open("config.json").read() == b"{}"


def test_files_and_folders_that_cannot_be_read_are_said(root: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    (root / "mine" / "config.json").chmod(0)
    with (
        LocalFolders(roots=(root,)).open(str(root / "mine")) as folder,
        pytest.raises(BadInput, match="cannot be read"),
    ):
        folder.fingerprint()
    (root / "mine").chmod(0)
    refusal(LocalFolders(roots=(root,)), str(root / "mine"))
    (root / "mine").chmod(0o700)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("org/name", "hub"),
        ("org/name@refs/pr/1", "hub"),
        ("random:tiny-llama", "random"),
        ("random:huge", None),
        (f"upload:{'0' * 64}", "upload"),
        (f"upload:{'0' * 64}/../x", None),
        ("./a", "folder"),
        ("../a", "folder"),
        ("~/a", "folder"),
        ("/a", "folder"),
        ("file:///a/b", None),
        ("org/..", None),
        ("../..", "folder"),
        ("org/name@../../x", None),
        ("org/name@/etc/passwd", None),
        ("org/name\n", None),
        ("a/b/c", None),
        ("models", None),
        ("o" * 500 + "/x", None),
        ("", None),
    ],
)
def test_what_a_base_model_is_called_tells_where_it_comes_from(source: str, kind: str | None) -> None:
    assert source_type(source) == kind


def test_only_files_of_models_are_taken() -> None:
    assert all(map(is_model_file, ("config.json", "model-00001-of-2.safetensors", "tokenizer_config.json", "a.jinja")))
    assert not any(
        map(is_model_file, ("model.bin", "tokenizer.py", "../config.json", ".tokenizer.json", "a/tokenizer.json"))
    )
