"""The settings of a search, from Hugging Face's and to them.

num_beams              size of the beam; 1: greedy search
length_penalty         alpha, of the penalty "power"
early_stopping         early; what max_length cuts off is ranked with the rest: cut
max_length             limit on tokens, the first one included; max_new_tokens: without it
forced_bos_token_id    the first token
"""

from __future__ import annotations

from collections.abc import Sequence

from regarde import config
from regarde.config import Table
from regarde.errors import ConfigError, FolderError
from regarde.interop.architectures import OneModelConfig
from regarde.interop.hub import GENERATION, RESTORE, HubFolder
from regarde.interop.tokens import AdoptedText
from regarde.search import Beam, Greedy, Search

LONGEST = 512  # tokens of an answer of which no limit is known
_LEFT_OUT = {  # settings that change answers and have no counterpart, with what does nothing
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "forced_eos_token_id": None,
    "forced_decoder_ids": None,
    "sequence_bias": None,
    "min_p": None,
    "typical_p": 1.0,
}


def search_of(folder: HubFolder, text: AdoptedText, model: OneModelConfig) -> tuple[Search, list[str]]:
    """The search of a folder, and notes on what has no counterpart."""
    given = folder.generation
    notes = [
        f"{key} = {given[key]}: no counterpart"
        for key, nothing in _LEFT_OUT.items()
        if given.get(key) not in (None, nothing) and key != "forced_eos_token_id"
    ]
    silent = [folder.id("pad_token_id"), folder.id("decoder_start_token_id")]
    if others := [words for words in given.get("bad_words_ids") or [] if words not in [[word] for word in silent]]:
        notes.append(f"bad_words_ids = {others[:5]}: no counterpart")
    rules: Table = {"min_length": max(0, (given.get("min_length") or 0) - 1)}
    if text.first is not None:
        rules["first"] = text.first
    longest = given.get("max_new_tokens") or (given.get("max_length") or 0) - 1
    if longest > 0:
        rules |= {"max_ratio": 0.0, "max_extra": longest}
    if model.kind == "transformer-lm":
        rules["context"] = model.longest
    beams = given.get("num_beams") or 1
    if beams > 1 and given.get("early_stopping") == "never":
        notes.append("early_stopping = never: taken for false")
    settings: Table = {"kind": "greedy", "rules": rules}
    if beams > 1:
        alpha = given.get("length_penalty")
        settings = {
            "kind": "beam",
            "size": beams,
            "penalty": "power",
            "alpha": 1.0 if alpha is None else alpha,
            "early": given.get("early_stopping") is True,
            "cut": True,
            "rules": rules,
        }
    try:
        found: Search = config.parse(Beam, settings) if beams > 1 else config.parse(Greedy, settings)
    except ConfigError as error:
        raise FolderError(f"{folder.path / GENERATION}: {error} {RESTORE}") from None
    return found, notes


def settings_of(search: Search, order: Sequence[int]) -> tuple[Table, list[str]]:
    """The same for a search of ours; `order` are our ids in their order."""
    notes = []
    rules = search.rules
    found: Table = {"num_beams": 1, "do_sample": False}
    if search.kind == "beam":
        found |= {"num_beams": search.size, "early_stopping": search.early, "length_penalty": search.alpha}
        if search.penalty == "wu" and search.alpha:
            notes.append(f"search.penalty = wu: the length penalty is T^{search.alpha:g}, so that answers can differ")
        if search.beta or search.prune:
            notes.append("search.beta and search.prune: no counterpart")
    elif search.kind == "sampling":
        found |= {"do_sample": True, "temperature": search.temperature, "top_k": search.top_k, "top_p": search.top_p}
    if rules.max_ratio:
        limit = f"{rules.max_ratio:g} S + {rules.max_extra}"
        notes.append(f"the limit of {limit} tokens for S of the source: max_length = {LONGEST} is its counterpart")
    found["max_length"] = LONGEST if rules.max_ratio else rules.max_extra + 1
    if rules.min_length:
        found["min_length"] = rules.min_length + 1
    if rules.first is not None:
        found["forced_bos_token_id"] = order.index(rules.first)
    return found, notes
