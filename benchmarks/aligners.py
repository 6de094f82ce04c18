"""How well pairs are aligned without a model, and what it costs, beside eflomal.

    python benchmarks/aligners.py --data DIR --out runs/aligners                             # ours
    python benchmarks/aligners.py --data DIR --out runs/aligners --eflomal /path/to/eflomal-align

DIR/align-gold has folders of gold alignments (`*.gold`, Pharaoh, ? for possible links). The Hansards are learned from
train-small + test, the others from their test pairs alone. eflomal is a program of its own: `pip install eflomal` in an
environment of its own. Both have the same lines; both directions run one after the other, on one thread. A row has the
alignment error rate in each direction, of the intersection and of agreement, and seconds of CPU of the aligning; ours
with three seeds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regarde.alignment.links import Link, pharaoh
from regarde.alignment.statistical import Aligner, Gibbs, Posterior
from regarde.alignment.symmetrize import Method, agreed, symmetrize
from regarde.data.formats import Pair
from regarde.process import command, environment

SEEDS = (1, 2, 3)
METHODS: tuple[Method, ...] = ("forward", "backward", "intersection", "agreement", "grow-diag-final-and")


@dataclass(frozen=True)
class Bitext:
    """A folder of gold alignments, its languages, and what is learned from besides the test pairs."""

    folder: str
    source: str
    target: str
    more: tuple[str, ...] = ()


BITEXTS = (
    Bitext("hansards-en-fr", "en", "fr", ("train-small",)),
    Bitext("naacl-ro-en", "ro", "en"),
    Bitext("europarl-de-en-bicici", "de", "en"),
)


def linked(found: Posterior, method: Method) -> list[Link]:
    """As `regarde align --symmetrize METHOD` links a pair."""
    if method == "agreement":
        return agreed(found.forward, found.backward)
    return symmetrize(*found.links(), method)


def timed(words: Sequence[object]) -> float:
    """Seconds of CPU that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def error(links: Path, gold: Path, out: Path) -> float:
    """The alignment error rate of the last links, as many as there are gold ones, in percent."""
    count = len(gold.read_text().splitlines())
    last = out / f"{links.name}.last"
    last.write_text("\n".join(links.read_text().splitlines()[-count:]) + "\n")
    words = command("regarde", "aer", str(last), str(gold), "--samples", "0", "--json")
    found: dict[str, float] = json.loads(
        subprocess.run(words, check=True, stdout=subprocess.PIPE, env=environment()).stdout
    )
    return 100 * found["aer"]


def row(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--eflomal", type=Path, help="eflomal-align, the program")
    parser.add_argument("--part", default="test", help="test, or dev to choose settings by")
    parser.add_argument("--only", default="", help="folders of DIR/align-gold, separated by commas")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    row("pairs", "aligner", *METHODS, "seconds of CPU")
    for bitext in BITEXTS:
        folder = given.data / "align-gold" / bitext.folder
        if (given.only and bitext.folder not in given.only.split(",")) or not (folder / f"{given.part}.gold").exists():
            continue
        sides = []
        for end in (bitext.source, bitext.target):
            text = "".join((folder / f"{part}.{end}").read_text() for part in (*bitext.more, given.part))
            sides.append(given.out / f"{bitext.folder}.{end}")
            sides[-1].write_text(text)
        gold = folder / f"{given.part}.gold"
        if given.eflomal:
            links = [given.out / f"eflomal.{bitext.folder}.{way}" for way in ("forward", "backward")]
            for old in links:  # it does not overwrite
                old.unlink(missing_ok=True)
            files = [word for pair in zip(("-s", "-t", "-f", "-r"), [*sides, *links], strict=True) for word in pair]
            seconds = timed([given.eflomal, *files])
            ways = [links[0].read_text().splitlines(), links[1].read_text().splitlines()]
            both = given.out / "eflomal.intersection"
            lines = (" ".join(sorted({*one.split()} & {*other.split()})) for one, other in zip(*ways, strict=True))
            both.write_text("".join(f"{line}\n" for line in lines))
            errors = [f"{error(one, gold, given.out):.1f}" for one in (*links, both)]
            row(bitext.folder, "eflomal", *errors, "", "", f"{seconds:.1f}")
        pairs = [Pair(*pair) for pair in zip(*(side.read_text().splitlines() for side in sides), strict=True)]
        for seed in SEEDS:
            before, errors = time.process_time(), []
            found = list(Aligner(Gibbs(seed=seed), threads=1).align(pairs))
            seconds = time.process_time() - before
            for method in METHODS:
                links = given.out / f"{bitext.folder}.{method}"
                links.write_text("".join(f"{pharaoh(linked(each, method))}\n" for each in found))
                errors.append(f"{error(links, gold, given.out):.1f}")
            row(bitext.folder, f"ours, seed {seed}", *errors, f"{seconds:.1f}")


if __name__ == "__main__":
    main()
