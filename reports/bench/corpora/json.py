"""JSON: must accept the files of the evaluation data that Python's json takes with NaN and Infinity refused, JSONTestSuite's y_ files,
and its i_ files that RFC 8259's grammar has (numbers out of range, halves of surrogate pairs); must refuse the mutated files of
negative/json and JSONTestSuite's n_ files at the byte that a scan by the RFC found, and files that are not UTF-8 somewhere.

Reference: RFC 8259, sections 2 to 8.1.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from common import shared_records


def positive() -> Iterator[tuple[str, bytes]]:
    for record in shared_records("source/json"):
        yield f"{record['source']}/{record['path']}", record["text"].encode()
    for record in shared_records("negative/json_nst_test_parsing"):
        if record["utf8"] and (record["expected"] == "y" or is_left_open(record)):
            yield record["name"], record["text"].encode()


def negative() -> Iterator[tuple[str, bytes, int, int]]:
    for record in shared_records("negative/json"):
        yield record["id"], record["text"].encode(), record["first_bad_byte"], record["first_bad_byte"]
    for record in shared_records("negative/json_nst_test_parsing"):
        if not record["utf8"]:
            data = base64.b64decode(record["text_b64"])
            yield record["name"], data, 0, len(data)
        elif record["expected"] == "n":
            yield record["name"], record["text"].encode(), record["first_bad_byte"], record["first_bad_byte"]


def is_left_open(record: dict[str, Any]) -> bool:
    return record["expected"] == "i" and record["rfc8259_scan"] == "ok"
