"""TOML: must accept the files of the evaluation data that Python's tomllib takes and toml-test's valid files; must refuse toml-test's
invalid files somewhere.

Reference: TOML 1.0.0, its toml.abnf, and tomllib. toml-test's files are those of its newest version: some that it calls valid are TOML 1.1,
and some of the invalid ones break rules that are no matter of syntax (KNOWN).
"""

from __future__ import annotations

from collections.abc import Iterator

from common import shared_records

_VERSION = "TOML 1.1: {}"
_TWICE = "no matter of syntax: a name is defined twice"
_CLOSED = "no matter of syntax: something is added to a table or array that is closed"
_NO_TABLE = "no matter of syntax: a value is used as a table"

KNOWN = {
    "valid/key/empty-05.toml": _VERSION.format("line breaks and a last comma in inline tables"),
    "valid/spec-1.1.0/common-47.toml": _VERSION.format("line breaks and a last comma in inline tables"),
    "valid/string/hex-escape.toml": _VERSION.format(r"the escape \x"),
    "invalid/array/extending-table.toml": _CLOSED,
    "invalid/inline-table/duplicate-key-01.toml": _TWICE,
    "invalid/inline-table/duplicate-key-02.toml": _TWICE,
    "invalid/inline-table/overwrite-05.toml": _CLOSED,
    "invalid/inline-table/overwrite-06.toml": _NO_TABLE,
    "invalid/inline-table/overwrite-07.toml": _CLOSED,
    "invalid/key/dotted-redefine-table-02.toml": _NO_TABLE,
    "invalid/key/duplicate-keys-02.toml": _TWICE,
    "invalid/key/duplicate-keys-08.toml": _TWICE,
    "invalid/spec-1.0.0/table-9-1.toml": _TWICE,
    "invalid/spec-1.1.0/common-50-0.toml": _TWICE,
    "invalid/table/append-with-dotted-keys-03.toml": _CLOSED,
    "invalid/table/append-with-dotted-keys-04.toml": _TWICE,
    "invalid/table/duplicate-key-02.toml": _NO_TABLE,
    "invalid/table/duplicate-key-14.toml": _TWICE,
    "invalid/table/overwrite-array-in-parent.toml": _TWICE,
    "invalid/table/redefine-02.toml": _TWICE,
}


def positive() -> Iterator[tuple[str, bytes]]:
    for record in shared_records("source/toml"):
        yield f"{record['source']}/{record['path']}", record["text"].encode()
    for record in shared_records("negative/toml_test"):
        if record["valid"]:
            yield record["name"], record["text"].encode()


def negative() -> Iterator[tuple[str, bytes, int, int]]:
    for record in shared_records("negative/toml_test"):
        if not record["valid"]:
            data = record["text"].encode()
            yield record["name"], data, 0, len(data)
