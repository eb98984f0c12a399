"""The layout beside the one that is proved right in Coq: the same refusals, inserted terminals, blocks and masks, case by case."""

from __future__ import annotations

import ast
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from coq_runs import needs_coq, printed

import maskwright as mw
from maskwright.analysis.grammar import Grammar
from maskwright.decoding.reference.interpreter import Interpreter
from maskwright.decoding.reference.machine import Machine
from maskwright.decoding.reference.parser import INSERTED, Configuration
from maskwright.maskstore.tokens.events import ABSOLUTE, PLAIN, RESET, Move, move_of
from maskwright.maskstore.vocabulary import Vocabulary

ANY_LINES = r"""
start: ("x" | "(" | ")" | _NEWLINE | _INDENT | _DEDENT)*
LPAR: "("
RPAR: ")"
_NEWLINE: /(\r?\n[ \t\f]*)+/
%ignore /[ \t\f]+/
%declare _INDENT _DEDENT
"""
"""The parser takes whatever the lexer and the layout give it, so refusals are the layout's."""

PIECES = (
    b"x", b"(", b")", b"\n", b"\r\n", b" ", b"  ", b"    ", b"        ", b"\t", b"\f", b"\n ", b"\n  ", b"\n\t",
    b"\n        ",
)  # fmt: skip
BYTES = {10: "LineFeed", 32: "Blank", 9: "Tab", 12: "FormFeed", 13: "Other"}
HEAD = """
From Coq Require Import List.
Import ListNotations.
From Maskwright Require Import layout.
Set Printing Width 1000000.
Set Printing Depth 1000000.
Definition B (b : byte) : @event nat := Byte b.
Definition T (t : nat) : @event nat := Emits t.
Definition bracket (t : nat) : side := match t with 1 => Opens | 2 => Closes | _ => Neither end.
Definition inserted (o : list (@out nat)) : list nat :=
  flat_map (fun x => match x with Indent => [1] | Dedent => [2] | _ => [] end) o.
Definition numbers (m : move) : list nat :=
  match m with Add w n => [0; w; n] | Stop a w n => [1; a; w; n] | From w n => [2; w; n] end.
Definition all (consistent : bool) (tab : nat) (before : list (list (@event nat))) (tokens : list (list (@event nat))) :=
  let most := 1000 in
  let bytes := run bracket (step_stopped consistent tab most) (indent most) start (concat before) in
  match read_tokens bracket consistent tab most start before, bytes with
  | Some (s, o), Some (t, p) =>
      ([inserted o; inserted p], [rev (blocks s); rev (blocks t)],
       map (fun token => match read_token bracket consistent tab most t token with Some _ => true | None => false end) tokens)
  | None, None => ([], [], [])
  | _, _ => ([[9]], [], [])
  end.
"""


def events(text: bytes, in_newline: bool) -> tuple[list[str], bool]:
    """What the lexer makes of some bytes, and whether a newline is under way then."""
    found = []
    for byte in text:
        if byte in b"x()":
            found += ["Ended"] * in_newline + [f"T {b'x()'.index(byte)}"]
            in_newline = False
        elif in_newline or byte in b"\r\n":
            found.append(f"B {BYTES[byte]}")
            in_newline = True
    return found, in_newline


def coq_list(items: list[str]) -> str:
    return "[" + "; ".join(items) + "]"


def inserted(interpreter: Interpreter, configuration: Configuration) -> list[int]:
    layout = interpreter.machine.grammar.layout
    assert layout is not None
    found: list[int] = []
    read = configuration.read
    while read is not None:
        if read[1] == INSERTED:
            found.append(1 if read[0] == layout.indent else 2)
        read = read[2]
    return found[::-1]


def by_reference(interpreter: Interpreter, text: bytes) -> tuple[list[int], list[tuple[int, ...]]] | None:
    """The terminals that the reference has inserted, and the open columns; None if it refuses."""
    configurations, _ = interpreter.read([interpreter.start], text)
    if not configurations:
        return None
    (one,) = configurations
    return inserted(interpreter, one), [tuple(column) for column in one.columns]


def answers(head: str, commands: list[str], folder: Path) -> list[Any]:
    """What Coq prints for each command."""
    values = re.findall(r"^ *= (.*)$", printed(folder, ["layout"], head + "\n".join(commands)), re.MULTILINE)
    return [
        ast.literal_eval(value.replace(";", ",").replace("true", "True").replace("false", "False")) for value in values
    ]


def random_token(rng: random.Random) -> bytes:
    return b"".join(rng.choices(PIECES, k=rng.randint(1, 4)))


def random_tokens(rng: random.Random, n: int) -> list[bytes]:
    """The tokens of a text: lines most often begin at a column that they have begun at before."""
    found, margins = [], [b"", b"\t", b"    "]
    for _ in range(n):
        if rng.random() < 0.3:
            found.append(random_token(rng))
            continue
        if rng.random() < 0.4:
            margins.append(rng.choice(margins) + rng.choice((b" ", b"\t", b"    ")))
        line = b"\n" + rng.choice(margins) + rng.choice((b"x", b"x", b"(", b"x)"))
        at = rng.randint(0, len(line))
        found += [part for part in (line[:at], line[at:]) if part]
    return found


def grammar_of(tabs: str) -> Grammar:
    return mw.load_grammar(("// maskwright: tabs = consistent" if tabs == "consistent" else "") + ANY_LINES)


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("tabs", ["lark", "consistent"])
def test_engine_and_reference_do_what_is_proved(tabs: str, tmp_path: Path) -> None:
    rng = random.Random(tabs)
    grammar = grammar_of(tabs)
    assert grammar.layout is not None
    tokens = sorted({bytes([byte]) for byte in b"x()\n \t\f"} | {random_token(rng) for _ in range(50)})
    tokens = [token for token in tokens if b"\r" not in token.replace(b"\r\n", b"")]
    vocabulary = Vocabulary("lines", (*tokens, b""), {len(tokens): "</s>"}, (len(tokens),))
    matcher = mw.Matcher(mw.build_store(grammar, vocabulary))
    interpreter = Interpreter(Machine(grammar))
    words = np.zeros((len(tokens) + 32) // 32, np.uint32)
    commands, expected = [], []
    for _ in range(80):
        matcher.reset()
        text, before, in_newline = b"", [], False
        for token in random_tokens(rng, 6):
            text += token
            more, in_newline = events(token, in_newline)
            before.append(coq_list(more))
            is_legal = matcher.try_bytes(token)
            reference = by_reference(interpreter, text)
            commands.append(
                f"Eval vm_compute in all {str(tabs == 'consistent').lower()} 8 {coq_list(before)} tokens_{in_newline}."
            )
            if not is_legal:
                assert reference is None
                expected.append(([], [], []))
                break
            assert reference is not None
            columns = [tuple(column) for column in matcher.text.columns()]
            assert matcher.try_fill(words)
            mask = [bool(words[n >> 5] >> (n & 31) & 1) for n in range(len(tokens))]
            expected.append(([reference[0]] * 2, [columns, reference[1]], mask))
    head = HEAD + "".join(
        f"Definition tokens_{in_newline} := {coq_list([coq_list(events(each, in_newline)[0]) for each in tokens])}.\n"
        for in_newline in (False, True)
    )
    found = answers(head, commands, tmp_path)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert tuple(one) == tuple(other)
    assert sum(not any(each) for each in expected) > 8
    assert any(not all(each[2]) for each in expected if each[2])


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("tabs", ["lark", "consistent"])
def test_moves_are_those_proved(tabs: str, tmp_path: Path) -> None:
    rng = random.Random(tabs)
    layout = grammar_of(tabs).layout
    assert layout is not None
    pieces = [bytes(rng.choices(b" \t \t \f\n\r", k=rng.randint(0, 14))) for _ in range(300)]
    commands = [
        f"Eval vm_compute in numbers (move_of {str(tabs == 'consistent').lower()} 8 "
        f"{coq_list([BYTES[byte] for byte in piece])})."
        for piece in pieces
    ]

    def shown(move: Move) -> list[int]:
        if move.stop == PLAIN:
            return [0, move.wide, move.narrow]
        return [2, move.wide, move.narrow] if move.stop in (RESET, ABSOLUTE) else [1, *move]

    assert answers(HEAD, commands, tmp_path) == [shown(move_of(layout, piece)) for piece in pieces]
