"""The grammar toml: cases by hand, held against Python's tomllib as well, files of the data and mutants of them."""

from __future__ import annotations

import tomllib

import pytest
from library_cases import byte_parser, mutants, records, sampled, texts_of

PIECES = (
    '"', '""', '"""', "'", "'''", "\\", "\n", "\r\n", "\r", " ", "\t", "=", ".", ",", "[", "]", "[[", "]]", "{", "}", "#", "0", "1", "-",
    "+", "_", ":", "T", "Z", "e", "inf", "nan", "true", "0x", "\\u00e9", "1979-05-27", "07:32:00", "é", "\x7f", "\x00",
)  # fmt: skip


def complaint(text: str) -> str | None:
    """What tomllib has against a text, None if nothing."""
    try:
        tomllib.loads(text)
    except ValueError as error:
        return str(error)
    return None


def is_about_names(complaint: str | None) -> bool:
    """Whether it is that a name is defined twice or a closed table extended: no matter of syntax."""
    return complaint is not None and complaint.startswith(("Cannot ", "Duplicate "))


def test_tomllib_takes_the_same() -> None:
    """It has no leap seconds, and leaves a byte order mark to whoever opens the file."""
    for text in texts_of("toml", "accept"):
        assert complaint(text.decode("utf-8-sig").replace("59:60", "59:59")) is None, text
    assert [text for text in texts_of("toml", "refuse") if complaint(text.decode()) is None] == []


@pytest.mark.parametrize(
    "year", ["0000", "0004", "1600", "1700", "1996", "2000", "2023", "2024", "2100", "2400", "9996"]
)
def test_leap_years(year: str) -> None:
    number = int(year)
    is_leap = number % 4 == 0 and (number % 100 != 0 or number % 400 == 0)
    assert byte_parser("toml").accepts(f"a = {year}-02-29".encode()) == is_leap


def test_values_that_are_not_utf8() -> None:
    assert byte_parser("toml").refusal(b'a = "\xff"') == 5
    assert byte_parser("toml").refusal(b"# \xed\xa0\x80") == 3


def test_the_last_line_may_be_cut_anywhere_that_a_value_ends() -> None:
    parser = byte_parser("toml")
    text = b"[a]\nb = [1, {c.d = '''x'''}] # e"
    whole = [n for n in range(len(text) + 1) if parser.accepts(text[:n])]
    assert whole == [0, 3, 4, *range(text.rindex(b"]") + 1, len(text) + 1)]
    assert all(parser.refusal(text[:n]) in (None, n) for n in range(len(text) + 1))


def test_sampled_texts() -> None:
    for text in sampled("toml", 150):
        text = text.removeprefix("\ufeff").replace(":60", ":59").replace("0000-", "0004-")  # as above
        said = complaint(text)
        assert said is None or is_about_names(said), (text, said)


def test_real_files() -> None:
    for record in records("source/toml", 100):
        assert byte_parser("toml").refusal(record["text"].encode()) is None, record["path"]


def test_conformance_suite() -> None:
    """Where tomllib agrees with toml-test: it reads TOML 1.0, the suite is also of 1.1."""
    n = 0
    for record in records("negative/toml_test", 1000):
        said = complaint(record["text"].removeprefix("\ufeff"))
        is_accepted = byte_parser("toml").accepts(record["text"].encode())
        n += is_accepted == record["valid"]
        assert is_accepted == (said is None or is_about_names(said)), record["name"]
    assert n > 240


def test_mutants() -> None:
    parser = byte_parser("toml")
    verdicts = {True: 0, False: 0}
    for text in mutants("toml", PIECES, 1500, 11):
        text = text.removeprefix("\ufeff")
        if ":60" in text or "0000-" in text:
            continue  # tomllib has neither leap seconds nor the year 0
        said = complaint(text)
        if is_about_names(said):
            continue  # and tomllib has not looked at the rest
        is_accepted = parser.accepts(text.encode())
        verdicts[is_accepted] += 1
        assert is_accepted == (said is None), (text, said)
    assert min(verdicts.values()) > 150
