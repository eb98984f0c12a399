"""Keys and items that begin alike: whether one is left that has not been there.

Finitely many keys go on from some states of an automaton. As many of them as have been there, and
one more, decide that.
"""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.analysis.schema.lengths import ENDLESS
from maskwright.decoding.schema._automaton_kernels import end_of, n_left, next_state
from maskwright.decoding.schema._frame_kernels import is_remembered, remember
from maskwright.decoding.schema._literal_kernels import byte_of, n_behind_first
from maskwright.decoding.schema.constants import HOLDS, HOLDS_SCARCE, LIMIT, N_OTHER, N_SCARCE
from maskwright.maskstore.schema._hash_kernels import HASH_FACTOR_1, HASH_FACTOR_2, next_hash
from maskwright.maskstore.schema._utf8_kernels import next_utf8


@kernel
def is_key_left(
    automata: Int32, automaton: int, state: int, memory: Int32, frame: int, first: int, second: int
) -> bool:
    """Whether a key that is not named, and has not been there, goes on from a state.

    first, second : the hashes of what the key says so far.

    A mask is made as if no key had been there: `_scarce_kernels` takes those tokens out again.
    """
    if memory[LIMIT] > 0:
        return True
    n = n_left(automata, automaton, state)
    if n > memory[frame + N_OTHER]:
        return True
    # PERF: keys often come in their order, so the last one is left
    for number in range(n - 1, -1, -1):  # noqa: SIM110 (for compiled code)
        if not is_key_there(automata, automaton, state, number, memory, frame, first, second):
            return True
    return False


@kernel
def remember_key(
    automata: Int32, automaton: int, state: int, memory: Int32, frame: int, first: int, second: int
) -> None:
    """Add a key that is not named to those that a new frame remembers.

    automaton : that of such keys, or -1. state : where the key has ended.
    """
    remember(memory, frame, first, second, -1)
    if automaton >= 0 and n_left(automata, automaton, state) < ENDLESS:
        memory[frame + HOLDS] |= HOLDS_SCARCE
        memory[frame + N_SCARCE] += 1


@kernel
def is_key_there(
    automata: Int32, automaton: int, state: int, number: int, memory: Int32, frame: int, first: int, second: int
) -> bool:
    """Whether a key has been there, by its number among those that go on from a state, in order.

    BOUND: finitely many do, and the number is one of them.
    """
    hash_1, hash_2 = int(first), int(second)
    while True:
        if end_of(automata, automaton, state) != 0:
            if number == 0:
                return is_remembered(memory, frame, hash_1, hash_2)
            number -= 1
        byte, after = 0, next_state(automata, automaton, state, 0)
        while after == 0 or number >= n_left(automata, automaton, after):
            if after != 0:
                number -= n_left(automata, automaton, after)
            byte += 1
            after = next_state(automata, automaton, state, byte)
        hash_1, hash_2 = next_hash(hash_1, HASH_FACTOR_1, byte), next_hash(hash_2, HASH_FACTOR_2, byte)
        state = after


@kernel
def is_character_left(memory: Int32, frame: int, utf8: int, first: int, second: int) -> bool:
    """Whether an item is new that ends with the character under way, for some rest of that.

    utf8 : the state of UTF-8; 0 behind the character.
    first, second : the hashes of what the item says so far.
    """
    n_more = 0 if utf8 == 0 else 1 if utf8 == 1 else 2 if utf8 in (2, 4, 5) else 3
    for number in range(1 << 6 * n_more):
        state, hash_1, hash_2 = utf8, int(first), int(second)
        k = n_more
        while state >= 0 and k > 0:
            k -= 1
            byte = 0x80 | (number >> 6 * k & 0x3F)
            state = next_utf8(state, byte)
            hash_1 = next_hash(hash_1, HASH_FACTOR_1, byte)
            hash_2 = next_hash(hash_2, HASH_FACTOR_2, byte)
        if state == 0 and not is_remembered(memory, frame, hash_1, hash_2):
            return True
    return False


@kernel
def hash_of_character(value: int, factor: int, code: int) -> int:
    """A hash of one more character, in UTF-8."""
    found, n = value, n_behind_first(code)
    for k in range(n, -1, -1):
        found = next_hash(found, factor, byte_of(int(code), n, k))
    return found
