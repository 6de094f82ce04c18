"""Which rows name the columns of a table."""

import pytest

from regarde.data.dialect import is_header

BELOW = [["Un chat dort.", "A cat sleeps."]]


@pytest.mark.parametrize(
    "row",
    [
        *("source\ttarget", "Source\tTarget", "SRC\tTGT", "src\ttrg", "input\toutput", "text\tlabel"),
        *("en\tde", "EN\tFR", "en-US\tpt_BR", "eng\tdeu", "English\tGerman", "english\tfrench", "Anglais\tFrançais"),
        *("source_text\ttarget_text", "sourceText\ttargetText", "text_en\ttext_de", "sentence1\tsentence2"),
        *("English sentence\tFrench translation", "Source (en)\tTarget (de)", "# source\ttarget", '"source"\t"target"'),
        *("source\ten", "lemma\tfeatures\tform", "word\tpronunciation", "日本語\t英語", "question\tanswer"),
    ],
)
def test_names_of_columns_are_a_header(row: str) -> None:
    assert is_header(row.split("\t"), BELOW)


@pytest.mark.parametrize(
    "row",
    [
        *("un chat\ta cat", "Text.\tTexte.", "Source?\tTarget!", "text\tText", "is\tis", "question\tquestion"),
        *("form\tF AO1 R M", "it\tW", "2 .\t2 .", "a\tb", "1\t2", "english\tenglich", "The source\tLa source"),
        *("Target the source of the text\tZiel", "name\tnom", "date 1\t2024-01-01", "value;key\tvalue", "\ta"),
    ],
)
def test_pairs_are_no_header(row: str) -> None:
    assert not is_header(row.split("\t"), BELOW)


def test_short_words_that_are_language_codes_too_are_no_header_of_short_words() -> None:
    assert not is_header(["ab", "ba"], [["is", "si"], ["eno", "one"]])
    assert not is_header(["it", "es"], [])
    assert is_header(["it", "es"], [["si", "sí"], ["ciao", "hola"]])
