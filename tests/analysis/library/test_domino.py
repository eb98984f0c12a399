"""The grammars of the Domino paper's tasks: cases by hand and texts drawn at random, held against Python's own parsers as well."""

from __future__ import annotations

import domino_tasks
import pytest
from library_cases import byte_parser, sampled, texts_of

TASKS = tuple(domino_tasks.IS)


@pytest.mark.parametrize("task", TASKS)
def test_python_takes_the_same(task: str) -> None:
    for part, is_one in (("accept", True), ("refuse", False)):
        texts = texts_of(f"domino.{task}", part)
        assert [text for text in texts if domino_tasks.IS[task](text.decode()) != is_one] == []


@pytest.mark.parametrize("task", TASKS)
def test_drawn_texts(task: str) -> None:
    parser = byte_parser(f"domino.{task}")
    for text in domino_tasks.texts(task, 100):
        assert domino_tasks.IS[task](text)
        assert parser.refusal(text.encode()) is None, text


@pytest.mark.parametrize("task", TASKS)
def test_sampled_texts(task: str) -> None:
    for text in sampled(f"domino.{task}", 60):
        assert domino_tasks.IS[task](text), text


@pytest.mark.parametrize("task", TASKS)
def test_mutants(task: str) -> None:
    parser = byte_parser(f"domino.{task}")
    verdicts = {True: 0, False: 0}
    for text, is_legal in domino_tasks.mutants(task, 300):
        verdicts[is_legal] += 1
        assert parser.accepts(text.encode()) == is_legal, text
    assert min(verdicts.values()) > 40
