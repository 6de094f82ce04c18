"""Writing that a crash cannot tear: in which order things reach the disk, and what is there in between."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from regarde.errors import FolderError
from regarde.folder import manifest

Events = list[tuple[str, str]]


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Events:
    """What reaches the disk, and what gets or loses its name, in the order of it."""
    noted: Events = []

    def name(path: Path) -> str:
        return str(path.relative_to(tmp_path))

    def watch(owner: object, verb: str, where: Callable[..., Path]) -> None:
        real = getattr(owner, verb)

        def noting(*arguments: object) -> object:
            noted.append((verb, name(where(*arguments))))
            return real(*arguments)

        monkeypatch.setattr(owner, verb, noting)

    watch(os, "fsync", lambda handle: Path(f"/proc/self/fd/{handle}").readlink())
    watch(Path, "rename", lambda old, new: new)
    watch(Path, "replace", lambda old, new: new)
    watch(shutil, "rmtree", lambda path: path)
    return noted


def write(folder: Path, **contents: str) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_text(content)


def test_a_new_folder_gets_its_name_when_all_of_it_is_on_the_disk(events: Events, tmp_path: Path) -> None:
    with manifest.new_folder(tmp_path / "new") as inside:
        write(inside, a="1", b="2")
        assert not (tmp_path / "new").exists()
    named = events.index(("rename", "new"))
    for path in ("a", "b", ".manifest.json.new"):
        assert events.index(("fsync", f".new.new/{path}")) < named
    assert events[named - 1] == ("fsync", ".new.new")
    assert events[named + 1] == ("fsync", ".")
    assert manifest.read(tmp_path / "new").keys() == {"a", "b"}


def test_a_new_folder_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with manifest.new_folder(tmp_path / "new") as inside:
            write(inside, a="1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_removed_folder_is_never_seen_in_part(events: Events, tmp_path: Path) -> None:
    write(tmp_path / "old", a="1")
    manifest.remove_folder(tmp_path / "old")
    assert events == [("rename", ".old.new"), ("rmtree", ".old.new")]


def replaced(tmp_path: Path, **contents: str) -> Path:
    write(tmp_path / "folder")
    write(tmp_path / "folder" / ".staging", **contents)
    manifest.replace_files(tmp_path / "folder", tmp_path / "folder" / ".staging")
    return tmp_path / "folder"


def check(folder: Path) -> dict[str, str]:
    """Every file as its manifest wants it; gives what they hold."""
    for name, entry in manifest.read(folder).items():
        manifest.check_file(folder / name, entry)
    return {name: (folder / name).read_text() for name in manifest.read(folder)}


def test_replaced_files_are_whole_and_vouched_for_at_every_moment(tmp_path: Path, monkeypatch) -> None:
    folder = replaced(tmp_path, a="one", b="one", same="same")
    seen = []
    replace = Path.replace

    def watched(old: Path, new: Path) -> Path:
        seen.append(check(folder))
        moved = replace(old, new)
        seen.append(check(folder))
        return moved

    monkeypatch.setattr(Path, "replace", watched)
    replaced(tmp_path, a="two!", b="two!", same="same")
    assert [f"{held['a']} {held['b']}" for held in seen[::2]] == ["one one", "one one", "two! one", "two! two!"]
    assert check(folder) == {"a": "two!", "b": "two!", "same": "same"}
    assert "before" not in (folder / "manifest.json").read_text()


def test_what_is_on_the_disk_is_on_the_disk_before_it_is_named(events: Events, tmp_path: Path) -> None:
    replaced(tmp_path, a="one")
    events.clear()
    folder = replaced(tmp_path, a="two")
    manifests = [n for n, event in enumerate(events) if event == ("replace", "folder/manifest.json")]
    moved = events.index(("replace", "folder/a"))
    assert manifests[0] < moved < manifests[1]
    assert ("fsync", "folder/.staging/a") in events[: manifests[0]]
    assert ("fsync", "folder") in events[manifests[0] : moved]
    assert ("fsync", "folder") in events[moved : manifests[1]]
    assert check(folder) == {"a": "two"}


def test_a_damaged_file_is_not_vouched_for_by_being_replaced(tmp_path: Path, monkeypatch) -> None:
    folder = replaced(tmp_path, a="one", b="one")
    (folder / "a").write_text("onE")
    monkeypatch.setattr(Path, "replace", _once(Path.replace, then=OSError(5, "Input/output error")))
    with pytest.raises(OSError, match="Input/output"):
        replaced(tmp_path, a="two", b="two")
    with pytest.raises(FolderError, match="a: SHA-256 differs"):
        check(folder)


def _once(real: Callable[..., object], then: OSError) -> Callable[..., object]:
    """Works the first time: a manifest of both is there, no file has moved yet."""
    calls = []

    def call(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) > 1:
            raise then
        return real(*arguments)

    return call
