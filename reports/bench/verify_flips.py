"""Single integers of whole tables changed: what `mw.verify` passes, and whether any of that shows.

    python reports/bench/verify_flips.py [--each 6] [--texts 120]

Of small stores of every kind, with 256 tokens of one byte, some longer ones and an end of text. Of each column of each
part, and of each integer of the header, `--each` integers are changed in several ways: by one, to 0, by one bit, to a
value that the column has elsewhere, to any value in range. What the loader's checker refuses is left out. What `verify`
passes must show nowhere: masks, the tokens that are taken one by one, whether a text may end and what its shortest ending
is are the same behind `--texts` random texts.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import write_record

import maskwright as mw
from maskwright.analysis.errors import MaskwrightError, StoreError
from maskwright.decoding.endings import ending_search
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.table import schema
from maskwright.maskstore.table.check import check_table, range_of, table_sizes
from maskwright.stores.store import Store

LAYOUT = r"""
start: (statement | _NEWLINE)+
statement: NAME "=" value _NEWLINE | "if" value ":" _NEWLINE _INDENT statement+ _DEDENT
value: NAME | "(" value ")"
NAME: /[ab]+/
_NEWLINE: /(\r?\n[ ]*)+/
%ignore " "
%declare _INDENT _DEDENT
"""
LONGEST = r"""
start: (item ";")+
item: NAME "=" value | "==" NAME | "if" value "then" item
value: NUMBER | NAME | NAME "." NAME | "..." | STRING
NAME: /[a-z]+/
NUMBER: /[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?/
STRING: /"[^"]*"/
%ignore " "
"""
BACKING = """
start: (p | q)+
p: "(" /[ab]/ ")"
q: "=" ("abbab" | "a" | "b" | "ab") (/b/ | "bi")* ":"
%ignore " "
"""
AMBIGUOUS = 'start: start "=" start | "(" start ")" | /[ab]+/ | "if" start | "if" start "(" start\n%ignore " "'
GRAMMARS = {
    "json": (None, "longest"),
    "a^n b^n": ('start: "a" start "b" | "a" "b"', "longest"),
    "contextual": (BACKING, "contextual"),
    "layout": (LAYOUT, "longest"),
    "longest": (LONGEST, "longest"),
    "conflicts": (AMBIGUOUS, "longest"),
}
LONGER = [b"ab", b"if", b"a=", b"((", b"):", b"\n  ", b":\n ", b"bi", b"==", b'{"', b'":', b"]}", b"1."]
MOST_TOKENS = 16


def store_of(name: str) -> Store:
    text, lexing = GRAMMARS[name]
    grammar = mw.load_grammar(name) if text is None else mw.parse_grammar(text, name=name, lexing=lexing)  # type: ignore[arg-type]
    vocabulary = mw.load_vocabulary(
        [*(bytes([byte]) for byte in range(256)), *LONGER, b"</s>"], eos=[256 + len(LONGER)]
    )
    store = mw.build_store(grammar, vocabulary)
    assert isinstance(store, Store)
    return store


def seen(matcher: Matcher, has_ending: bool) -> list[Any]:
    """All that shows of a text."""
    words = np.zeros(matcher.store.n_words, np.uint32)
    found: list[Any] = []

    def add(call: Any) -> None:
        try:
            found.append(call())
        except MaskwrightError as error:
            found.append(type(error))

    add(lambda: matcher.fill(words))
    found.append(words.tobytes())
    add(lambda: bytes(map(matcher.is_allowed, range(matcher.store.vocabulary.size))))
    add(matcher.is_accepting)
    if has_ending:
        add(matcher.shortest_ending)
        add(matcher.min_bytes_left)
    return found


class Texts:
    """Random texts of a store, and what shows of each."""

    def __init__(self, store: Store, n: int) -> None:
        rng = random.Random(1)
        self.store = store
        self.members: dict[tuple[int, ...], list[Any]] = {}
        agenda: list[tuple[int, ...]] = [()]
        while agenda and len(self.members) < n:
            tokens = agenda.pop(0 if rng.random() < 0.4 else rng.randrange(len(agenda)))
            self.members[tokens] = self.seen(store, tokens, len(self.members) < n // 8)
            words = np.frombuffer(self.members[tokens][1], np.uint8)
            allowed = [
                t
                for t in np.flatnonzero(np.unpackbits(words, bitorder="little")).tolist()
                if t not in store.vocabulary.eos
            ]
            rng.shuffle(allowed)
            agenda += [(*tokens, token) for token in allowed[:7] if len(tokens) < MOST_TOKENS]

    @staticmethod
    def seen(store: Store, tokens: tuple[int, ...], has_ending: bool) -> list[Any]:
        matcher = store.matcher()
        try:
            for token in tokens:
                matcher.advance(token)
        except MaskwrightError as error:
            return [type(error)]
        return seen(matcher, has_ending)

    def differ(self, altered: Store) -> bool:
        """Whether something else shows behind some text."""
        n = len(self.members)
        return any(
            self.seen(altered, tokens, number < n // 8) != expected
            for number, (tokens, expected) in enumerate(self.members.items())
        )


def flips(store: Store, each: int, rng: random.Random) -> Iterator[tuple[str, int, int]]:
    """Changes of a table: the column's name, where, and the new value."""
    table = store.table
    sizes = table_sizes(table)
    for offset in range(schema.HEADER):
        entry = schema.NUMBERS.get(offset) or schema.SETTINGS.get(offset) or schema.PARTS.get(offset)
        label = "header" if entry else "header, unused"
        for value in {int(table[offset]) + by for by in (-1, 1)} | {0, 5}:
            yield label, offset, value
    ends = [*(int(table[offset]) for offset in schema.PARTS), len(table)]
    for number, (_, part) in enumerate(schema.PARTS.items()):
        for column, values in enumerate(part.columns):
            places = range(ends[number] + column, ends[number + 1], len(part.columns))
            try:
                span = range_of(values, sizes) or (-3, 3 * sizes["columns"])
            except KeyError:  # counted by the length of some part
                span = (0, max(1, len(places)))
            for at in rng.sample(places, min(each, len(places))):
                old = int(table[at])
                others = {old - 1, old + 1, 0, old ^ 1 << rng.randrange(31), int(table[rng.choice(places)])}
                for value in sorted(others | {rng.randrange(*span)}):
                    yield part.name if len(part.columns) == 1 else f"{part.name}[{column}]", at, value


def tallied(name: str, each: int, n_texts: int) -> dict[str, dict[str, int]]:
    """What became of the flips of one store, by column."""
    store = store_of(name)
    texts = Texts(store, n_texts)
    assert mw.verify(store).passed and not texts.differ(store)
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    for label, at, value in flips(store, each, random.Random(0)):
        if value == store.table[at] or not -(1 << 31) <= value < 1 << 31:
            continue
        table = store.table.copy()
        table[at] = value
        altered = Store(store.grammar, store.vocabulary, table, store.counts)
        try:
            check_table(name, store.grammar, store.vocabulary, table)
        except StoreError:
            tally[label]["no table"] += 1
            continue
        try:
            has_passed = mw.verify(altered).passed
        except MaskwrightError:
            has_passed = False
        tally[label]["passed" if has_passed else "refused"] += 1
        if has_passed and texts.differ(altered):
            tally[label]["passed, shows"] += 1
            print("SHOWS", name, label, at, int(store.table[at]), value, flush=True)
    return {label: dict(counts) for label, counts in sorted(tally.items())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=6, help="integers of each column")
    parser.add_argument("--texts", type=int, default=120)
    options = parser.parse_args()
    ending_search.MAX_NODES = 3_000
    stores = {}
    total: Counter[str] = Counter()
    for name in GRAMMARS:
        stores[name] = tallied(name, options.each, options.texts)
        for counts in stores[name].values():
            total.update(counts)
        print(name, dict(total), flush=True)
    command = " ".join(["python", "reports/bench/verify_flips.py", *sys.argv[1:]])
    write_record("verify-flips", command, {"total": dict(total), "stores": stores})


if __name__ == "__main__":
    main()
