"""Loads model folders that were changed at random, each vouched for by its manifest; run as a process of its own.

    python malformed.py FOLDER SEED COUNT

FOLDER holds whole model folders to change. Every change must end in an error of regarde.errors, or in a model: one that
torch too takes for one, or that says what the unchanged one says. Whatever else happens ends the process: another
error, a crash, more than a limit of memory or time. The last line says how many were loaded and how many refused.
"""

from __future__ import annotations

import hashlib
import json
import random
import resource
import shutil
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regarde.errors import RegardeError
from regarde.folder import loading
from regarde.folder import model as folder
from regarde.native import library
from regarde.search import Greedy

MOST_MEMORY = 256 << 20  # beyond what is there at the start; the models take a few kilobytes
MOST_SECONDS = 5.0  # of one load
NUMBERS = [-1, 0, 1, 2, 3, 7, 65_536, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 + 1, 10**400]
ODD: list[Any] = [*NUMBERS, 1.5, 2.0, True, None, "", "3", "x" * 300, [], {}, [[3]], "\ud800", "\0"]
TYPES = ["F32", "F64", "F16", "BF16", "I8", "U8", "I64", "BOOL", "F8_E4M3", "f32", "X", *ODD]
TOML = [
    *("-1", "0", "1", "2", "3", "65536", "4294967296", "9223372036854775807", "9223372036854775808", "1e308", "nan"),
    *("inf", "0.5", "true", "false", '""', '"x"', '"a\\u0000b"', "[]", "[1]", "{}", "1979-05-27", "9" * 5000),
]


def header(content: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def joined(entries: Any, data: bytes) -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + data


def other_length(draw: random.Random, content: bytes) -> bytes:
    length = draw.choice(
        [0, 1, 7, 8, draw.getrandbits(16), draw.getrandbits(32), draw.getrandbits(64), 2**63, 2**64 - 1]
    )
    return struct.pack("<Q", length) + content[8:]


def other_entry(draw: random.Random, content: bytes) -> bytes:
    """One field of one tensor, or the names of tensors."""
    entries, data = header(content)
    name = draw.choice(sorted(entries))
    entry = entries[name]
    match draw.randrange(8):
        case 0:
            entry["dtype"] = draw.choice(TYPES)
        case 1:
            entry["shape"] = draw.choice([*ODD, [2] * 100_000, [2**16] * 4, [0, *entry["shape"]], entry["shape"][::-1]])
        case 2:
            shape = entry["shape"] or [1]
            shape[draw.randrange(len(shape))] = draw.choice(ODD)
        case 3:
            entry["data_offsets"] = draw.choice([*ODD, [0], [0, 0, 0], entry["data_offsets"][::-1]])
        case 4:
            entry["data_offsets"][draw.randrange(2)] = draw.choice([*ODD, draw.randrange(len(data) + 9)])
        case 5:
            entries[draw.choice(["", "x", "\ud800", f"{name}\0", "y" * 10_000, draw.choice(sorted(entries))])] = entry
            if draw.random() < 0.5:
                entries.pop(name, None)
        case 6:
            entries[name] = draw.choice(ODD)
        case 7:
            one, two = draw.choice(sorted(entries)), draw.choice(sorted(entries))
            entries[one], entries[two] = entries[two], entries[one]
    return joined(entries, data)


def other_header(draw: random.Random, content: bytes) -> bytes:
    """Something else than a table of tensors, or one with more in it."""
    entries, data = header(content)
    wild: list[Any] = [
        [],
        None,
        3,
        "x",
        {"__metadata__": draw.choice(ODD)} | entries,
        {str(n): {"dtype": "F32", "shape": [], "data_offsets": [0, 4]} for n in range(2000)},
        entries | {"more": {"dtype": "F32", "shape": [0], "data_offsets": [len(data), len(data)]}},
        entries | {"more": {"dtype": "F32", "shape": [1], "data_offsets": [len(data), len(data) + 4]}},
    ]
    return joined(draw.choice(wild), data + bytes(draw.choice([0, 4])))


def other_bytes(draw: random.Random, content: bytes) -> bytes:
    """Bytes that differ, are missing, or are too many."""
    changed = bytearray(content)
    match draw.randrange(4):
        case 0:
            for _ in range(draw.randint(1, 20)):
                changed[draw.randrange(len(changed))] = draw.randrange(256)
        case 1:
            del changed[draw.randrange(len(changed)) :]
        case 2:
            place = draw.randrange(len(changed))
            changed[place:place] = draw.randbytes(draw.randint(1, 40))
        case 3:
            place = draw.randrange(len(changed))
            changed[place : place + 4] = struct.pack("<f", draw.choice([float("nan"), float("inf"), 3e38]))
    return bytes(changed)


def other_setting(draw: random.Random, content: bytes) -> bytes:
    """One value of a configuration, or its lines."""
    lines = content.decode().splitlines()
    number = draw.choice([i for i, line in enumerate(lines) if " = " in line])
    match draw.randrange(5):
        case 0 | 1:
            lines[number] = f"{lines[number].partition(' = ')[0]} = {draw.choice(TOML)}"
        case 2:
            lines[number] = f"{lines[number].partition(' = ')[0]} = {draw.choice(lines).partition(' = ')[2]}"
        case 3:
            del lines[number]
        case 4:
            lines.insert(number, draw.choice([*lines, "x = 1", '"\\u0000" = 1', "[model]", 'precision = "int8"']))
    return "\n".join(lines).encode()


def other_lines(draw: random.Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    number = draw.randrange(len(lines))
    lines[number : number + draw.randrange(2)] = [draw.choice([b"", b"\xff", b"x" * 99, b"\0", lines[0], b"\r"])]
    return b"\n".join(lines)


CHANGES: list[tuple[str, Callable[[random.Random, bytes], bytes]]] = [
    *[("weights.safetensors", change) for change in (other_length, other_entry, other_entry, other_entry)],
    *[("weights.safetensors", change) for change in (other_header, other_bytes)],
    *[("config.toml", change) for change in (other_setting, other_setting, other_bytes)],
    *[("source.vocab", change) for change in (other_lines, other_bytes)],
]


def vouch(model: Path) -> None:
    files = {}
    for path in model.iterdir():
        if path.name != "manifest.json":
            content = path.read_bytes()
            files[path.name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (model / "manifest.json").write_text(json.dumps({"format": 1, "files": files}))


def tried(model: Path, unchanged: Path | None = None) -> str:
    """How a folder is taken: "loaded", or the name of the error that refused it."""
    began = time.process_time()
    try:
        loaded = loading.load(model)
        found = loaded.translate("ab", search=Greedy())
    except RegardeError as error:
        return type(error).__name__ if "\n" not in str(error) else repr(str(error))
    finally:
        assert time.process_time() - began < MOST_SECONDS
    if unchanged and loaded.engine.name == "native":
        try:
            folder.load(model)
        except RegardeError:  # of a setting that matters to training alone
            expected = loading.load(unchanged).translate("ab", search=Greedy())
            assert (found.tokens, found.score) == (expected.tokens, expected.score)
    return "loaded"


def main(models: Path, seed: int, count: int) -> None:
    draw = random.Random(seed)
    bases = sorted(path for path in models.iterdir() if not path.name.startswith("."))
    for base in bases:
        assert tried(base) == "loaded"  # as it is
        folder.load(base)  # and everything that torch imports is there now
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + MOST_MEMORY, resource.RLIM_INFINITY))
    seen: Counter[str] = Counter()
    began = time.process_time()
    model = models / ".changed"
    for number in range(count):
        base, (name, change) = draw.choice(bases), draw.choice(CHANGES)
        shutil.rmtree(model, ignore_errors=True)
        shutil.copytree(base, model)
        (model / name).write_bytes(change(draw, (model / name).read_bytes()))
        vouch(model)
        (models / ".case").write_text(f"case {number} of seed {seed}: {change.__name__} of {name} in {base.name}\n")
        seen[tried(model, base)] += 1
    simd = library.simd() if library.available() else "none"
    print(json.dumps({"simd": simd, "seconds": round(time.process_time() - began, 1), **seen}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
