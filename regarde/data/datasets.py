"""The data sets that come with Regarde: generated, equal on every machine, most with gold links.

They need no download. The SHA-256 of each split is written here, so that figures of two machines can be compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from regarde.config import did_you_mean
from regarde.data import dateparts, dates, diary, hull, languages, rooms, toys, waves
from regarde.data.formats import Example, Pair
from regarde.data.generated import Split
from regarde.data.questions import Question
from regarde.errors import DataError, UsageError
from regarde.text.inference import Inference
from regarde.text.tokenizers import CharactersConfig

SPLITS: tuple[Split, ...] = get_args(Split)
_BABEL = f"The dates are made with Babel {dates.BABEL}: pip install babel=={dates.BABEL}"


@dataclass(frozen=True)
class Dataset:
    """A named source of examples in three splits."""

    name: str
    summary: str
    sample: Example | Question
    sizes: Mapping[Split, int]
    digests: Mapping[Split, str]
    generate: Callable[[Split], Iterator[Example | Question]]
    remedy: str = "Please report it."  # what to do if the data differs from its digests
    task: Literal["translation", "classification", "tagging", "modeling", "questions", "forecasting"] = "translation"
    text: Inference | None = None  # the tokenizer of both sides, if the examples do not tell it

    def split(self, name: str) -> Iterator[Example | Question]:
        """The examples of a split, in an order that is always the same."""
        return self.generate(self._known(name))

    def only(self, languages: Sequence[str]) -> Dataset:
        """The same data set in some of its languages."""
        if self.name != "dates":
            raise UsageError(f"--languages: {self.name} is not made of languages. Leave it out, or use dates.")
        return replace(self, generate=lambda split: dates.examples(split, languages))

    def has_links(self) -> bool:
        """Whether the gold links of its examples are known."""
        return bool(next(self.generate("valid")).links)

    def check(self, name: str) -> str:
        """The SHA-256 of a split; a DataError if it is not the one written here."""
        known = self._known(name)
        found = digest(self.generate(known))
        if found != self.digests[known]:
            wanted = self.digests[known]
            raise DataError(f"{self.name} {name}: SHA-256 is {found[:12]}…, expected {wanted[:12]}…. {self.remedy}")
        return found

    def _known(self, name: str) -> Split:
        for split in SPLITS:
            if split == name:
                return split
        raise UsageError(f"{name}: no such split of {self.name}. Known: {', '.join(SPLITS)}.")


def dataset(name: str) -> Dataset:
    """The data set of that name."""
    if name in DATASETS:
        return DATASETS[name]
    raise UsageError(f"{name}: no such data set.{did_you_mean(name, DATASETS)} Known: {', '.join(DATASETS)}.")


def no_such_data(name: object) -> DataError:
    """The error for a name that is neither a file nor a data set."""
    hint = did_you_mean(str(name), DATASETS)
    return DataError(f"{name}: no such file or data set.{hint} Embedded: {', '.join(DATASETS)}.")


def digest(examples: Iterable[Example | Question]) -> str:
    """The SHA-256 of examples as the lines of a file, links included."""
    sha = hashlib.sha256()
    for example in examples:
        sha.update(f"{example.line(links=True)}\n".encode())
    return sha.hexdigest()


_ROOMS: dict[str, dict[Split, str]] = {
    "all": {
        "train": "eac02c6f6498f6308ef218f62b4ba06220119a6b1b8ec4cd9d3d0fae6c5706e7",
        "valid": "f284b2529c834195b4501d0cf928f4550031b6034c56d7d8024eaa0038facd53",
        "test": "e65de406a78c82b1813fae33f9a87da77c4b526878a8241f59e897d5ca394eb3",
    },
    "one": {
        "train": "0753e0b7c2ae07a16de5e79aa4745f5c92e778297575e83a62b41d1b16770470",
        "valid": "94f6b49eaf6b5e835a8937e6526cc27da585cedb8cb58325ec1910a510d1f11f",
        "test": "360d2c9d4cd35fec32f36256d2561b5c84722c0fb0ac14fa2f4bb43ce24a05ca",
    },
    "two": {
        "train": "2df83e9feda5f70e2318807af44fc7fbd58d6ae377dfa3b5fba512e3882aa71e",
        "valid": "f8104aab580786a8a344c8228d046e7ac277dd43cb0bd40c32ae95c359259dca",
        "test": "0c1e8d2c36d03370a26154eeb6d4de050dd82a1556692a290798eaa503249243",
    },
    "three": {
        "train": "285f3b234b5cfaab24f1ab40a11cdf7600dc34074e69cc1fc7b5b85a772d86d4",
        "valid": "874023edbe592c4e3850fc5226592d7f8b04b5ad1947d5c4f3e07aff1214a1e8",
        "test": "f7953c26acb8f82a3b22caf07fab0b84b7f4d921089a4b7fbb8d81aa5cab2dfb",
    },
    "before": {
        "train": "a5dbdf22657bd666bb27fa9210f016689729d2337461bc0566ca736b897512bc",
        "valid": "a308a12f9afb2e4e5d4dc1e01997ffbdba29b399561fb81d5c343a8d4f68cda5",
        "test": "bbcb190fe531dab4d65465736adf928e272ae5209eef8ebf1e44c98de4a698a1",
    },
    "yes-no": {
        "train": "6a52eb3d81ad970c927a15df73e350601d8d74a3e4781caed88b2e98a11af359",
        "valid": "8fa23b620b8d6175651b23b9d233fa9609fd34a7c02a14b41466050bdcfe8b47",
        "test": "9ab0446e5fe943c598b48e09ec1ba6b746d9dde1c32de44fa3cf7774d85031b5",
    },
    "counting": {
        "train": "2d7bd06f07a2ecd7fb8c2af4ec450a42877bebf612627eb09b969bc6935f64bf",
        "valid": "787f8aadf2f79e981da95dd4d15b1b204d5c6e6951c85fb283fb4368391207c4",
        "test": "74568635f707fe3b19f1b8c68ffe8d0125ba52828d57ed40435993b78c84967d",
    },
}


def _rooms(kind: rooms.RoomsKind | None) -> Dataset:
    """The questions of one kind, or of all."""
    which = {"yes-no": "to be answered yes or no", "counting": "that count", "before": "about a room before"}
    of = which.get(kind, f"with {'one fact' if kind == 'one' else f'{kind} facts'} to find") if kind else "of six kinds"
    return Dataset(
        name=f"rooms-{kind}" if kind else "rooms",
        summary=f"who is where and who has what: questions {of}",
        sample=rooms.SAMPLES[kind or "two"],
        sizes=rooms.SIZES,
        digests=_ROOMS[kind or "all"],
        generate=rooms.examples(kind),
        task="questions",
    )


DATASETS: dict[str, Dataset] = {
    "dates": Dataset(
        name="dates",
        summary="written dates in 31 languages -> ISO 8601",
        sample=Example(Pair("Dienstag, 7. März 2023", "2023-03-07")),
        sizes=dates.SIZES,
        digests={
            "train": "bbbf3fd8966ad32d96cbd4a3ad869bcf3d31bcf1238d01fbb6318c943f6f99c9",
            "valid": "a2fd78437173d968d52d1d1713949f9d86cb0ba7ad66750df5e7b66647b43445",
            "test": "3413a431d8f820ef1655f58ec3f48a1081ec24cd6c44f4b24209c33c26f273ea",
        },
        generate=dates.examples,
        remedy=_BABEL,
    ),
    "copy": Dataset(
        name="copy",
        summary="random letters -> the same",
        sample=Example(Pair("regarde", "regarde")),
        sizes=toys.SIZES,
        digests={
            "train": "edb26e360ebf5a1625b14eae0cc3ccbf428034ed82225022088b2db4827f872e",
            "valid": "0602bc69259111e4f9ffab11d61701378990fe426adf5d53cfc2ebf7e9216e4c",
            "test": "19d1500e2e769ddd7a4c2f313e1b026fb0647091b72beabda433eaae6a3f1e79",
        },
        generate=toys.copy,
    ),
    "reverse": Dataset(
        name="reverse",
        summary="random letters -> the same from the end",
        sample=Example(Pair("regarde", "edrager")),
        sizes=toys.SIZES,
        digests={
            "train": "71c8c88e4d4a03fe0ca86fe0107f34a324ce7c82ab32d8bc1e9b2b2e9219209d",
            "valid": "123a23f13d74150ce89bcd2b8fa2beff56f0bcd2c687403137abee49176b5815",
            "test": "75d49383f16a90e9af53ce6c8594c37869778141f6b0c75d93b5b8879aa5b229",
        },
        generate=toys.reverse,
    ),
    "sort": Dataset(
        name="sort",
        summary="random letters -> in alphabetical order",
        sample=Example(Pair("regarde", "adeegrr")),
        sizes=toys.SIZES,
        digests={
            "train": "8f462c08f24c597f79e1c9fae5d5a174a87ca1817e89ca443bf02750e88ca452",
            "valid": "3f0481bb94b34fc47168a4595102fc24ffc418e0bbc55c0899608e1cf5902425",
            "test": "8ffdd956cc9e1cda9d0bccb0d6bbd138724496962f9791d46991cf16d42760e1",
        },
        generate=toys.sort,
    ),
    "hull": Dataset(
        name="hull",
        summary="points -> their convex hull, counter-clockwise",
        sample=Example(Pair("0.10,0.20 0.55,0.40 0.90,0.15 0.60,0.95", "0.10,0.20 0.90,0.15 0.60,0.95")),
        sizes=hull.SIZES,
        digests={
            "train": "5ef3b9aa8b267a4f8bc90cf5bd9094e3be778922d445d3e8893fe4e043ad8610",
            "valid": "8fa0e8a2bc0add02d69292692298c490bab4cd5b0c8c32541fde3661f9a6e400",
            "test": "ff9273e32f7179b5d6317aaee4eba0f1cc6104bc21f5f7174b1768ae3bfb4339",
        },
        generate=hull.examples,
    ),
    "languages": Dataset(
        name="languages",
        summary="written dates in 31 languages -> the language",
        sample=Example(Pair("Dienstag, 7. März 2023", "de")),
        sizes=languages.SIZES,
        digests={
            "train": "7099bff6255d92a4ce8d3e01444b64fbd4dc4c8fc23cf675cd46fa45a1e31515",
            "valid": "dd6f572d07191566da409a23d2fbf98c90fe9f4f1d41986605a7c4717d6460e8",
            "test": "219113c7fed0e554d5224b42c7e0247542a60bf68c1263d22d481b77d15fa3c8",
        },
        generate=languages.examples,
        remedy=_BABEL,
        task="classification",
    ),
    "date-parts": Dataset(
        name="date-parts",
        summary="written dates in 31 languages -> the part that each character belongs to",
        sample=Example(Pair("2023/3/7", "year year year year other month other day")),
        sizes=dateparts.SIZES,
        digests={
            "train": "0ea5bac8995ecc0a7ef9f046b929f387db648bfd18602ceb4f77428489a2e8e5",
            "valid": "3847e5423c5be6f3bccb8c7e8fd84a14de6197923e863f7ce373128e8bb32eb6",
            "test": "f70e953f8462e92b2b5c46e6089c786b124fbc51fe2163c414a6770cb10f1bd7",
        },
        generate=dateparts.examples,
        remedy=_BABEL,
        task="tagging",
    ),
    "diary": Dataset(
        name="diary",
        summary="lines of English about today and the days around it",
        sample=Example(
            Pair(
                "",
                "Today is Tuesday, 7 March 2023. Tomorrow is Wednesday, 8 March 2023. "
                "Three days ago it was Saturday, 4 March 2023. In a week it is Tuesday, 14 March 2023.",
            )
        ),
        sizes=diary.SIZES,
        digests={
            "train": "7d6ee81c1dde6142807f5b9cf1e65e26b93dd4c8f3cb080ccebed6cc69c7bcd4",
            "valid": "84a2869532e2e33b6848dd3fbd8fc97866b85bc39ae0d408710367950aa9db8f",
            "test": "2c41c9ae58c1870d3a45a4a76ef02755c399c497c55d82f140827ed7821d6ce8",
        },
        text=Inference(CharactersConfig(), "characters: the years of valid and test are not in train"),
        generate=diary.examples,
        remedy=_BABEL,
        task="modeling",
    ),
    "waves": Dataset(
        name="waves",
        summary="hourly series with days and weeks of their own -> the next two days",
        sample=Example(
            Pair("", '{"id": "wave-1", "start": "2024-01-01T00:00:00", "freq": "h", "target": [93.4, 101.2, …]}')
        ),
        sizes=waves.SIZES,
        digests={
            "train": "d35acb2b5237f9945e12fc84eb821b71c481109e69289689773dce969c5a2438",
            "valid": "ed9806d73fb4f024f853a15698a009113a7a0cbb19c7acd1dad062d301f78966",
            "test": "20d63ba50aad5d770639ab78191cdd1470ce7098ca2ae108c1825ada37499b28",
        },
        generate=waves.examples,
        task="forecasting",
    ),
}
DATASETS |= {each.name: each for each in map(_rooms, (None, *rooms.KINDS))}
