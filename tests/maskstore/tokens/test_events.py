"""Moves of columns: each function of columns has one form, and numbers step as the bytes do."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.analysis.grammar.columns import Column, Tabs
from maskwright.analysis.grammar.grammar import Layout
from maskwright.maskstore.tokens.events import PLAIN, EventCodes, Moves, move_of

LAYOUTS = {"lark": Layout(0, 1, 2, (), tab_length=3), "consistent": Layout(0, 1, 2, (), tabs="consistent")}

BEFORE = {
    "lark": [Column(n, n) for n in range(20)],
    "consistent": [Column(wide, narrow) for wide in range(20) for narrow in (0, 3, 7)],
}

pieces = st.text("  \t\t\f\nx", max_size=24).map(str.encode)


@given(pieces, st.sampled_from(["lark", "consistent"]))
def test_a_move_is_what_its_bytes_do(piece: bytes, tabs: Tabs) -> None:
    layout, move = LAYOUTS[tabs], move_of(LAYOUTS[tabs], piece)
    assert all(move.after(column) == layout.column_after(piece, column) for column in BEFORE[tabs])


@pytest.mark.parametrize("tabs", ["lark", "consistent"])
def test_equal_functions_are_equal_moves(tabs: Tabs) -> None:
    """A line feed and a form feed apart: only the first makes a newline end."""
    layout = LAYOUTS[tabs]
    known: dict[tuple[object, ...], object] = {}
    runs = [" " * n + "\t" * tab + " " * more for n in range(18) for tab in range(3) for more in (0, 1, 8)]
    for text in [*runs, *map("".join, itertools.product(" \t\f\n", repeat=4))]:
        piece = text.encode()
        does = (b"\n" in piece, *(layout.column_after(piece, column) for column in BEFORE[tabs]))
        move = move_of(layout, piece)
        assert known.setdefault(does, move) == move, piece
    assert len(set(known.values())) == len(known) > 40


@given(st.lists(pieces, max_size=6), st.sampled_from(["lark", "consistent"]))
def test_numbers_step_as_the_bytes_do(tokens: list[bytes], tabs: Tabs) -> None:
    moves = Moves(LAYOUTS[tabs], tokens)
    table = moves.table()
    assert table.shape == (len(moves), 33) and len(set(moves.members)) == len(moves)
    for token in tokens:
        number = 0
        for end, byte in enumerate(token, start=1):
            number = int(table[number, byte]) if byte <= 32 else number
            assert moves.members[number] == move_of(LAYOUTS[tabs], token[:end])
    assert moves == Moves(LAYOUTS[tabs], tokens[::-1]) != Moves(LAYOUTS[tabs], [*tokens, b" " * 99])


def test_symbols() -> None:
    moves = Moves(LAYOUTS["consistent"], [b" \t", b"\n"])
    codes = EventCodes(5, moves)
    assert codes.n_symbols == 5 + 2 * len(moves) and EventCodes(5).n_symbols == 5
    assert [codes.decode(symbol) for symbol in (4, codes.newline_at(2), codes.leave(2))] == [
        ("terminal", 4), ("newline_at", 2), ("leave", 2),
    ]  # fmt: skip
    assert moves.find(move_of(LAYOUTS["consistent"], b"\f")) == -1
    assert moves.members[moves.number(move_of(LAYOUTS["consistent"], b"   "))] == (PLAIN, 3, 3)
