"""Lexers that would have to back up without a bound: they hold on to the longer lexeme, and say so."""

from __future__ import annotations

import random
import re
import warnings

import pytest

import maskwright as mw
from maskwright.analysis.errors import MaskwrightWarning
from maskwright.analysis.loading import parse_grammar
from maskwright.stores.build import compile_store

CASES = {
    "number": ({"NUMBER": "0|[1-9][0-9]*", "FLOAT": "[0-9]+e[0-9]+", "ID": "[a-z]+"}, "01e", "0[0-9]|[0-9]e(?![0-9])"),
    "based": ({"CHAR": "[a-z]", "BASED": "[a-z0-9]+_[0-9]+", "END": ";"}, "ab1_;", "[a-z0-9][^;]"),
}
"""Terminals, an alphabet, and what a text has where the lexer might back up."""


def is_read_by_longest_match(terminals: dict[str, str], text: str) -> bool:
    while text:
        lengths = (n for n in range(len(text), 0, -1) if any(re.fullmatch(p, text[:n]) for p in terminals.values()))
        longest = next(lengths, 0)
        if not longest:
            return False
        text = text[longest:]
    return True


@pytest.mark.parametrize("lexing", ["longest", "contextual"])
@pytest.mark.parametrize("name", CASES)
def test_only_texts_are_refused_in_which_the_lexer_goes_back(name: str, lexing: mw.Lexing) -> None:
    terminals, alphabet, may_go_back = CASES[name]
    rules = "".join(f"{each}: /{pattern}/\n" for each, pattern in terminals.items())
    grammar = parse_grammar(f"start: ({' | '.join(terminals)})+\n{rules}", lexing=lexing)
    with pytest.warns(MaskwrightWarning, match="back up over more than it can .* Until then texts .* are refused"):
        matcher = compile_store(grammar, mw.load_vocabulary("python-tiny")).matcher()
    rng = random.Random(name)
    n_sure = n_read = 0
    for _ in range(3_000):
        said = "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 8)))
        is_legal = is_read_by_longest_match(terminals, said)
        matcher.reset()
        is_read = matcher.try_bytes(said.encode()) and matcher.is_accepting()
        assert is_legal >= is_read, said
        if is_legal and not re.search(may_go_back, said):
            n_sure += 1
            assert is_read, said
        n_read += is_read
    assert n_sure > 100 and n_read > n_sure  # it backs up over some


def test_nothing_is_said_where_the_lexer_backs_up_over_all_there_is() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grammar = parse_grammar("start: (A | B | C)+\nA: /a/\nB: /ab{1,3}c/\nC: /b/", lexing="longest")
        matcher = compile_store(grammar, mw.load_vocabulary("python-tiny")).matcher()
    for text in ("abbb", "abbbc", "aab", "abbcabb"):
        matcher.reset()
        assert matcher.try_bytes(text.encode()) and matcher.is_accepting(), text
