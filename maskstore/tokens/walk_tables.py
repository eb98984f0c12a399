"""The tables of the walk of a vocabulary, as tuples of arrays for kernels."""

from __future__ import annotations

from typing import NamedTuple

from maskwright.analysis.arrays import Bool_2D, Int32, Int32_2D, Int64, UInt8, UInt8_2D
from maskwright.maskstore.tokens._hash_kernels import Keys, Map, Runs

# codes that a walk returns: it is done, has paused, or what it lacks before it can go on
DONE, PAUSED, FULL_SEQUENCES, UNKNOWN_AFTER, UNKNOWN_MODES, FULL_ROWS, FULL_FOUND = range(7)
FULL_CONFIGURATIONS, FULL_VALUES, FULL_READINGS, FULL_VECTORS, FULL_STEPS = range(7, 12)

# indices of `Walk.cursor`: where to go on after a return that is not DONE, and what is to learn
TOKEN, STATE, N_COMPONENTS, WORK, SET, SYMBOL = range(6)
"""What each entry of the cursor is.

TOKEN : the first token that is not done.
STATE, N_COMPONENTS : while a vector of one byte is made, the next lexer state, and the components
    so far.
WORK : units of work since the kernel was called.
SET, SYMBOL : with UNKNOWN_AFTER, the set of states and the symbol after which the next set is not
    known. With UNKNOWN_MODES, the set whose modes are not known.
"""


class Lexer(NamedTuple):
    """The transducer. Output o emits output_symbols[output_start[o] : output_start[o + 1]].

    next_state, output, byte_class : see `Transducer`.
    output_start, output_symbols : (n_outputs + 1,), (n,) int32.
    """

    next_state: Int32_2D
    output: Int32_2D
    output_start: Int32
    output_symbols: Int32
    byte_class: UInt8


class Contexts(NamedTuple):
    """Lexing with several modes.

    mode_state : (n_modes,) int32; the state in which a lexeme begins, by mode.
    may_follow : (n_terminals, n_modes) bool; whether the lexeme after a terminal may be read in a
        mode.
    code : the symbol of mode 0.
    pending_start, pending : (n_states + 1,) int32, (n,) uint8; see `Transducer.pending`.
    """

    mode_state: Int32
    may_follow: Bool_2D
    code: int
    pending_start: Int32
    pending: UInt8


class Tokens(NamedTuple):
    """The vocabulary.

    data, offsets : (n_bytes,) uint8, (n_tokens + 1,) int64; the sorted tokens end to end. Token i
        is data[offsets[i] : offsets[i + 1]].
    shared : (n_tokens,) int32; the leading bytes that a token shares with the one before it.
    newline : the layout's newline terminal, or -1.
    after_newline : the symbol of a newline that ends after move 0, or -1.
    moves : (n_moves, 33) int32; `Moves.table`.
    """

    data: UInt8
    offsets: Int64
    shared: Int32
    newline: int
    after_newline: int
    moves: Int32_2D


class Reductions(NamedTuple):
    """The reductions of each state, and the states that the parser may be in after each.

    Reduction r of state s, starts[s] <= r < starts[s + 1], is by rules[r] and leads to
    targets[target_start[r] : target_start[r + 1]].

    starts : (n_states + 1,) int32.
    rules, target_start, targets : (n,), (n + 1,), (n_targets,) int32; rules and targets ascend.
    """

    starts: Int32
    rules: Int32
    target_start: Int32
    targets: Int32


class Feasible(NamedTuple):
    """What is known of the sets of the parser's states, and all that is needed to learn more.

    action, alternatives, accessing : see `LrTables`.
    reductions : of these tables.
    column_of : (n_terminals,) int32; the parser's column of each terminal, -1 for none.
    is_entered_alone : whether no state is entered by several symbols.
    mode_of_state : (n_states,) int32; the lexing mode of each state.
    mode_code : the symbol of mode 0.
    after : what has been worked out: the set after a set and a symbol, set * 2^32 + symbol.
    sets : the sets met, each ascending.
    marks : (2, n_states) bool, False between calls; scratch.
    lists : (2, n_states) int32; scratch.
    """

    action: Int32_2D
    alternatives: Int32
    reductions: Reductions
    column_of: Int32
    accessing: Int32
    is_entered_alone: bool
    mode_of_state: Int32
    mode_code: int
    after: Map
    sets: Runs
    marks: Bool_2D
    lists: Int32_2D


class ModesOfSets(NamedTuple):
    """The modes of each set of the parser's states.

    The modes of set s are mode[begin[s] : end[s]], ascending. subset[i] is the set of those states
    of s whose mode is mode[i].

    begin, end : (n_sets,) int32; begin is -1 where not worked out yet.
    mode, subset : (capacity,) int32.
    """

    begin: Int32
    end: Int32
    mode: Int32
    subset: Int32


class Rows(NamedTuple):
    """The parses of one byte that are in progress, one per row. The last row is followed first.

    text : (n_rows, width) uint8; the bytes to read: the first `length` of a row.
    length : (n_rows,) int32.
    reread_end : (n_rows,) int32; the bytes before this index are read anew after backing up.
    next_byte : (n_rows,) int32; the index of the next byte.
    state, sequence, move : (n_rows,) int32; the lexer's state, what was emitted, and the move so
        far.
    """

    text: UInt8_2D
    length: Int32
    reread_end: Int32
    next_byte: Int32
    state: Int32
    sequence: Int32
    move: Int32


class Values(NamedTuple):
    """Sets of configurations by number: value v is items[start[v] : start[v + 1]]. 0 is empty.

    hashes : (capacity,) int64; of a value's items.
    start : (capacity + 1,) int64.
    items : (capacity,) int32; configurations, ascending in each value.
    emits : (capacity,) int32; 1 if the next byte may make a newline end, else 0.
    first_class, component : (capacity,) int32; 1 + the class of the first byte for which the value
        was made a component last, 0 if none; and the component.
    """

    hashes: Int64
    start: Int64
    items: Int32
    emits: Int32
    first_class: Int32
    component: Int32
    slots: Int32
    size: Int64


class Vectors(NamedTuple):
    """What a text does from all lexer states at once, by number. Vector 0: it is not read in any.

    For each class of bytes, states that do the same at the first byte are one *component*. A vector
    has a value for each component in which the text is read. Vector v is items[start[v] :
    start[v + 1]]: each component, with its value behind it.

    hashes : (capacity,) int64; of a vector's items.
    start : (capacity + 1,) int64.
    items : (2 capacity,) int32.
    emits : (capacity,) int32; 1 if a value emits, else 0.
    """

    hashes: Int64
    start: Int64
    items: Int32
    emits: Int32
    slots: Int32
    size: Int64


class Firsts(NamedTuple):
    """The vectors of single bytes, by the class of the byte.

    vector : (n_classes,) int32; -1 if it is not made yet.
    component : (n_classes, n_states) int32; the component of each lexer state, which are numbered
        through all classes; -1 if no token begins so in this state.
    items : (2 n_states,) int32; the components and values so far, while a vector is made.
    n : (1,) int64; how many components there are.
    """

    vector: Int32
    component: Int32_2D
    items: Int32
    n: Int64


class Readers(NamedTuple):
    """Which classes of tokens are read in each component, and what they do there.

    Those of component i are at start[i] to start[i + 1] - 1.

    start : (n_components + 1,) int64.
    class_of, value : (n,) int32.
    """

    start: Int64
    class_of: Int32
    value: Int32


class Groups(NamedTuple):
    """The classes of tokens of one lexer state, by what they do there; and scratch to group them.

    sizes : (2,) int64; how many members all groups have, and how many groups there are.
    classes, starts : (capacity,) int32, (capacity + 1,) int64; group i is
        classes[starts[i] : starts[i + 1]].
    keys : (capacity,) int64; what each group does.
    found_class, found_key, group, firsts, order : (capacity,); scratch.
    slots : (n_slots,) int32; scratch, a power of two and at least twice the capacity.
    """

    sizes: Int64
    classes: Int32
    starts: Int64
    keys: Int64
    found_class: Int32
    found_key: Int64
    group: Int32
    firsts: Int32
    order: Int64
    slots: Int32


class Path(NamedTuple):
    """Where the walk is after each number of bytes of the token that is read.

    vector, move : (longest token + 1,) int32; what was read so far does, and the move so far.
    """

    vector: Int32
    move: Int32


class Outcomes(NamedTuple):
    """What texts do, from one lexer state or from all at once.

    configurations : lexer states with what was emitted on the way to them, sequence * 2^32 + state.
    readings, steps : the values after values, and the vectors after vectors. The key is
        (the one before * n_classes + class of the byte) * (n_moves + 1) + 1 + move; 0 instead of
        1 + move for what does not emit.
    after : (n, n_classes) int32; for the first n vectors, but those that emit, 1 + the vector after
        each class of bytes; 0 where that is not known. It is in `steps` too. Row 0 has the vectors
        of single bytes.
    emits : (n_states,) int32; 1 if a byte read in a lexer state may make a newline end.
    found : (capacity,) int32; scratch, configurations.
    items : (2 n_states,) int32; scratch, the components and values of a vector.
    vector_of : (n_tokens,) int32, written; the vector of each token.
    """

    configurations: Keys
    values: Values
    readings: Map
    vectors: Vectors
    steps: Map
    firsts: Firsts
    path: Path
    after: Int32_2D
    emits: Int32
    found: Int32
    items: Int32
    vector_of: Int32


class Walk(NamedTuple):
    """What a walk reads.

    sequences : the sequences of symbols met, parent * 2^32 + last symbol, and the set of the
        parser's states after each. Sequence 0 is empty; its parent and symbol are -1.
    cursor : (6,) int64, all 0 at first; see the indices above.
    """

    lexer: Lexer
    tokens: Tokens
    sequences: Map
    feasible: Feasible
    contexts: Contexts
    sets: ModesOfSets
    rows: Rows
    cursor: Int64
