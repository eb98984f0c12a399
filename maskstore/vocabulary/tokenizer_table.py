"""What the readers of tokenizers return: the bytes of each id, and an encoder to check them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from maskwright.analysis.arguments import as_integer, clip, is_iterable, refuse_argument
from maskwright.analysis.errors import VocabularyError
from maskwright.maskstore.vocabulary.tokenizer_values import ID_LIMIT, check_id, encode_text, package_errors

#: Names of end-of-text tokens, for tokenizers that do not say which special token ends a text.
KNOWN_EOS = (
    "</s>",
    "<eos>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|im_end|>",
    "<|return|>",
    "<end_of_turn>",
    "<EOT>",
    "<｜end▁of▁sentence｜>",
    "[EOS]",
)

# (first, end, step) of code points that together have every byte of UTF-8. U+E000 to U+F8FF are
# private: no normaliser changes them.
_CODES = (
    (0, 0x80, 1),
    (0x80, 0x800, 0x41),
    (0x800, 0xD800, 0x5C1),
    (0xE000, 0xF900, 0x81),
    (0x10000, 0x110000, 0x10041),
)
_EVERY_UTF8_BYTE = "".join(chr(code) for first, end, step in _CODES for code in range(first, end, step))

#: Texts that a tokenizer must give back: plain code, layout, line ends, several scripts, emoji,
#: every byte of UTF-8.
SAMPLES = (
    "def f(x):\n    return x + 1\n",
    "if a:\n\tb = [1, 22, 333]\n\t\tc = {'k': \"v\"}  # note\n\n\n",
    "int main(void) { return 0; }\r\nx = y\r\n\r\n",
    " leading, trailing and  double   spaces        ",
    "naïve façade Ünïcödé ß Ελληνικά русский 日本語 한국어 العربية हिन्दी",
    "🙂 👩‍👩‍👧 🇫🇷 𝒳 \U0010fffd",
    _EVERY_UTF8_BYTE,
)


@dataclass
class Reference:
    """A tokenizer's own encoder, as the check needs it.

    encode : text -> ids, without any special token; None for a text that it refuses.
    expected : text -> the text as the tokenizer's normaliser leaves it, with `▁` written as a
        space.
    decode : ids -> text, by the tokenizer's own decoder; None if there is none.
    unknown : ids that the encoder gives for parts of a text for which it has no token.
    """

    encode: Callable[[str], list[int] | None]
    expected: Callable[[str], str] = str
    decode: Callable[[list[int]], str] | None = None
    unknown: frozenset[int] = frozenset()


@dataclass
class TokenTable:
    """A vocabulary while it is being read.

    where : the file or object, for messages.
    reference : the tokenizer's own encoder; None if its package is not installed.
    names : what the source calls its tokens -> ids; empty where it has no names but the bytes.
    taken : id -> the bytes that a token had before it became special. The encoder gives such a
        token for these bytes all the same.

    The other fields are those of `Vocabulary`.
    """

    where: str
    tokens: list[bytes]
    special: dict[int, str]
    eos: set[int] = field(default_factory=set)
    byte_pieces: set[int] = field(default_factory=set)
    reference: Reference | None = None
    names: Mapping[str, int] = field(default_factory=dict)
    taken: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def from_ids(
        cls,
        where: str,
        texts: Mapping[int, bytes],
        special: Mapping[int, str],
        remedy: str = "the file is empty or damaged",
    ) -> TokenTable:
        """The table of tokens given by id. Special ones get b"".

        where : the file or object, for messages.
        texts : id -> bytes.
        special : id -> name.
        remedy : how the message ends if no token has text.

        Raises: VocabularyError if no token has text; and as `add` and `name_special`.
        """
        if not any(texts.values()):
            raise VocabularyError(f"{where}: has no token that stands for a text; {remedy}")
        table = cls(where, [], {})
        table.add({token: text for token, text in texts.items() if token not in special}, special)
        table.name_special(special)
        table.taken = {token: texts[token] for token in special if texts.get(token)}
        return table

    def add(self, texts: Mapping[int, bytes], taken: Mapping[int, str] | None = None) -> None:
        """Add tokens with text after the present ones.

        texts : id -> bytes.
        taken : id -> name; ids that will be special, which therefore need no text.

        Gaps are allowed only between the last token with text and special tokens with higher ids;
        some tokenizers have them.

        Raises: VocabularyError if an id is out of range, or an id below the last one of `texts` has
        no token.
        """
        for token in texts:
            check_id(token, self.where)
        taken = taken or {}
        size = max(texts, default=-1) + 1
        missing = [token for token in range(len(self.tokens), size) if token not in texts and token not in taken]
        if missing:
            shown = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
            raise VocabularyError(
                f"{self.where}: {len(missing)} of the ids 0 to {size - 1} have no token ({shown}); the file "
                "is incomplete, or its special tokens are kept elsewhere: give them as special={'<name>': id}"
            )
        self.tokens += [texts.get(token, b"") for token in range(len(self.tokens), size)]

    def name_special(self, special: Mapping[int, str]) -> None:
        """Make these ids special, under these names. They may lie past the end.

        special : id -> name.

        Raises: VocabularyError if an id is out of range, or a name holds half a surrogate pair.
        """
        for token, name in special.items():
            check_id(token, f"{self.where}: special token {name!r}")
            encode_text(name, f"{self.where}: special token {token}")
            self.tokens += [b""] * (token + 1 - len(self.tokens))
            if self.tokens[token]:
                self.taken[token] = self.tokens[token]
            self.tokens[token] = b""
            self.byte_pieces.discard(token)
            self.special[token] = name

    def set_eos(self, ends: Iterable[str | int]) -> None:
        """Replace the eos tokens by those given. They become special.

        ends : names or ids.

        Raises: VocabularyError if `ends` is no list of names and ids, a name is no token's, or an
        id is out of range.
        """
        ids = {name: token for token, name in self.special.items()}
        if isinstance(ends, str | bytes) or not is_iterable(ends):
            refuse_argument("eos", ends, "a list of tokens' ids or names, as in [0] or ['</s>']", VocabularyError)
        self.eos = set()
        for end in ends:
            if isinstance(end, str):
                token = self.find(end)
            else:
                token = as_integer(f"{self.where}: a member of eos", end, VocabularyError, "an id or a token's name")
            if not 0 <= token < len(self.tokens):
                raise VocabularyError(
                    f"{self.where}: eos {clip(end)} is not a token of this vocabulary; expected an id below "
                    f"{len(self.tokens)} or a token's name (special ones: {_some(ids)})"
                )
            self.make_eos(token, end if isinstance(end, str) else self.tokens[token].decode(errors="replace"))

    def make_eos(self, token: int, name: str) -> None:
        """Make this id end a text. It becomes special, under its old name if it has one.

        token : the id.
        name : its name if it has none.

        Raises: as `name_special`.
        """
        self.eos.add(token)
        self.name_special({token: self.special.get(token, name)})

    def guess_eos(self) -> None:
        """If there are no eos tokens, take the special tokens with well-known names as eos."""
        if not self.eos:
            self.eos = {token for token, name in self.special.items() if name in KNOWN_EOS}

    def pad(self, size: int) -> None:
        """Add ids with b"" until there are `size`.

        Raises: VocabularyError if there are more ids than that, or `size` is above `ID_LIMIT`.
        """
        if not len(self.tokens) <= size <= ID_LIMIT:
            raise VocabularyError(
                f"{self.where}: size={clip(size)} does not fit its {len(self.tokens)} ids; size is the number of rows "
                f"of the model's embedding, at least {len(self.tokens)} and at most {ID_LIMIT}"
            )
        self.tokens += [b""] * (size - len(self.tokens))

    def find(self, name: str) -> int:
        """The id of a special token's name, of bytes (the first), or of a name in the source.

        -1 if there is none; nothing is called "".

        Raises: VocabularyError if the name holds half a surrogate pair.
        """
        text = encode_text(name, self.where)
        if not text:
            return -1
        token = next((token for token, known in self.special.items() if known == name), None)
        if token is not None:
            return token
        return self.tokens.index(text) if text in self.tokens else self.names.get(name, -1)


def check_round_trip(table: TokenTable) -> bool:
    """True if encoding each sample and joining table.tokens gives the sample back.

    False if there is no encoder to ask. A token that was made special counts as what it was.

    The bytes must be the text, or the text as the tokenizer's normaliser leaves it. One space
    before it, the dummy prefix, is allowed. Tokenizers that lose white space after the normaliser
    (WordPiece, T5) may differ in white space if their own decoder gives exactly these bytes.
    Samples for which the tokenizer lacks tokens are skipped.

    Raises: VocabularyError if a sample does not come back (it shows the text, the ids and the
    bytes), or the encoder's package fails.
    Cost: encoding 2 kB of text.
    """
    reference = table.reference
    if reference is None:
        return False
    tokens = [table.taken.get(token, data) for token, data in enumerate(table.tokens)] if table.taken else table.tokens
    for text in SAMPLES:
        with package_errors(table.where, f"the tokenizer's own encoder fails on the text {clip(text)}"):
            ids = reference.encode(text)
            if ids is None:
                continue
            is_fine = not reference.unknown.isdisjoint(ids) or _gives_back(tokens, ids, text, reference)
        if not is_fine:
            got = b"".join(tokens[token] for token in ids if 0 <= token < len(tokens))
            raise VocabularyError(
                f"{table.where}: the tokens do not spell the text that they encode. Text {clip(text)}; ids {clip(ids)}; "
                f"bytes got {clip(got)}. The file contradicts itself, or is of a kind that cannot be read exactly"
            )
    return True


def _gives_back(tokens: list[bytes], ids: list[int], text: str, reference: Reference) -> bool:
    """Whether the bytes of these ids count as the text."""
    if not all(0 <= token < len(tokens) for token in ids):
        return False
    got = b"".join(tokens[token] for token in ids)
    normal = reference.expected(text)
    if any(got in (wanted.encode(), b" " + wanted.encode()) for wanted in (text, normal)):
        return True
    if reference.decode is None or "".join(got.decode(errors="replace").split()) != "".join(normal.split()):
        return False
    decoded = reference.decode(ids).encode()
    return got in (decoded, b" " + decoded)


def _some(names: Iterable[str]) -> str:
    """The first eight names in order, for a message."""
    ordered = sorted(names)
    return ", ".join(ordered[:8]) + (", ..." if len(ordered) > 8 else "") or "none"
