"""The row that names the columns of a table: source TAB target, English TAB German, en TAB de and the like.

A row is taken for a header if every cell is a name that people give to columns, and no two are the same. Language codes
are words as well (it, is, he): a row of nothing else counts only if the rows below it are longer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

BELOW = 5  # rows looked at under one of language codes
_LONGEST_CODE = 3
_CELL = re.compile(r'#? ?"?([^\W\d_][\w .:/()\[\]-]{0,38}[\w)\]]|[^\W\d_])"?')
_WORD = re.compile(r"[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")  # sourceText


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ROLES = _words("""
    source target src tgt trg input output text label translation translated reference ref hypothesis original
    question answer query response prompt completion article summary document utterance
    word pronunciation phoneme phonemes grapheme graphemes lemma form features tags misspelling correction
    incorrect correct command commands action actions date iso name transliteration key value
""")
_FILLERS = _words("sentence sentences string lang language column side segment phrase line")
_LANGUAGES = _words("""
    afrikaans albanian amharic arabic armenian azerbaijani basque bengali bosnian breton bulgarian burmese catalan
    chinese croatian czech danish dutch english esperanto estonian finnish french galician georgian german greek
    gujarati hausa hebrew hindi hungarian icelandic igbo indonesian irish italian japanese kannada kazakh khmer korean
    kurdish latin latvian lithuanian macedonian malay malayalam maltese mandarin marathi mongolian nepali norwegian
    pashto persian polish portuguese punjabi romanian russian scottish serbian sinhala slovak slovene slovenian somali
    spanish swahili swedish tagalog tamil telugu thai tibetan turkish ukrainian urdu uzbek vietnamese welsh xhosa yoruba
    zulu
    deutsch englisch französisch spanisch italienisch russisch chinesisch
    français francais anglais allemand espagnol italien
    español espanol inglés ingles francés alemán
    italiano inglese francese tedesco português portugues inglês nederlands engels polski angielski
    русский английский українська 中文 英文 日本語 英語 한국어 영어 العربية türkçe ingilizce
    svenska dansk norsk suomi čeština magyar română ελληνικά
""")
_CODES = _words("""
    aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo
    es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg
    ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn
    no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta
    te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
    ara ces chi cze dan deu dut ell eng fas fin fra fre ger gre heb hin hun ind ita jpn kor lat nld nor pol por ron rum
    rus spa swe tha tur ukr vie zho
""")
_TAG = re.compile(r"([a-z]{2,3})(?:[-_][a-z]{2,4})?", re.IGNORECASE)  # en, en-US, zh_Hans


def is_header(cells: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether the first row of a file names its columns; `below` are a few rows that follow it."""
    if len({cell.casefold() for cell in cells}) < len(cells):
        return False
    if all(_is_code(cell) for cell in cells):
        return any(len(cell) > _LONGEST_CODE for row in below for cell in row)
    return all(_is_code(cell) or _is_name(cell) for cell in cells)


def may_be_header(cells: Sequence[str]) -> bool:
    """Whether it is worth looking at the rows below."""
    return all(_is_code(cell) or _is_name(cell) for cell in cells)


def _is_code(cell: str) -> bool:
    tag = _TAG.fullmatch(cell.strip('"'))
    return tag is not None and tag[1].casefold() in _CODES


def _is_name(cell: str) -> bool:
    """A role or a language, perhaps with a filler and a code: source, English sentence, text_en, srcLang."""
    cut = _CELL.fullmatch(cell.strip())
    if cut is None:
        return False
    words = [word.casefold() for word in _WORD.findall(_HUMP.sub(" ", cut[1]))]
    known = _ROLES | _LANGUAGES | _FILLERS
    return len(words) <= 4 and all(word in known or word in _CODES for word in words) and not known.isdisjoint(words)
