"""The grammar sql: cases by hand, held against Python's sqlite3 as well, drawn texts, statements of the data."""

from __future__ import annotations

import sqlite3

import pytest
from library_cases import byte_parser, records, texts_of

SYNTAX = ("syntax error", "incomplete input", "unrecognized token")
TABLES = "create table t (a, b, c, d); create table u (a, b, c, d); create view v as select * from t"


def statements(text: str) -> list[str]:
    """A list of statements cut behind the semicolons that end one."""
    found, begin = [], 0
    for at, letter in enumerate(text):
        if letter == ";" and sqlite3.complete_statement(text[begin : at + 1]):
            found.append(text[begin : at + 1])
            begin = at + 1
    return [*found, text[begin:]]


def complaints(text: str) -> list[str]:
    """What SQLite has against the syntax of some statement. It stops at its first complaint, which may be one about tables."""
    found = []
    for statement in statements(text):
        connection = sqlite3.connect(":memory:")
        if not statement.lower().startswith(("create table", "create virtual table")):
            connection.executescript(TABLES)
        explained = statement if statement.lower().lstrip("\ufeff ").startswith("explain") else f"explain {statement}"
        try:
            connection.execute(explained if statement.strip("; \n\ufeff") else statement)
        except sqlite3.Error as error:
            found += [str(error)] if any(words in str(error) for words in SYNTAX) else []
        finally:
            connection.close()
    return found


def needs_sqlite_3_40() -> None:
    if sqlite3.sqlite_version_info[:2] != (3, 40):
        pytest.skip(f"Python's sqlite3 is {sqlite3.sqlite_version}; the cases are of 3.40")


def test_sqlite_takes_the_same() -> None:
    needs_sqlite_3_40()
    assert [text for text in texts_of("sql", "accept") if complaints(text.decode())] == []
    assert [text for text in texts_of("sql", "refuse") if not complaints(text.decode())] == []


def test_real_statements() -> None:
    """Statements that SQLite stops at for want of a table may go on with what it never reads: those of SELECT and values only."""
    n = 0
    for record in records("source/sql_statements", 2000):
        if record["checks"]["sqlite_syntax"] and record["text"].lstrip("( ").lower().startswith(
            ("select", "with", "values")
        ):
            n += 1
            assert byte_parser("sql").refusal(record["text"].encode()) is None, record["id"]
    assert n > 100


def test_real_statements_that_sqlite_refuses() -> None:
    """But for variables, which SQLite's check took for missing parameters."""
    for record in records("source/sql_statements", 2000):
        if not record["checks"]["sqlite_syntax"] and "@" not in record["text"]:
            assert not byte_parser("sql").accepts(record["text"].encode()), record["id"]
