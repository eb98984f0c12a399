"""The engine on public suites: it takes the texts that the graph's judge takes, and no others."""

from __future__ import annotations

import json

import pytest
from naive_json_texts import is_text_of
from schema_cases import DRAFTS, records
from shares import share

import maskwright as mw
from maskwright.analysis.schema.shapes import Texts
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.schema.compiled import SchemaTables
from maskwright.maskstore.schema.write import write_schema


def takes(matcher: Matcher, text: str) -> bool:
    """Whether a text is legal as a whole."""
    matcher.reset()
    try:
        matcher.advance_bytes(text.encode())
    except mw.IllegalTokenError:
        return False
    return matcher.is_accepting()


def compare(name: str, choose: str) -> int:
    """Compare on the texts of a suite. Returns how many there were."""
    vocabulary = mw.load_vocabulary("python-tiny")
    n, wrong = 0, []
    too_large: list[str] = []
    for record in records(name):
        if record.get("draft", "") != choose:
            continue
        try:
            schema = mw.load_schema(record["schema"], lenient=True)
        except mw.SchemaError:
            continue
        texts = Texts(schema.texts.graph)
        try:
            tables = SchemaTables(record["id"], texts, vocabulary, *write_schema(texts))
        except mw.LimitError:
            too_large.append(record["id"])
            continue
        matcher = Matcher(tables)
        for test in record["tests"]:
            for text in (json.dumps(test["data"]), json.dumps(test["data"], ensure_ascii=False, indent=1)):
                try:
                    text.encode()
                except UnicodeEncodeError:
                    continue
                n += 1
                if takes(matcher, text) != is_text_of(texts.graph, text):
                    wrong.append((record["id"], text[:200]))
    assert wrong == []
    assert len(too_large) < 2, too_large
    return n


@pytest.mark.parametrize("draft", share(sorted(DRAFTS, key=lambda draft: draft != "draft2020-12"), 1))
def test_the_suite(draft: str) -> None:
    assert compare("json_schema_test_suite", draft) > 300


@pytest.mark.slow
def test_schemastore() -> None:
    assert compare("schemastore", "") > 800
