"""Why a reading of a JSON text ends, in words for users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from maskwright.analysis.schema.shapes import Escapes, Texts
from maskwright.analysis.schema.spacing import CLOSES, GOES_ON, SPACES
from maskwright.decoding.reference.json_characters import BACKSLASH, QUOTE, SPACE, spelled
from maskwright.decoding.reference.json_places import (
    ArrayFrame,
    Digits,
    Frame,
    Gap,
    ObjectFrame,
    Quoted,
    Reading,
    Readings,
    Word,
    known_of,
    path_of,
)
from maskwright.decoding.reference.json_shapes import (
    OTHER,
    AutomatonShape,
    LiteralShape,
    NumberShape,
    ObjectShape,
    ReadShape,
    WordShape,
    goes_on,
)
from maskwright.decoding.reference.json_values import Known

OF_NUMBERS = b"0123456789.+-eE"
MOST_NAMED = 8
"""Keys or values that are named in a message."""


class Reader(Protocol):
    """What reasons ask of the interpreter: see `JsonInterpreter`."""

    texts: Texts
    nodes: Sequence[tuple[ReadShape, ...]]

    def ended(self, readings: Readings) -> Readings:
        """The readings in which a word or a number has ended."""

    def roles(self, frame: ArrayFrame) -> list[tuple[int, int]]:
        """What the next item may be."""

    def longer(self, frame: Frame | None, place: Quoted, byte: int) -> Quoted | None:
        """A place in a string with one more byte."""


def _at(path: str, what: str) -> str:
    """What is wrong at a JSON path, and what would be allowed: in words, as all that follows here.

    path : of a value, or of the object or array around it.
    """
    return f"{path}: {what}"


def quoted(text: bytes, most: int = 40) -> str:
    """A string in quotation marks, cut where it is long."""
    shown = text.decode(errors="replace")
    shown = shown if len(shown) <= most else shown[:most] + "..."
    return '"' + "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown) + '"'


def one_of(names: Iterable[str], last: str = "or") -> str:
    """Names with commas and "or"; at most `MOST_NAMED` of them.

    >>> one_of(["a", "b", "c"])
    'a, b or c'
    """
    found = list(dict.fromkeys(names))
    if len(found) > MOST_NAMED:
        found = [*found[: MOST_NAMED - 1], f"{len(found) - MOST_NAMED + 1} more"]
        last = "and"
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} {last} {found[-1]}"


def number_of(n: int, name: str) -> str:
    """A number with its noun."""
    return f"{n} {name if n == 1 else _PLURALS[name]}"


_PLURALS = {"property": "properties", "item": "items", "character": "characters"}


def values_of(node: Sequence[ReadShape], known: Known = frozenset()) -> str:
    """The values of a node that are not known, in a few words; "" for none."""
    names: list[str] = []
    for shape in node:
        if isinstance(shape, WordShape):
            names.extend(text.decode(errors="replace") for text in shape.texts if shape.values[text] not in known)
        elif isinstance(shape, NumberShape):
            names.append("a number" if any(row[ord(".")] >= 0 for row in shape.rows) else "an integer")
        elif isinstance(shape, LiteralShape):
            names.extend(quoted(text) for text in shape.texts if text not in known)
        elif isinstance(shape, AutomatonShape):
            names.append("a string")
        else:
            names.append("an object" if isinstance(shape, ObjectShape) else "an array")
    return one_of(names) if names else ""


def keys_of(frame: ObjectFrame) -> str:
    """The keys that may come next, in a few words."""
    shape = frame.shape
    addable = sorted(frame.addable)
    names = [quoted(shape.shape.keys[i]) for i in addable if i < shape.n_named]
    if len(names) == len(addable):
        return one_of(names) if names else "none"
    other = "any other name" if shape.automaton is None else "another name that the schema allows"
    return one_of([*names[: MOST_NAMED - 1], other]) if names else other.replace("any other", "any")


def of_byte(reader: Reader, reading: Reading, byte: int) -> str:
    """Why a reading ends at a byte, if not for an equal item."""
    frame, place = reading
    if isinstance(place, Quoted):
        if byte == QUOTE and not place.spelling:
            is_key = isinstance(place.shape, ObjectShape)
            return of_key_end(frame, place) if is_key else of_string_end(frame, place)  # type: ignore[arg-type]
        after = reader.longer(frame, place, byte)
        if after is None:
            return of_spelling(frame, place, byte, reader.texts.escapes)
        return of_string(frame, place, after)
    if isinstance(place, Gap):
        ends, leads = reader.texts.spacing.ends(place.space), reader.texts.spacing.leads(place.space)
        wanted = CLOSES if byte in b"}]" else GOES_ON
        is_of_space = byte in SPACES or (not ends & wanted and leads & wanted)
        return of_space(frame, place, byte) if is_of_space else of_token(reader, frame, place, byte)
    ended = reader.ended((reading,))
    if not ended or (isinstance(place, Digits) and byte in OF_NUMBERS):
        return of_scalar(frame, place, byte)
    return of_byte(reader, ended[0], byte)


def of_space(frame: Frame | None, place: Gap, byte: int) -> str:
    """White space that the text's spacing does not allow, or lacks."""
    where = path_of(frame, is_inside=place.awaited in ("value", "colon"))
    name = {0x20: "a blank", 0x09: "a tab", 0x0A: "a line feed", 0x0D: "a carriage return"}.get(byte)
    if name is None:
        return _at(where, "white space is expected here")
    is_behind = place.awaited in ("object's more", "array's more")
    return _at(where, f"{name} may not stand here" + ", unless the bracket may be closed" * is_behind)


def of_token(reader: Reader, frame: Frame | None, place: Gap, byte: int) -> str:
    """A byte that may not come where white space may end."""
    awaited = place.awaited
    if awaited == "end":
        return _at("$", "the text is complete, only white space may follow")
    if awaited == "value":
        return _at(path_of(frame), f"expected {values_of(reader.nodes[place.node])}")
    if awaited == "colon":
        return _at(path_of(frame), "expected : behind the name")
    if isinstance(frame, ObjectFrame):
        return _in_object(frame, place, byte)
    assert isinstance(frame, ArrayFrame)
    return _in_array(reader, frame, place, byte)


def _in_object(frame: ObjectFrame, place: Gap, byte: int) -> str:
    shape, path = frame.shape, path_of(frame, is_inside=False)
    may_end = frame.may_end and place.awaited != "key"
    addable = place.awaited != "bracket" and frame.may_go_on
    if byte == ord("}") and place.awaited != "key":
        return _unfinished(frame)
    if byte in b'",' and not addable and place.awaited != "bracket":
        most = shape.shape.most
        if most is not None and shape.count(frame.used, len(frame.others)) >= most:
            return _at(path, f"no further property may come: there may be at most {number_of(most, 'property')}")
        if most is not None and shape.missing - frame.used:
            return _unfinished(frame)
        return _at(path, "no further property may come: there is no other name left")
    begin = "," if place.awaited == "object's more" else f"a property name ({keys_of(frame)})"
    return _at(path, "expected " + one_of([*[begin] * addable, *["}"] * may_end]))


def _unfinished(frame: Frame) -> str:
    """Why an object or array may not end."""
    if isinstance(frame, ArrayFrame):
        return _unfinished_array(frame)
    shape, path = frame.shape, path_of(frame, is_inside=False)
    lacking = sorted(shape.missing - frame.used)
    missing = [quoted(shape.shape.keys[i]) for i in lacking if i < shape.n_named]
    if lacking and not missing:
        return _at(path, "it lacks a property that the schema asks for by what it is, not by its name")
    if missing:
        names = one_of(missing, "and")
        is_one = len(missing) == 1
        return _at(path, f"{'property' if is_one else 'properties'} {names} must be there")
    least = shape.shape.least
    count = shape.count(frame.used, len(frame.others))
    return _at(path, f"at least {number_of(least, 'property')} must be there, and there {_are(count)}")


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count or 'none'}"


def _in_array(reader: Reader, frame: ArrayFrame, place: Gap, byte: int) -> str:
    shape = frame.shape
    path = path_of(frame, is_inside=False)
    may_end = frame.may_end and place.awaited != "item"
    roles = reader.roles(frame)
    if byte == ord("]") and place.awaited != "item":
        return _unfinished(frame)
    if not roles and (byte == ord(",") or place.awaited != "array's more") and place.awaited != "bracket":
        most = shape.shape.most
        why = "no other value is left"
        if most is not None and frame.count >= most:
            why = f"there may be at most {number_of(most, 'item')}"
        elif not shape.shape.is_unique:
            why = "the schema allows none here"
        return _at(path, f"no further item may come: {why}")
    if place.awaited in ("array's more", "bracket"):
        comma = [","] * (place.awaited == "array's more" and bool(roles))
        return _at(path, "expected " + one_of([*comma, *["]"] * may_end]))
    item = values_of([one for node, _ in roles for one in reader.nodes[node]], frame.known)
    end = " or ]" if may_end else ""
    return _at(f"{path}[{frame.count}]", f"expected {item}{end}")


def _unfinished_array(frame: ArrayFrame) -> str:
    shape, path = frame.shape.shape, path_of(frame, is_inside=False)
    if frame.count < shape.least:
        return _at(path, f"at least {number_of(shape.least, 'item')} must be there, and there {_are(frame.count)}")
    if shape.states:
        return _at(path, "it lacks items: those that `contains` asks for, or more of them")
    assert shape.contained is not None
    least = shape.contained.least
    verb = "is" if least == 1 else "are"
    return _at(path, f"at least {number_of(least, 'item')} that {verb} asked for by `contains` must be there")


def of_scalar(frame: Frame | None, place: Word | Digits, byte: int = 0) -> str:
    """Why a word or number does not go on with a byte, or may not end before it; 0 at the end."""
    path = path_of(frame)
    if isinstance(place, Word):
        texts = [text.decode(errors="replace") for text in place.shape.texts if text.startswith(place.text)]
        return _at(path, f"expected {one_of(texts)}")
    if byte in OF_NUMBERS:
        return _at(path, f"no number that may stand here goes on with {chr(byte)!r}")
    if isinstance(frame, ArrayFrame) and place.shape.accepting[place.state]:
        return _at(path, "the number may not end here: an item before it is equal")
    row = place.shape.rows[place.state]
    shown = [chr(byte) for byte in range(0x7F) if row[byte] >= 0]
    return _at(path, f"the number may not go on or end so: expected {one_of(shown)}")


def of_equal(reading: Reading) -> str:
    """A reading in which an item is equal to one before it, or can become nothing else."""
    frame, place = reading
    around = frame
    while around is not None and not (isinstance(around.parent, ArrayFrame) and around.parent.known):
        around = around.parent
    item = path_of(around.parent) if around is not None else path_of(frame)
    message = "the item would be equal to one before it, whatever follows"
    is_listed = not isinstance(place, Gap) and isinstance(place.shape, WordShape | LiteralShape)
    left = values_of([place.shape], known_of(frame)) if is_listed else ""  # type: ignore[union-attr]
    return _at(item, f"{message}; expected {left}" if left else message)


def of_spelling(frame: Frame | None, place: Quoted, byte: int, escapes: Escapes) -> str:
    """Bytes that no string has: they are not JSON, or an escape that the texts do not have."""
    path = _of_string(frame, place)
    spelling = place.spelling
    if escapes != "any" and spelling[:1] == bytes([BACKSLASH]) and spelled(spelling + bytes([byte])):
        return _at(path, f"this character is spelled otherwise: escapes are {escapes}")
    if spelling[:2] == b"\\u":
        half = " of the second half of a surrogate pair" if len(spelling) >= 6 else ""
        message = f"expected \\u and four hexadecimal digits{half}; half a pair is no character"
        return _at(path, message if half else "expected four hexadecimal digits of a character behind \\u")
    if spelling[:1] == bytes([BACKSLASH]):
        return _at(path, 'expected one of " \\ / b f n r t u behind the backslash')
    if byte < SPACE and not spelling:
        return _at(path, f"control character {byte:#04x} must be escaped in a string")
    return _at(path, "the bytes of the string are not valid UTF-8")


def _of_string(frame: Frame | None, place: Quoted) -> str:
    return path_of(frame, is_inside=not isinstance(place.shape, ObjectShape))


def of_string(frame: Frame | None, place: Quoted, after: Quoted) -> str:
    """A character, or its beginning, with which no string goes on.

    place, after : before and behind the byte.
    """
    path = _of_string(frame, place)
    shape = place.shape
    is_escape = bool(after.spelling)
    if isinstance(shape, ObjectShape):
        assert isinstance(frame, ObjectFrame)
        begun = quoted(place.content if is_escape else after.content)
        what = "goes on with this escape or character" if is_escape else "begins so"
        there = [quoted(key) for key in _keys_there(frame) if goes_on(key, after.content, None)]
        already = f" ({one_of(there, 'and')} {'is' if len(there) == 1 else 'are'} there already)" if there else ""
        return _at(path, f"no property that may come {what}: {begun}{already}; expected {keys_of(frame)}")
    if isinstance(shape, LiteralShape):
        return _at(path, f"expected {values_of([shape], known_of(frame))}")
    if shape.most is not None and place.length >= shape.most:
        return _at(path, f"the string is longer than {number_of(shape.most, 'character')}")
    return _at(path, "no string that may stand here goes on with this character")


def _keys_there(frame: ObjectFrame) -> list[bytes]:
    return [*(frame.shape.shape.keys[i] for i in sorted(frame.used) if i < frame.shape.n_named), *sorted(frame.others)]


def of_string_end(frame: Frame | None, place: Quoted) -> str:
    """A string that may not end here."""
    path = path_of(frame)
    shape = place.shape
    if isinstance(shape, AutomatonShape):
        if place.length < shape.least:
            return _at(path, f"the string is shorter than {number_of(shape.least, 'character')}")
        return _at(path, "no string that may stand here ends so")
    assert isinstance(shape, LiteralShape)
    return _at(path, f"expected {values_of([shape], known_of(frame))}")


def of_key_end(frame: ObjectFrame, place: Quoted) -> str:
    """A key that may not come."""
    shape = frame.shape
    path = path_of(frame, is_inside=False)
    index = shape.index.get(place.content, OTHER)
    name = quoted(place.content)
    allowed = f"; expected {keys_of(frame)}"
    if index in frame.used or place.content in frame.others:
        return _at(path, f"property {name} is there already{allowed}")
    if index == OTHER or shape.shape.values[index] < 0 or not frame.addable:
        return _at(path, f"property {name} may not be there{allowed}")
    return _at(path, f"property {name} may not come here{allowed}")


def of_end(reader: Reader, reading: Reading) -> str:
    """Why a text is not complete."""
    frame, place = reading
    if isinstance(place, Quoted):
        what = "the name of a property" if isinstance(place.shape, ObjectShape) else "a string"
        return _at(_of_string(frame, place), f"{what} is under way")
    if isinstance(place, (Word, Digits)):
        if not list(reader.ended((reading,))):
            return of_scalar(frame, place)
        place = Gap(0, "object's more" if isinstance(frame, ObjectFrame) else "array's more" if frame else "end", 0)
    if place.awaited == "end":
        return of_space(None, place, QUOTE)
    is_inside = place.awaited in ("value", "colon", "key", "item")
    return of_token(reader, frame, place, 0) if frame is None or is_inside or frame.may_end else _unfinished(frame)
