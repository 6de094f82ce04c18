"""`regarde data`: list the embedded data sets, print one, write it to files, or check it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from regarde.cli import completion, options
from regarde.cli.options import argument, flag, option
from regarde.data.corpus import ReadOptions
from regarde.data.lines import File
from regarde.data.records import files_in
from regarde.errors import DiskError, UsageError, warn
from regarde.streaming.streams import write

if TYPE_CHECKING:
    from regarde.data.datasets import Dataset


CONVERT = "convert"


def data(
    name: Annotated[
        str | None, argument("[NAME]", "Data set, or convert. Default: list all.", complete=completion.datasets)
    ] = None,
    files: Annotated[
        list[Path] | None, argument("[FILES]...", "Files of pairs to convert; - for standard input.")
    ] = None,
    split: Annotated[
        str | None, option("NAME", "Split: train, valid or test. Default: train to print, all to write.")
    ] = None,
    out: Annotated[Path | None, option("PATH", "Write to this file (with --split) or folder (all splits).")] = None,
    languages: Annotated[
        str,
        option(
            "NAMES",
            "Print only dates in these languages, for example en,fi. For convert: the languages of a .tmx file, en:de.",
        ),
    ] = "",
    links: Annotated[bool, flag("--links", "Add the gold links as a third column (Pharaoh format).")] = False,
    check: Annotated[bool, flag("--check", "Check the SHA-256 of each split.")] = False,
    columns: options.Columns = None,
    header: options.Header = None,
    quotes: options.Quotes = None,
    on_error: options.OnError = "stop",
) -> None:
    """List the embedded data sets, print or write one as lines of source TAB target, or convert files of pairs.

    The target is a text, a label, or one tag for each character. Text for a language model is plain lines, questions
    are JSON lines with their passage, answer and supporting sentences.

    regarde data convert FILES --out FILE reads files of pairs and writes one, each in the format of its suffix: .tsv,
    .jsonl, .csv, .tmx, .parquet or .arrow, text also compressed (.gz, .bz2, .xz, .zst). Without --out it prints lines.

    Example: regarde data dates --split test --links | head -3
    """
    from regarde.data.datasets import SPLITS, dataset

    if name == CONVERT:
        if split is not None or links or check:
            raise UsageError("--split, --links and --check are for embedded data sets. Leave them out.")
        _convert(files or [], ReadOptions(columns, False, header, quotes, on_error), out, languages)
        return
    if files or columns or header is not None or quotes is not None:
        raise UsageError("Files and how they are read are for convert: regarde data convert FILES --out FILE")
    if name is None:
        if split is not None or out is not None or languages or links or check:
            raise UsageError("regarde data: an option without a data set. Name one, for example: regarde data dates")
        _print(_listing())
        return
    chosen = dataset(name)
    if check:
        if out is not None or languages or links:
            raise UsageError("--check: no data is written. Leave out --out, --languages and --links.")
        _print(f"{name}\t{part}\t{chosen.check(part)}\tok" for part in (SPLITS if split is None else [split]))
        return
    if languages:
        chosen = chosen.only(languages.split(","))
    if links and not chosen.has_links():
        raise UsageError(f"{name} has no gold links. Leave out --links.")
    if out is None:
        _print(example.line(links=links) for example in chosen.split("train" if split is None else split))
    elif split is None:
        _write_all(chosen, out, links)
    else:
        _write(chosen, split, out / _file(chosen, split) if out.is_dir() else out, links)


def _convert(names: list[Path], options: ReadOptions, out: Path | None, languages: str) -> None:
    from regarde.data.corpus import Report, read_pairs
    from regarde.data.writing import LANGUAGES, line_of, write_pairs

    if not names:
        raise UsageError("convert: which files? For example: regarde data convert corpus.tmx --out corpus.parquet")
    if out is not None:
        _refuse_existing(out)
    source, colon, target = (languages or ":".join(LANGUAGES)).partition(":")
    if not (source and colon and target) or source == target:
        raise UsageError(f"--languages {languages}: expected two that differ, source:target, for example en:de.")
    files: list[File] = ["-" if str(name) == "-" else name for name in names]
    paths = [each for file in files for each in (files_in(file) if file != "-" and file.is_dir() else [file])]
    report = Report()
    pairs = read_pairs(
        paths,
        columns=options.columns,
        header=options.header,
        quotes=options.quotes,
        on_error=options.on_error,
        report=report,
    )
    if out is None:
        write(map(line_of, pairs))
    else:
        write_pairs(pairs, out, (source, target))
        warn(f"{out}: {report.summary()}")
    for note in report.notes():
        warn(note)


def _listing() -> Iterator[str]:
    from regarde.data.datasets import DATASETS

    for entry in DATASETS.values():
        sizes = ", ".join(f"{split} {size:,}" for split, size in entry.sizes.items())
        source, target = entry.sample.source.replace("\t", "  "), entry.sample.target
        yield f"{entry.name:<14} {entry.task}: {entry.summary} ({sizes})"
        yield f"{'':<14} {source} -> {target}" if source else f"{'':<14} {target}"


def _print(lines: Iterator[str]) -> None:
    write(f"{line}\n" for line in lines)


def _write_all(chosen: Dataset, folder: Path, links: bool) -> None:
    from regarde.data.datasets import SPLITS

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(f"{folder} is a file; three splits need a folder. Give a folder, or one --split.") from None
    except OSError as error:
        raise DiskError(f"{folder}: cannot be created ({error.strerror}). Give another --out.") from None
    for split in SPLITS:
        _refuse_existing(folder / _file(chosen, split))
    for split in SPLITS:
        _write(chosen, split, folder / _file(chosen, split), links)


def _file(chosen: Dataset, split: str) -> str:
    suffix = {"modeling": "txt", "questions": "jsonl", "forecasting": "jsonl"}.get(chosen.task, "tsv")
    return f"{split}.{suffix}"


def _write(chosen: Dataset, split: str, path: Path, links: bool) -> None:
    examples = chosen.split(split)
    _refuse_existing(path)
    part = path.with_name(f"{path.name}.part")  # a name of its own, so that no half file passes for a whole one
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{example.line(links=links)}\n" for example in examples)
        part.replace(path)
    except OSError as error:
        raise DiskError(f"{path}: not written ({error.strerror}). Give another --out, or make room.") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise UsageError(f"{path} exists and is not overwritten. Give another --out, or remove it.")
