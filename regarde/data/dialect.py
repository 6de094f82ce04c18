"""Two properties of a table that only its user can confirm: a header row, and double quotes around fields.

A row seems to be a header if every cell is a usual name of a column and no two are the same. Language codes are also
words (it, is, he): a row of language codes counts only if the rows below it are longer.

Spreadsheets and CSV writers enclose fields in double quotes: "a ""b"" c" for a "b" c. Only a whole file
shows whether quotes enclose fields or belong to the text: a program that encloses fields leaves no other quotes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from regarde.errors import DataError

BELOW = 5  # rows to read below a row of language codes
_LONGEST_CODE = 3
_CELL = re.compile(r'#? ?"?([^\W\d_][\w .:/()\[\]-]{0,38}[\w)\]]|[^\W\d_])"?')
_WORD = re.compile(r"[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")  # sourceText

ENOUGH = 10  # enclosed fields that suffice as evidence if no other field holds a quote
_ENCLOSED = re.compile(r'"((?:[^"]|"")*+)"')
_FIELD = re.compile(r'(?:"((?:[^"]|"")*+)"|([^\t"][^\t]*|))(\t|\Z)')
_SAMPLE = 24  # characters of a field shown in a message


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
    """Whether a row can be a header, depending on the rows below."""
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


def fields_of(text: str) -> list[str] | None:
    """The TAB-separated fields of a line, without the quotes that enclose them; None if a quote does not end its field.

    An enclosed field may hold a TAB. A quote within a field that does not begin with one is a character of it.
    """
    if '"' not in text:
        return text.split("\t")
    fields: list[str] = []
    place = 0
    while found := _FIELD.match(text, place):
        enclosed, plain, separator = found.groups()
        fields.append(plain if enclosed is None else enclosed.replace('""', '"'))
        if not separator:
            return fields
        place = found.end()
    return None


def unquoted(text: str) -> str | None:
    """A text without the double quotes around it; None if they do not enclose all of it."""
    found = _ENCLOSED.fullmatch(text)
    return found[1].replace('""', '"') if found else None


@dataclass
class QuoteCount:
    """How the fields of a file hold double quotes."""

    name: str  # of the file
    fields: int = 0
    enclosed: int = 0
    other: int = 0  # that hold a quote but are not enclosed
    sample: str = ""  # the first enclosed one, and where

    def add(self, text: str, line: int) -> None:
        """Count the fields of one side of a pair."""
        if '"' not in text:
            self.fields += 1 + text.count("\t")
            return
        for field in text.split("\t"):
            self.fields += 1
            if _ENCLOSED.fullmatch(field):
                self.enclosed += 1
                self.sample = self.sample or f"line {line:,}: {_short(field)}"
            else:
                self.other += '"' in field

    def add_pairs(self, pairs: Sequence[tuple[str, str]], line: int) -> None:
        """Count the fields of pairs without TABs, the first of which is on this line."""
        for number, (source, target) in enumerate(pairs, start=line):
            if '"' in source or '"' in target:
                self.add(source, number)
                self.add(target, number)
            else:
                self.fields += 2

    @property
    def throughout(self) -> bool:
        """Whether all fields so far are enclosed, and enough of them that reading can stop."""
        return self.enclosed == self.fields >= 2 * ENOUGH

    def ask(self) -> None:
        """Raise a DataError if quotes seem to enclose fields, because only the user can tell."""
        if self.enclosed and not self.other and self.enclosed >= min(ENOUGH, self.fields / 2):
            given = f"{self.name}: double quotes enclose fields ({self.enclosed:,} of {self.fields:,}; {self.sample})"
            raise DataError(f"{given}. Give --quotes to remove them, or --no-quotes to keep them as text.")


def _short(field: str) -> str:
    return field if len(field) <= _SAMPLE else f"{field[:_SAMPLE]}…"
