"""The tokenizers of Hugging Face folders as ours, and which of their ids each id of ours is.

Our first four ids are PAD, UNK, BOS and EOS; the others follow in their order. BOS is what their decoder starts with:
the padding of Marian, the end of BART, the language of mBART. That token has a row of its own too if it can be said, so
then BOS is a copy that cannot. Ids without a token, and special ones, have no text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regarde.errors import FolderError, UsageError
from regarde.interop.hub import RESTORE, TOKENIZER, HubFolder
from regarde.text.bytepairs import BytePairsConfig
from regarde.text.pieces import CLOSE, OPEN, PiecesConfig, TokenTable
from regarde.text.sentencepieces import all_pieces, any_processor
from regarde.text.sides import Text, TextConfig, TokenizerConfig
from regarde.text.tokenizers import BOS, CONTROLS, EOS, PAD, UNK

NONE = -1  # the row of a token that they do not have
END, START, UNKNOWN_TOKEN, PADDING = "</s>", "<s>", "<unk>", "<pad>"
SPECIAL = frozenset({START, END, PADDING, UNKNOWN_TOKEN, "<mask>", "<|endoftext|>"})
MADE = "<id {}>"  # the name of an id without a token
DEFAULT_CLASSES = {
    "marian": "MarianTokenizer",
    "bart": "BartTokenizer",
    "mbart": "MBartTokenizer",
    "m2m_100": "M2M100Tokenizer",
    "gpt2": "GPT2Tokenizer",
}
# languages that tokenizers know by heart, in the order of their ids
M2M_LANGUAGES = """
    af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy
    id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru
    sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu
""".split()  # noqa: SIM905
MBART_LANGUAGES = """
    ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX
    ro_RO ru_RU si_LK tr_TR vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN
    pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI
""".split()  # noqa: SIM905
KNOWN = {
    "MBartTokenizer": MBART_LANGUAGES[:25],
    "MBart50Tokenizer": MBART_LANGUAGES,
    "M2M100Tokenizer": [f"__{code}__" for code in M2M_LANGUAGES],
}
Ids = Mapping[str, int]


@dataclass(frozen=True)
class Languages:
    """What the user asks for."""

    source: str = ""
    target: str = ""


@dataclass(frozen=True)
class AdoptedSide:
    """One side: its tokens by our ids, and the model that splits text."""

    table: TokenTable
    model: bytes
    rows: tuple[int, ...]  # their id of each of ours

    def ours(self, theirs: int) -> int:
        """Our id of one of theirs: BOS is a copy, unless theirs cannot be said."""
        copied = theirs in self.rows[EOS:]
        return next(i for i, row in enumerate(self.rows) if row == theirs and not (i == BOS and copied))


@dataclass(frozen=True)
class AdoptedText:
    """Both sides, and what the model has to know of them."""

    config: TextConfig
    source: AdoptedSide
    target: AdoptedSide
    first: int | None = None  # what every answer begins with
    source_end: int | None = None  # what the encoder reads as the end of a source

    @property
    def text(self) -> Text:
        source, target = (
            config.made(side.table, side.model)  # type: ignore[union-attr]
            for config, side in ((self.config.source, self.source), (self.config.target, self.target))
        )
        return Text(source, target, self.config.normalize)

    @property
    def never(self) -> tuple[int, ...]:
        """Our target ids that cannot be said: their row is nothing, or a copy of another."""
        rows = self.target.rows
        copied = rows[BOS] in rows[:BOS] + rows[EOS:]
        return tuple(i for i in (PAD, UNK, BOS) if rows[i] == NONE or (i == BOS and copied))


@dataclass(frozen=True)
class Controls:
    """Their ids of our controls."""

    pad: int
    unk: int
    start: int
    eos: int
    spoken: bool  # whether the start can be said, so that it keeps a row of its own

    def rows(self, count: int) -> tuple[int, ...]:
        first = (self.pad, self.unk, self.start, self.eos)
        own = {self.pad, self.unk, self.eos, *(() if self.spoken else (self.start,))}
        return (*first, *(i for i in range(count) if i not in own))


def adopt(folder: HubFolder, languages: Languages) -> AdoptedText:
    """The tokenizers of a folder."""
    name = _class(folder)
    if name not in READERS:
        known = ", ".join(READERS)
        raise FolderError(f"{folder.path / TOKENIZER}: {name} is not supported. Supported: {known}.")
    try:
        return READERS[name](folder, languages)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else error
        raise FolderError(f"{folder.path}: its tokenizer is damaged: {reason}. {RESTORE}") from None


def _class(folder: HubFolder) -> str:
    return str(folder.tokenizer.get("tokenizer_class") or DEFAULT_CLASSES[folder.config["model_type"]]).removesuffix(
        "Fast"
    )


def _marian(folder: HubFolder, languages: Languages) -> AdoptedText:
    separate = bool(folder.tokenizer.get("separate_vocabs"))
    ids = _ids(folder, "vocab.json")
    target_ids = _ids(folder, "target_vocab.json") if separate else ids
    count = folder.config["vocab_size"]
    sides = [
        _side(folder, ids, count, folder.file("source.spm")),
        _side(folder, target_ids, folder.config.get("decoder_vocab_size") or count, folder.file("target.spm")),
    ]
    for side in sides:
        all_pieces(any_processor(side.model))
    before = ""
    known = [token.removeprefix(OPEN).removesuffix(CLOSE) for token in ids if token.startswith(OPEN)]
    if languages.target and known:
        before = f"{OPEN}{languages.target}{CLOSE}"
        _check_language(languages.target, before in ids, known, "--target-language")
    return _adopted(folder, PiecesConfig(before=before), PiecesConfig(), *sides, shared=not separate)


def _byte_pairs(folder: HubFolder, languages: Languages) -> AdoptedText:
    if folder.has("vocab.json") and folder.has("merges.txt"):
        ids, merges = _ids(folder, "vocab.json"), folder.file("merges.txt")
        prefixed = bool(folder.tokenizer.get("add_prefix_space"))
    else:
        whole = json.loads(folder.file("tokenizer.json"))
        model = whole["model"]
        if model["type"] != "BPE" or "ByteLevel" not in json.dumps(whole["pre_tokenizer"]):
            raise ValueError("tokenizer.json is no byte-level byte-pair encoding")
        pairs = (pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"])
        ids, merges = dict(model["vocab"]), "\n".join(pairs).encode()
        ids |= {token["content"]: token["id"] for token in whole.get("added_tokens", [])}
        prefixed = bool(whole["pre_tokenizer"].get("add_prefix_space"))
    if prefixed:
        raise ValueError("add_prefix_space = true is not supported")
    before = START if folder.config["model_type"] != "gpt2" else ""
    side = _side(folder, ids, folder.config["vocab_size"], merges)
    config = BytePairsConfig(before=before)
    return _adopted(folder, config, config, side, side)


def _fairseq(folder: HubFolder) -> tuple[Ids, bytes]:
    """Ids of a sentencepiece model as fairseq has them: four controls, the pieces, and what was added."""
    if not folder.has("sentencepiece.bpe.model"):
        raise ValueError("it has no sentencepiece.bpe.model; copy that of the model that it was made from")
    model = folder.file("sentencepiece.bpe.model")
    pieces = all_pieces(any_processor(model))[3:]  # after their <unk>, <s> and </s>
    ids = {START: 0, PADDING: 1, END: 2, UNKNOWN_TOKEN: 3} | {piece: 4 + n for n, piece in enumerate(pieces)}
    return {**ids, **_added(folder, len(ids))}, model


def _added(folder: HubFolder, count: int = 0) -> Ids:
    """Tokens that are not of the model that splits text, languages above all; after so many ids if files do not say."""
    found = {entry["content"]: int(n) for n, entry in folder.tokenizer.get("added_tokens_decoder", {}).items()}
    if folder.has("tokenizer.json"):
        added = json.loads(folder.file("tokenizer.json")).get("added_tokens", [])
        found |= {entry["content"]: entry["id"] for entry in added}
    if not found.keys() <= SPECIAL:
        return found
    about = dict(folder.tokenizer)
    if folder.has("special_tokens_map.json"):
        about |= json.loads(folder.file("special_tokens_map.json"))
    names = about.get("additional_special_tokens") or about.get("extra_special_tokens") or KNOWN.get(_class(folder), [])
    new = [name for name in names if name not in SPECIAL]
    return {**found, **{name: count + n for n, name in enumerate(new)}}


def _mbart(folder: HubFolder, languages: Languages) -> AdoptedText:
    """The source is followed by its end and its language, with which the decoder of the other language starts."""
    ids, model = _fairseq(folder)
    source = _chosen(folder, languages.source or str(folder.tokenizer.get("src_lang") or ""), ids, "source")
    start = (
        _chosen(folder, languages.target, ids, "target") if languages.target else folder.id("decoder_start_token_id")
    )
    if start is None:
        start = _chosen(folder, "", ids, "target")
    side = _side(folder, ids, folder.config["vocab_size"], model, start)
    return _adopted(folder, PiecesConfig(after=END), PiecesConfig(), side, side, source_end=side.ours(source))


def _language_first(folder: HubFolder, languages: Languages) -> AdoptedText:
    """Source and target begin with their languages."""
    if folder.has("vocab.json"):
        model = folder.file("sentencepiece.bpe.model")
        all_pieces(any_processor(model))
        ids = _ids(folder, "vocab.json")
        ids = {**ids, **_added(folder, len(ids))}
    else:
        ids, model = _fairseq(folder)
    side = _side(folder, ids, folder.config["vocab_size"], model)
    names = []
    for given, which in ((languages.source, "source"), (languages.target, "target")):
        lacking = given or str(folder.tokenizer.get("src_lang" if which == "source" else "tgt_lang") or "")
        name = f"__{lacking}__" if f"__{lacking}__" in ids else lacking
        names.append(side.table.token(side.ours(_chosen(folder, name, ids, which))))
    source, target = (PiecesConfig(before=name) for name in names)
    return _adopted(folder, source, target, side, side, first=side.table.id(names[1]))


READERS = {
    "MarianTokenizer": _marian,
    "BartTokenizer": _byte_pairs,
    "RobertaTokenizer": _byte_pairs,
    "GPT2Tokenizer": _byte_pairs,
    "MBartTokenizer": _mbart,
    "MBart50Tokenizer": _language_first,
    "M2M100Tokenizer": _language_first,
    "NllbTokenizer": _language_first,
}
"""By the class that they call it."""


def _adopted(
    folder: HubFolder,
    source: TokenizerConfig,
    target: TokenizerConfig,
    source_side: AdoptedSide,
    target_side: AdoptedSide,
    *,
    shared: bool = True,
    first: int | None = None,
    source_end: int | None = None,
) -> AdoptedText:
    forced = folder.id("forced_bos_token_id")
    if first is None and forced is not None:
        first = target_side.ours(forced)
    config = TextConfig(source, target, "none", shared)
    return AdoptedText(config, source_side, target_side, first, source_end)


def _side(folder: HubFolder, ids: Ids, count: int, model: bytes, start: int | None = None) -> AdoptedSide:
    """A side by their ids, whose embeddings have so many rows."""
    named = {number: token for token, number in ids.items()}
    if len(named) != len(ids):
        raise ValueError("two tokens have one id")
    if any(not 0 <= number < count for number in named):
        given = f"its tokenizer has ids up to {max(named)}, its model {count:,} tokens"
        raise FolderError(f"{folder.path}: {given}. Tokenizer and model do not belong together.")
    controls = _controls(folder, ids, start)
    rows = controls.rows(count)
    for number in rows[: len(CONTROLS)]:
        if number >= count:
            raise FolderError(f"{folder.path}: token {number} is a control, but the model has {count:,}. {RESTORE}")
    rest = rows[len(CONTROLS) :]
    tokens = [named.get(number) or MADE.format(number) for number in rest]
    marked = _added(folder).keys()
    special = [
        token
        for number, token in zip(rest, tokens, strict=True)
        if number not in named or token in SPECIAL or token in marked
    ]
    return AdoptedSide(TokenTable(tokens, special), model, rows)


def _controls(folder: HubFolder, ids: Ids, start: int | None) -> Controls:
    eos, pad = folder.id("eos_token_id"), folder.id("pad_token_id")
    if eos is None:
        raise FolderError(f"{folder.path}: no eos_token_id. {RESTORE}")
    if folder.config["model_type"] == "gpt2":
        begin = folder.id("bos_token_id")
        return Controls(NONE if pad in (None, eos) else int(pad or 0), NONE, eos if begin is None else begin, eos, True)
    own = str(folder.tokenizer.get("eos_token") or END) if isinstance(folder.tokenizer.get("eos_token"), str) else END
    if ids.get(own) != eos:
        given = f"its tokenizer ends with token {ids.get(own)}, its model with {eos}"
        raise FolderError(f"{folder.path}: {given}. Tokenizer and model do not belong together.")
    begin = folder.id("decoder_start_token_id") if start is None else start
    if begin is None:
        raise FolderError(f"{folder.path}: no decoder_start_token_id. {RESTORE}")
    unk = ids.get(UNKNOWN_TOKEN, NONE)
    silent = ids.get(START) == begin and [begin] in (folder.generation.get("bad_words_ids") or [])
    return Controls(NONE if pad is None else pad, unk, begin, eos, spoken=not silent)


def _ids(folder: HubFolder, name: str) -> Ids:
    found = json.loads(folder.file(name))
    if not isinstance(found, dict) or any(type(number) is not int for number in found.values()):
        raise ValueError(f"{name} is no table of ids")
    return found


def _chosen(folder: HubFolder, name: str, ids: Ids, side: str) -> int:
    """Their id of a language; one that is not given has to be."""
    known = sorted(token.strip("_") for token in _added(folder) if token not in SPECIAL)
    _check_language(name.strip("_"), name in ids, known, f"--{side}-language")
    return ids[name]


def _check_language(name: str, there: bool, known: Sequence[str], option: str) -> None:
    if there:
        return
    given = (
        f"{option} {name}: the model does not know it" if name else f"This model translates many languages: {option}"
    )
    listed = ", ".join(known[:200])
    raise UsageError(f"{given}. Give one of: {listed}." if name else f"{given} says which. Give one of: {listed}.")
