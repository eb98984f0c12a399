"""Texts at random that an automaton over UTF-8 accepts, and texts close to them."""

from __future__ import annotations

import random

import numpy as np

from maskwright.analysis.regex import Dfa
from maskwright.analysis.regex.minimise import column_classes, distances


def texts_of(dfa: Dfa, rng: random.Random, n: int, mean: int = 15) -> list[str]:
    """`n` texts that are accepted, of about `mean` bytes where the automaton allows that. It accepts one."""
    _, representatives = column_classes(dfa.next_state)
    of_state = distances(dfa.next_state[:, representatives].tolist(), dfa.is_accepting.tolist())
    distance = np.array([of_state.get(state, -1) for state in range(dfa.n_states)])
    found = []
    for _ in range(n):
        state, text, wanted = 0, bytearray(), rng.randint(0, 2 * mean)
        while not (dfa.is_accepting[state] and len(text) >= wanted):
            row = dfa.next_state[state]
            options = np.flatnonzero(row >= 0)
            if len(text) >= wanted:
                options = options[distance[row[options]] < distance[state]]
            if not len(options):
                break
            target = rng.choice(np.unique(row[options]).tolist())
            text.append(rng.choice(options[row[options] == target].tolist()))
            state = target
        found.append(text.decode())
    return found


def changed(text: str, rng: random.Random, letters: str) -> str:
    """The text with one or two characters left out, put in, or replaced by some of `letters`."""
    characters = list(text)
    for _ in range(rng.randint(1, 2)):
        kind, at = rng.random(), rng.randrange(len(characters) + 1)
        if kind < 0.4 or not characters:
            characters.insert(at, rng.choice(letters))
        elif kind < 0.7:
            del characters[min(at, len(characters) - 1)]
        else:
            characters[min(at, len(characters) - 1)] = rng.choice(letters)
    return "".join(characters)
