"""Store files made up to mislead, their hashes right: always a StoreError, never anything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from safetensors.numpy import save
from shares import check_examples, share
from stores import COMMITTED, Facts, Tensors, canonical, content_digest, framed, read_parts, refusal, write_parts

from maskwright.analysis.errors import StoreError
from maskwright.decoding.reference.nfa_lexer import NO_COLUMN, NfaLexer
from maskwright.maskstore.entries.entry_table import NO_CELL
from maskwright.maskstore.file.fileformat import store_info
from maskwright.maskstore.file.fileheader import TENSORS
from maskwright.stores.entry_store import EntryStore
from maskwright.stores.store import load_store

Change = Callable[[Facts, Tensors], object]

SOMETHING = {"w": np.zeros(3, np.float32)}


@pytest.fixture(scope="module")
def good() -> Path:
    """A store that no change elsewhere can alter, so that its numbers can stand in messages."""
    return COMMITTED / "version-3.safetensors"


# The metadata


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "its metadata is not JSON that can be read"),
        ("{", "its metadata is not JSON that can be read"),
        ('{"a":NaN}', r"its metadata is not JSON that can be read .*not JSON compliant"),
        ('{"a":1e999}', r"its metadata is not JSON that can be read .*not JSON compliant"),
        (f'{{"version":{"9" * 5000}}}', r"its metadata is not JSON that can be read .*digits"),
        ("[" * 100_000, r"its metadata is not JSON that can be read .*more than 250 deep"),
        ('{"a": 1}', "its metadata is JSON, but not in the form that maskwright writes"),
        ('{"a":1,"a":1}', "its metadata is JSON, but not in the form that maskwright writes"),
        ('{"b":1,"a":1}', "its metadata is JSON, but not in the form that maskwright writes"),
        ("[]", "its metadata has the format None, expected 'maskwright mask store'; make a store"),
        ('"maskwright mask store"', "its metadata has the format None, expected"),
        ('{"format":"model"}', "its metadata has the format 'model', expected 'maskwright mask store'"),
        (
            '{"format":"maskwright mask store"}',
            r"metadata lacks the members \['codes', .*'version', .* and has \[\], which were not",
        ),
    ],
)
def test_metadata_that_are_no_store_s(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "s").write_bytes(save(SOMETHING, {"maskwright": text}))
    for read in (load_store, store_info):
        with pytest.raises(StoreError, match=message):
            read(tmp_path / "s")


def test_hashes_that_do_not_agree(good: Path, tmp_path: Path) -> None:
    path = tmp_path / "s"
    facts, tensors = read_parts(good)

    def message(altered: Facts) -> str:
        path.write_bytes(save(tensors, {"maskwright": canonical(altered)}))
        return refusal(path)

    assert f"its content has sha256 {facts['sha256'][:8]}, expected '00000000'" in message(facts | {"sha256": "0" * 64})
    assert "its content has sha256" in message(facts | {"rules": "lark"})
    assert "grammar_sha256 is '00000000" in message(facts | {"grammar_sha256": "0" * 64})
    assert "grammar_sha256 is" in message(facts | {"grammar": facts["grammar"] | {"name": "renamed"}})
    altered = facts | {"vocabulary": facts["vocabulary"] | {"sha256": "0" * 64}}
    altered["sha256"] = content_digest(altered, tensors)
    assert "its vocabulary has sha256" in message(altered)


def into(name: str, *keys: Any, value: Any) -> Change:
    """Put a value somewhere into the facts."""

    def change(facts: Facts, _: Tensors) -> None:
        place: Any = facts[name] if keys else facts
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1] if keys else name] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            into("version", value=0),
            "expected version 3 but found version 0: an older maskwright wrote it: export the store again",
        ),
        (into("version", value=10**300), r"found version 1000.* \.\.\. 0+: a newer maskwright wrote it"),
        (into("version", value=True), "metadata.version is True, expected int"),
        (into("kind", value="masks"), "its kind is 'masks', expected one of entries, automaton"),
        (into("kind", value=["entries"]), r"its kind is \['entries'\], expected one of entries, automaton"),
        (
            into("kind", value="automaton"),
            r"metadata lacks the members \['counts', 'table_checksum'\] and has \['codes'",
        ),
        (lambda facts, _: facts.pop("kind"), r"metadata lacks the members \['kind'\] and has \[\]"),
        (into("grammar", "conflicts", value="some"), "not a grammar written by maskwright: conflicts is 'some'"),
        (into("version", value="1"), "metadata.version is '1', expected int"),
        (into("sha512", value=""), r"metadata lacks the members \[\] and has \['sha512'\], which were not expected"),
        (into("vocabulary", value=[]), r"metadata.vocabulary is \[\], expected an object"),
        (into("vocabulary", "name", value=None), "metadata.vocabulary.name is None, expected str"),
        (
            into("vocabulary", "size", value=109),
            r"tensor masks.dense .*|vocabulary.token_offsets has shape \[111\], expected",
        ),
        (into("vocabulary", "size", value=-32), r"tensor masks.dense has shape \[\d+, 4\], expected \[\d+, 0\]|-1"),
        (
            into("vocabulary", "size", value=1 << 62),
            r"tensor masks.dense has shape \[\d+, 4\], expected .* \(dense x words\)",
        ),
        (into("grammar", value=[]), r"metadata.grammar is \[\], expected dict"),
        (into("grammar", "more", value=1), "its grammar is not in the form that maskwright writes"),
        (into("grammar", "text", value=5), "not a grammar written by maskwright: text is of type int; expected str"),
        (into("grammar", "terminals", 3, value=["A"]), "not a grammar written by maskwright: a terminal has 1 fields"),
        (into("grammar", "rules", 0, value=[]), "not a grammar written by maskwright: a rule has no left side"),
        (into("grammar", "rules", 0, value=[11, 99]), "uses a symbol number outside"),
        (into("grammar", "rules", 0, value=[1.0]), "a member of a rule is of type float; expected int"),
        (into("grammar", "start", value=0), "start symbol number 0 is not a nonterminal"),
        (
            lambda facts, _: facts["grammar"].update(start=0, name="\n" * 999),
            r"'grammar (\\n)+\\? \.\.\. .* not a nonterminal'",
        ),
        (into("grammar", "layout", value={}), r"not a grammar written by maskwright: the layout has the members \[\]"),
        (into("grammar", "layout", "newline", value=99), "the layout names a symbol that is not a terminal"),
        (into("grammar", "layout", "tabs", value="8"), "the layout's tabs are '8'; expected lark or consistent"),
        (into("grammar", "layout", value=None), r"codes.n_moves is \d+, expected 1, the number for the layout"),
        (into("grammar", "lexing", value="longest"), "the grammar's lexing is 'longest', expected 'nfa'"),
        (into("lexing", value="longest"), "lexing is 'longest', expected 'nfa', that of the grammar in the file"),
        (into("rules", value="own"), "rules is 'own', expected 'lark' or 'normalised'"),
        (into("codes", "n_terminals", value=9), "codes.n_terminals is 9, expected 11, that of the grammar in the file"),
        (
            into("codes", "n_moves", value=1),
            r"codes.n_moves is 1, expected \d+, the number for the layout and the tokens in the file",
        ),
        (into("codes", "n_moves", value=1 << 40), r"codes.n_moves is 1099511627776, expected \d+"),
        (into("steps", value=[]), r"the steps are \[\], expected 'original' first and no step twice"),
        (into("steps", 0, 0, value="begin"), r"the steps are \['begin', .*expected 'original' first"),
        (into("steps", 1, 0, value="original"), "the steps are .*, expected 'original' first and no step twice"),
        (into("steps", 1, value=["x"]), r"metadata.steps\[1\] is \['x'\], expected a list of 2"),
        (into("steps", 1, 1, value=5), r"tensor counts has \d+ entries after step 'ignored', but the metadata says 5"),
        (
            lambda facts, _: facts["steps"].pop(),
            r"tensor counts has shape \[9, \d+\], expected \[8, \d+\] \(steps x resting\)",
        ),
    ],
)
def test_metadata_that_mislead(good: Path, tmp_path: Path, change: Change, message: str) -> None:
    check_refused(good, tmp_path / "s", change, message)


def check_refused(good: Path, path: Path, change: Change, message: str) -> None:
    facts, tensors = read_parts(good)
    change(facts, tensors)
    write_parts(path, facts, tensors)
    with pytest.raises(StoreError, match=message):
        load_store(path)


# The tensors


def put(name: str, index: Any, value: int) -> Change:
    """Put a value into a tensor, made wider where it must be."""

    def change(_: Facts, tensors: Tensors) -> None:
        dtype = TENSORS[name][0]
        array = tensors[name].astype(np.uint8 if dtype is np.bool_ else dtype)
        array[index] = value
        tensors[name] = array

    return change


def swap(first: str, second: str) -> Change:
    def change(_: Facts, tensors: Tensors) -> None:
        tensors[first], tensors[second] = tensors[second], tensors[first]

    return change


def cast(name: str, dtype: Any) -> Change:
    return lambda _, tensors: tensors.update({name: tensors[name].astype(dtype)})


def reshape(name: str, *shape: int) -> Change:
    return lambda _, tensors: tensors.update({name: tensors[name].reshape(shape)})


def cut(name: str, n: int = 1) -> Change:
    return lambda _, tensors: tensors.update({name: tensors[name][:-n]})


def other_terminal(facts: Facts, tensors: Tensors) -> None:
    """Let a transition lead into another terminal's automaton."""
    state, byte = np.argwhere(tensors["nfa.next_state"] >= 0)[0]
    stranger = np.flatnonzero(tensors["nfa.terminal"] != tensors["nfa.terminal"][state])[0]
    put("nfa.next_state", (state, byte), stranger)(facts, tensors)


def unrested(facts: Facts, tensors: Tensors) -> None:
    put("nfa.is_resting", int(tensors["nfa.next_state"].max()), 0)(facts, tensors)


def equal_rows(name: str) -> Change:
    return lambda facts, tensors: put(name, 1, tensors[name][0])(facts, tensors)


def equal_sequences(facts: Facts, tensors: Tensors) -> None:
    """Make two sequences of one symbol equal."""
    starts, symbols = tensors["sequence_start"].astype(int), tensors["sequence_symbols"]
    first, second = starts[:-1][np.diff(starts) == 1][:2]
    put("sequence_symbols", second, symbols[first])(facts, tensors)


def sparse_rows(tensors: Tensors, size: int) -> tuple[int, int]:
    """The first two places in sparse_ids where a mask of such a size begins."""
    starts = tensors["masks.sparse_start"].astype(int)
    first, second = starts[:-1][np.diff(starts) == size][:2]
    return int(first), int(second)


def equal_sparse(facts: Facts, tensors: Tensors) -> None:
    first, second = sparse_rows(tensors, 1)
    put("masks.sparse_ids", second, tensors["masks.sparse_ids"][first])(facts, tensors)


def textless_sparse(facts: Facts, tensors: Tensors) -> None:
    put("masks.sparse_ids", sparse_rows(tensors, 1)[0], 18)(facts, tensors)


def falling_sparse(facts: Facts, tensors: Tensors) -> None:
    first, _ = sparse_rows(tensors, 3)
    put("masks.sparse_ids", first + 1, tensors["masks.sparse_ids"][first])(facts, tensors)


def longest_cell(tensors: Tensors) -> int:
    starts = tensors["cell_start"].astype(int)
    return int(starts[np.diff(starts).argmax()])


def same_sequence_twice(facts: Facts, tensors: Tensors) -> None:
    at = longest_cell(tensors)
    put("entry_sequence", at + 1, tensors["entry_sequence"][at])(facts, tensors)


def resting_state(tensors: Tensors) -> int:
    return int(np.flatnonzero(tensors["nfa.is_resting"])[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda _, t: t.pop("dependent"),
            r"these tensors are missing: \['dependent'\]; and these were not expected: \[\]",
        ),
        (lambda _, t: t.update(more=np.zeros(1)), r"missing: \[\]; and these were not expected: \['more'\]"),
        (cast("nfa.next_state", np.float32), "tensor nfa.next_state has dtype F32, expected one that widens to int32"),
        (cast("nfa.next_state", np.int64), "tensor nfa.next_state has dtype I64, expected one that widens to int32"),
        (cast("masks.dense", np.int32), "tensor masks.dense has dtype I32, expected one that widens to uint32"),
        (cast("nfa.is_resting", np.bool_), "tensor nfa.is_resting has dtype BOOL, expected one that widens to uint8"),
        (cast("vocabulary.token_bytes", np.uint16), "tensor vocabulary.token_bytes has dtype U16, expected one that"),
        (reshape("nfa.terminal", -1, 1), r"tensor nfa.terminal has shape \[\d+, 1\], expected \[\d+\] \(states\)"),
        (reshape("nfa.next_state", -1, 128), r"tensor nfa.next_state has shape \[\d+, 128\], expected \[\d+, 256\]"),
        (
            reshape("nfa.next_state", -1),
            r"tensor nfa.next_state has shape \[\d+\], expected \[\d+, 256\] \(states x 256\)",
        ),
        (
            lambda _, t: t.update(cell_start=np.uint8(0)),
            r"tensor cell_start has shape \[\], expected \[1\] \(cells\+1\)",
        ),
        (lambda _, t: t.update(cell_start=np.zeros(0, np.uint8)), r"tensor cell_start has shape \[0\], expected \[1\]"),
        (cut("nfa.is_accepting"), "tensor nfa.is_accepting has shape"),
        (cut("entry_mask"), r"tensor entry_sequence has shape \[\d+\], expected \[\d+\] \(entries\)"),
        (cut("vocabulary.token_offsets"), r"tensor vocabulary.token_offsets has shape \[110\], expected \[111\]"),
        (swap("entry_mask", "entry_sequence"), "tensor entry_"),
        (swap("nfa.is_accepting", "nfa.terminal"), "tensor nfa.is_accepting holds 8, expected 0 or 1"),
        (put("nfa.is_accepting", 2, 2), "tensor nfa.is_accepting holds 2, expected 0 or 1"),
        (put("nfa.next_state", (3, 97), -2), r"tensor nfa.next_state holds -2 at \[3, 97\], expected -1 to 19"),
        (put("nfa.next_state", (3, 97), 20), r"tensor nfa.next_state holds 20 at \[3, 97\], expected -1 to 19"),
        (put("nfa.terminal", 0, 11), r"tensor nfa.terminal holds 11 at \[0\], expected 0 to 10"),
        (put("nfa.terminal", 0, -1), r"tensor nfa.terminal holds -1 at \[0\], expected 0 to 10"),
        (put("nfa.initial", 0, 20), r"tensor nfa.initial holds 20 at \[0\], expected -1 to 19"),
        (put("nfa.initial", 0, -1), "tensor nfa.initial holds -1 for terminal 0, expected a state"),
        (
            put("nfa.initial", 10, 3),
            "tensor nfa.initial holds 3 for terminal 10, expected -1, because no text spells it",
        ),
        (put("nfa.initial", 0, 19), "tensor nfa.initial holds 19 for terminal 0, a state of terminal 8"),
        (
            other_terminal,
            r"tensor nfa.next_state leads from state \d+ of terminal \d+ to state \d+ of terminal \d+, expected",
        ),
        (unrested, r"tensor nfa.is_resting is 0 for state \d+, which state \d+ leads to"),
        (put("nfa.is_resting", 0, 1), "tensor cell_of_state has no cell for state 0, in which a text can end"),
        (put("cell_of_state", 0, 1), "tensor cell_of_state has a cell for state 0, in which no text can end"),
        (put("cell_of_state", -1, -1), "tensor cell_of_state has no cell for state 20, in which a text can end"),
        (put("cell_of_state", 1, 99), r"tensor cell_of_state holds 99 at \[1\], expected -1 to \d+"),
        (put("cell_of_state", 1, -2), r"tensor cell_of_state holds -2 at \[1\], expected -1 to \d+"),
        (put("cell_of_last", (0, 3), 99), r"tensor cell_of_last holds 99 at \[0, 3\], expected -1 to \d+"),
        (put("dependent", 0, 20), r"tensor dependent holds 20 at \[0\], expected 0 to 19"),
        (put("dependent", 0, 0), "tensor dependent holds state 0, in which no text can end"),
        (equal_rows("dependent"), r"tensor dependent does not ascend: (\d+) is followed by \1 at \[1\]"),
        (put("cell_start", 0, 1), "tensor cell_start does not ascend from 0 to \\d+, the length of entry_sequence"),
        (put("cell_start", 1, 1 << 40), "tensor cell_start does not ascend from 0"),
        (put("cell_start", -1, 9999), "tensor cell_start does not ascend from 0"),
        (put("entry_sequence", 2, 9999), r"tensor entry_sequence holds 9999 at \[2\], expected 0 to \d+"),
        (put("entry_sequence", 2, -1), r"tensor entry_sequence holds -1 at \[2\], expected 0 to \d+"),
        (put("entry_mask", 2, 9999), r"tensor entry_mask holds 9999 at \[2\], expected 0 to \d+"),
        (same_sequence_twice, r"tensor entry_sequence does not ascend: (\d+) is followed by \1 at \[\d+\]"),
        (put("sequence_start", 1, 1), "sequence 0 is not the empty sequence"),
        (
            lambda _, t: t.update(sequence_start=np.zeros(1, np.uint8), sequence_symbols=np.zeros(0, np.uint8)),
            "sequence 0",
        ),
        (put("sequence_start", 2, -5), "tensor sequence_start does not ascend from 0 to"),
        (put("sequence_symbols", 0, 9999), r"tensor sequence_symbols holds 9999 at \[0\], expected 0 to \d+"),
        (put("sequence_symbols", 0, -1), r"tensor sequence_symbols holds -1 at \[0\], expected 0 to \d+"),
        (equal_sequences, "two sequences are equal, expected each once"),
        (put("masks.sparse_start", 1, 99), "tensor masks.sparse_start does not ascend from 0 to"),
        (put("masks.sparse_start", 1, 0), r"mask \d+ is empty, expected at least one token"),
        (put("masks.sparse_ids", 0, 110), r"tensor masks.sparse_ids holds 110 at \[0\], expected 0 to 109"),
        (put("masks.sparse_ids", 0, -1), r"tensor masks.sparse_ids holds -1 at \[0\], expected 0 to 109"),
        (textless_sparse, r"mask \d+ allows token 18, which stands for no text"),
        (equal_sparse, "two sparse masks are equal, expected each once"),
        (falling_sparse, r"tensor masks.sparse_ids does not ascend: (\d+) is followed by \1 at \[\d+\]"),
        (put("masks.dense", (0, 3), 1 << 20), "mask 0 allows token 116, past the last token, 109"),
        (put("masks.dense", (1, 0), 1 << 18), "mask 1 allows token 18, which stands for no text"),
        (put("masks.dense", 2, 0), "mask 2 is empty, expected at least one token"),
        (equal_rows("masks.dense"), "two bitmasks are equal, expected each once"),
        (put("counts", (0, 0), -1), r"tensor counts holds -1 at \[0, 0\], expected 0 to 2147483647"),
        (
            put("counts", (0, 0), 2**31 - 1),
            r"tensor counts has 21474\d+ entries after step 'original', but the metadata says",
        ),
        (
            lambda _, t: t.update(counts=t["counts"][:, 1:]),
            r"tensor counts has \d+ columns, expected \d+, one for each resting state",
        ),
        (put("vocabulary.token_offsets", 1, 999), "its vocabulary is wrong: small: token_offsets does not ascend"),
        (put("vocabulary.token_bytes", 0, 120), "its vocabulary has sha256"),
        (put("vocabulary.eos", 0, 0), "its vocabulary is wrong: small: eos token 0 stands for the text"),
    ],
)
def test_tensors_that_mislead(good: Path, tmp_path: Path, change: Change, message: str) -> None:
    check_refused(good, tmp_path / "s", change, message)


def test_tensors_swapped_in_the_header(good: Path, tmp_path: Path) -> None:
    """The names of two tensors of one dtype and shape exchanged, the bytes left as they are."""
    data = good.read_bytes()
    swapped = data.replace(b'"entry_mask"', b'"X"').replace(b'"entry_sequence"', b'"entry_mask"')
    swapped = swapped.replace(b'"X"', b'"entry_sequence"')
    assert len(swapped) == len(data) and swapped != data
    (tmp_path / "s").write_bytes(swapped)
    assert "its content has sha256" in refusal(tmp_path / "s")


def test_files_that_no_memory_holds(good: Path, tmp_path: Path) -> None:
    """Of holes: they claim what they have not."""
    data = good.read_bytes()
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n])
    last = header["vocabulary.token_bytes"]
    last["shape"] = [1 << 38]
    last["data_offsets"][1] = last["data_offsets"][0] + (1 << 38)
    head = framed(json.dumps(header), b"")
    with (tmp_path / "s").open("wb") as file:
        file.write(head + data[8 + n :])
        file.truncate(len(head) + last["data_offsets"][1])
    assert "and a store at most 4,294,967,296" in refusal(tmp_path / "s")
    with (tmp_path / "t").open("wb") as file:
        file.truncate(1 << 40)
    assert "and a store at most 4,294,967,296" in refusal(tmp_path / "t")


def test_lies_about_shapes(good: Path, tmp_path: Path) -> None:
    """Shapes that safetensors lets through, and numpy could not even hold."""
    data = good.read_bytes()
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n])
    empty = header["vocabulary.byte_pieces"]
    for shape in ([1 << 62, 0], [0] * 100, [0, 1 << 63], [0, 5]):
        empty["shape"] = shape
        (tmp_path / "s").write_bytes(framed(json.dumps(header), data[8 + n :]))
        assert "tensor vocabulary.byte_pieces has shape" in refusal(tmp_path / "s")
    empty["shape"], empty["dtype"] = [0], "F8_E4M3"
    (tmp_path / "s").write_bytes(framed(json.dumps(header), data[8 + n :]))
    assert "tensor vocabulary.byte_pieces has dtype F8_E4M3, expected" in refusal(tmp_path / "s")


# Whatever is let through can be run


@pytest.mark.parametrize("n", share([40, 400], 1))
def test_what_loads_can_be_run(n: int, good: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    check_examples(lambda data: check_lies(data, good, tmp_path_factory), n, st.data())


def check_lies(data: st.DataObject, good: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    facts, tensors = read_parts(good)
    names = sorted(name for name in TENSORS if tensors[name].size and not name.startswith("vocabulary."))
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(names))
        place = np.unravel_index(data.draw(st.integers(0, tensors[name].size - 1)), tensors[name].shape)
        put(
            name,
            place,
            data.draw(st.integers(0, 1) if "is_" in name else st.integers(0 if name == "masks.dense" else -2, 120)),
        )(facts, tensors)
    facts["steps"] = [
        [step, int(row.sum())] for (step, _), row in zip(facts["steps"], tensors["counts"].astype(int), strict=True)
    ]
    path = tmp_path_factory.mktemp("lies") / "s"
    write_parts(path, facts, tensors)
    try:
        store = load_store(path)
    except StoreError:
        return
    run(store)


def run(store: EntryStore) -> None:
    """Read every entry, and every token in every lexer state."""
    masks = [set(store.masks.ids(mask).tolist()) for mask in range(len(store.masks))]
    states = [*np.flatnonzero(store.nfa.is_resting).tolist(), store.nfa.n_states]
    assert store.grammar.layout is not None
    lexer = NfaLexer(store.nfa, store.codes, store.grammar.layout.newline)
    for state in states:
        for last in (None, *range(-1, store.grammar.n_terminals)):
            cell = store.cell(state, last)
            assert cell != NO_CELL
            for sequence, mask in store.entries(cell):
                assert all(store.codes.decode(symbol) for symbol in sequence)
                assert masks[mask] <= set(store.vocabulary.text_ids().tolist())
        for token in filter(None, store.vocabulary.tokens):
            for symbols, end, _ in lexer.outcomes(state, NO_COLUMN, token):
                assert store.nfa.is_resting[end]
                assert all(store.codes.decode(symbol) for symbol in symbols)
