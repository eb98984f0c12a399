"""SQL as SQLite 3.40 reads it: must accept the statements of the evaluation data in which SQLite found no syntax error; must refuse those
in which it found one, and what it refuses of mutants of the former, where Python's sqlite3 is of version 3.40.

Reference: SQLite 3.40.1, `explain STATEMENT`; a syntax error is a message that speaks of one, of incomplete input or of an unrecognized
token. SQLite stops at its first error. Where that is a table or database that is not there, the rest was never read: see KNOWN.
Offsets of SQLite's errors are not to be had from Python, so a refusal is only known to come no sooner than the damage.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterator

from common import shared_records
from mutations import mutants, pieces

PER_STATEMENT = 2
SEED = 20261122
SYNTAX = ("syntax error", "incomplete input", "unrecognized token")

LEXEME = re.compile(
    r"""(?P<skip>--[^\n]*|/\*.*?\*/)
      | (?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`)
      | (?P<word>[^\W\d][\w$]*)
      | \d[\w.]*
      | <=|>=|<>|!=|==|\|\||<<|>>
      | \S""",
    re.VERBOSE | re.DOTALL,
)

_NEVER_READ = (
    "SQLite stopped at an unknown table, database or option before the error (which in triggers is that the text ends)"
)
_CUT = """
sqlfluff+sqlfluff/test/fixtures/dialects/ansi/create_table_a_column_constraints.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/bigquery/alter_table_add_column.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/bigquery/alter_table_add_column.sql#1
sqlfluff+sqlfluff/test/fixtures/dialects/bigquery/alter_table_add_key.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/bigquery/alter_table_add_key.sql#1
sqlfluff+sqlfluff/test/fixtures/dialects/bigquery/alter_table_add_key.sql#2
sqlfluff+sqlfluff/test/fixtures/dialects/bigquery/create_table_default_collate.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/bigquery/create_table_with_connection.sql#1
sqlfluff+sqlfluff/test/fixtures/dialects/hive/create_table_datatypes.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/alter_table.sql#11
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/alter_table.sql#12
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/alter_table.sql#13
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/alter_table.sql#14
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/alter_table.sql#15
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/alter_table.sql#16
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/alter_table.sql#17
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/alter_table.sql#18
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/alter_table.sql#19
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/alter_table.sql#24
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/alter_table.sql#26
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/alter_table.sql#27
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/alter_table.sql#38
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/create_trigger.sql#1
sqlfluff+sqlfluff/test/fixtures/dialects/mysql/create_trigger.sql#16
sqlfluff+sqlfluff/test/fixtures/dialects/sqlite/create_trigger.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/sqlite/create_trigger.sql#2
sqlfluff+sqlfluff/test/fixtures/dialects/sqlite/create_trigger.sql#4
sqlfluff+sqlfluff/test/fixtures/dialects/sqlite/create_trigger.sql#6
sqlfluff+sqlfluff/test/fixtures/dialects/sqlite/create_trigger.sql#8
sqlfluff+sqlfluff/test/fixtures/dialects/sqlite/create_trigger.sql#10
sqlfluff+sqlfluff/test/fixtures/dialects/sqlite/create_trigger.sql#12
sqlfluff+sqlfluff/test/fixtures/dialects/sqlite/raise_function.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/alter_table.sql#18
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/alter_table.sql#40
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/alter_table.sql#41
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/alter_table.sql#43
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/alter_table.sql#44
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table.sql#1
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table.sql#2
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table.sql#3
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table.sql#4
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_constraints.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_constraints.sql#1
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_graph.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_graph.sql#3
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_graph.sql#4
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_on_filegroup.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_with_distribution.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_with_sequence.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_with_sequence_bracketed.sql#5
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_with_table_option_segment.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_with_table_option_segment.sql#1
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_with_table_option_segment.sql#2
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_with_table_option_segment.sql#3
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_with_table_option_segment.sql#4
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_with_table_option_segment.sql#5
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/create_table_with_trailing_comma.sql#0
sqlfluff+sqlfluff/test/fixtures/dialects/tsql/temporal_tables.sql#10
tobymao+sqlglot/tests/fixtures/pretty.sql#52
tobymao+sqlglot/tests/fixtures/pretty.sql#53
"""
KNOWN: dict[str, str] = dict.fromkeys(_CUT.split(), _NEVER_READ)


def positive() -> Iterator[tuple[str, bytes]]:
    for record in shared_records("source/sql_statements"):
        if is_valid(record):
            yield record["id"], record["text"].encode()


def negative() -> Iterator[tuple[str, bytes, int, int]]:
    for record in shared_records("source/sql_statements"):
        if not is_valid(record):
            data = record["text"].encode()
            yield record["id"], data, 0, len(data)
    if sqlite3.sqlite_version_info[:2] != (3, 40):
        print(f"without mutants: Python's sqlite3 is {sqlite3.sqlite_version}, not 3.40", file=sys.stderr)
        return
    texts = (
        (record["id"], record["text"])
        for record in shared_records("source/sql_statements")
        if is_valid(record) and record["id"] not in KNOWN
    )
    for name, mutant in mutants(texts, LEXEME, PER_STATEMENT, SEED):
        if has_syntax_error(mutant.text):
            data = mutant.text.encode()
            yield name, data, mutant.lower, len(data)


def is_valid(record: dict[str, object]) -> bool:
    """By the check of the data, which took variables without values for errors; those are asked about again."""
    checks = record["checks"]
    assert isinstance(checks, dict)
    return bool(checks["sqlite_syntax"]) or not has_syntax_error(str(record["text"]))


def has_syntax_error(statement: str) -> bool:
    tokens = pieces(statement, LEXEME)
    begin = next((token.begin for token in tokens if statement[token.begin] != ";"), None)
    if begin is None:
        return False  # nothing to explain
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(f"explain {statement[begin:]}")
    except (sqlite3.Error, sqlite3.Warning) as error:
        return any(words in str(error) for words in SYNTAX)
    finally:
        connection.close()
    return False
