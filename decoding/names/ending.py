"""Short endings of a text whose terminal is held to names.

The search for endings knows nothing of names. So its ending is taken if it spells one, or spells no
lexeme of the terminal; else the rest of a name is put in front, or of another terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.analysis.graphs import shortest_texts
from maskwright.decoding.endings.ending import Ending, endings_of
from maskwright.decoding.endings.ending_spelling import Spelling, spelling_of
from maskwright.decoding.grammar.text import GrammarText

if TYPE_CHECKING:
    from maskwright.decoding.names.lexer import NameLexer

Words = tuple[list[bytes], list[bytes]]
MOST_NAMES = 16
"""Names that an ending is searched behind: the shortest that the text takes."""
MOST_TRIED = 256
"""Names that are tried to find these, the shortest lexemes first."""


def short_ending(matcher: Any) -> Ending:
    """An ending of the text that spells a name where one must come. It need not be shortest.

    matcher : a `NamedText` (which asks this module, so that it is not imported here).

    Raises: DeadEndError if the vocabulary spells no ending; LimitError if none is found.
    """
    found = None
    # PERF: what only names keep from ending has the empty ending without them, so no search is made
    if matcher.can_end() or not GrammarText.can_end(matcher):
        found = fitting(matcher, endings_of(matcher).short(matcher))
    found = found or _behind(matcher, None) or _behind(matcher, Spelling(matcher.store.vocabulary))
    if found is not None:
        return found
    raise LimitError(
        f"{matcher.under}: no ending was found, since {matcher.says()}; take tokens back, or give names that can end the text"
    )


def _behind(matcher: Any, words: Spelling | None) -> Ending | None:
    """An ending that begins with the rest of a name, or with another terminal; None if none is.

    words : spells the other terminals, whose shortest spellings need no tokens if it is None.
    """
    spelling = spelling_of(matcher.store.vocabulary)
    between_lexemes = cache(lambda: _words(matcher, b"", words))  # PERF: most endings need none, behind a name
    for data in _beginnings(matcher, between_lexemes, words):
        there = matcher.copy()
        if not there.try_read(data):
            continue
        # where the lexeme may grow into one that is held, another word keeps it as it is
        grows = there.place is not None and there.place.typed
        for between in chain((b"",), (word for part in range(2 if grows else 1) for word in between_lexemes()[part])):
            after = there.copy()
            if between and not after.try_read(between):
                continue
            try:
                rest = fitting(after, endings_of(after).short(after))
            except (DeadEndError, LimitError):
                continue
            whole = data + between + (b"" if rest is None else rest.data)
            tokens = None if rest is None else spelling.fewest_tokens(whole)
            if tokens is not None:
                return Ending(whole, tokens, False)
    return None


def fitting(matcher: Any, ending: Ending) -> Ending | None:
    """An ending, if it leaves the text legal with the names as they are; else None."""
    there = matcher.copy()
    return ending if there.try_read(ending.data) and there.can_end() else None


def _beginnings(matcher: Any, words: Callable[[], Words], spelling: Spelling | None) -> Iterator[bytes]:
    """Bytes that may begin an ending: the rest of a name, then of other terminals.

    words : gives what `_words` gives for whole lexemes. spelling : as of `_words`.
    """
    typed = matcher.place.typed
    names = sorted((name for name in matcher.place.names.texts if name.startswith(typed)), key=len)
    lexer, terminal = matcher.lexer, matcher.place.names.terminal
    # those that are lexemes of the terminal, in some mode
    fine = (name for name in names if any(lexer.winner[at] == terminal for at in _states_behind(lexer, name)))
    lexemes = [name[len(typed) :] for name in islice(fine, MOST_TRIED)]
    for between in chain((b"",), (word for _ in range(0 if typed else 1) for word in words()[0])):
        there = matcher.copy()
        if not between or there.try_read(between):
            taken = (between + rest for rest in lexemes if there.copy().try_read(rest))
            yield from islice(taken, MOST_NAMES)
    ignored, others = _words(matcher, typed, spelling) if typed else ([], words()[1])
    yield from (*ignored, *others)


def _states_behind(lexer: NameLexer, data: bytes) -> Iterator[int]:
    """The union's states behind the beginning of a lexeme, by mode."""
    for state in lexer.starts:
        for byte in data:
            state = int(lexer.next_state[state, byte])
            if state < 0:
                break
        else:
            yield state


def _words(matcher: Any, typed: bytes, spelling: Spelling | None) -> Words:
    """A shortest spelling of each ignored terminal, and of each other but for the one held.

    typed : how the lexemes begin. It is left out, so that a spelling is empty if it is a whole one.
    spelling : of whole tokens; None if a spelling may be of any bytes. Then one byte stands for all
        that the lexer does not tell apart.
    """
    lexer, names = matcher.lexer, matcher.place.names
    alphabet = lexer.bytes_of_classes if spelling is None else spelling.alphabet

    def edges(node: tuple[int, int]) -> Iterator[tuple[int, tuple[int, int]]]:
        row = lexer.next_state[node[0]].tolist()
        for byte in alphabet:
            after = row[byte]
            spelt = 0 if spelling is None or after < 0 else spelling.after(node[1], byte)
            if after >= 0 and spelt >= 0:
                yield byte, (after, spelt)

    found: dict[int, bytes] = {}
    for (state, spelt), text in shortest_texts([(state, 0) for state in _states_behind(lexer, typed)], edges).items():
        if lexer.winner[state] >= 0 and (spelling is None or spelling.is_whole(spelt)):
            found.setdefault(int(lexer.winner[state]), text)
    found.pop(names.terminal, None)
    ignored = [word for terminal, word in found.items() if terminal in lexer.ignored]
    return ignored, [word for terminal, word in found.items() if terminal not in lexer.ignored]
