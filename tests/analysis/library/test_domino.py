"""The grammars of the Domino paper's tasks: cases by hand and texts drawn at random, held against Python's own parsers as well."""

from __future__ import annotations

from typing import Any

import domino_tasks
import pytest
from library_cases import accepted, byte_parser, library_grammar, refused, sampled

from maskwright.analysis.lr.conflicts import conflicts

TASKS = tuple(domino_tasks.IS)


def every(cases: Any) -> list[Any]:
    return [
        pytest.param(task, *case.values, id=f"{task}, {case.id}") for task in TASKS for case in cases(f"domino.{task}")
    ]


@pytest.mark.parametrize("task", TASKS)
def test_conflicts(task: str) -> None:
    assert conflicts(library_grammar(f"domino.{task}")) == ()


@pytest.mark.parametrize(("task", "text"), every(accepted))
def test_accepts(task: str, text: bytes) -> None:
    assert byte_parser(f"domino.{task}").refusal(text) is None and domino_tasks.IS[task](text.decode())


@pytest.mark.parametrize(("task", "text", "at"), every(refused))
def test_refuses(task: str, text: bytes, at: int) -> None:
    assert byte_parser(f"domino.{task}").refusal(text) == at and not domino_tasks.IS[task](text.decode())


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
