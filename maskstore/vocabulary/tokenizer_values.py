"""Values from tokenizer files, checked as they are read: JSON, objects, lists, ids, texts.

In all functions `where` says which value of which file it is; messages begin with it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import MaskwrightError, VocabularyError
from maskwright.analysis.nesting import read_json

#: Built-in name -> (package, file or folder inside it). The three Mistral vocabularies are files of
#: the package mistral-common (Apache-2.0).
BUILT_IN: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "mistral-7b-v0.1": ("mistral_common", "data/tokenizer.model.v1"),
        "mistral-7b-v0.3": ("mistral_common", "data/mistral_instruct_tokenizer_240323.model.v3"),
        "tekken": ("mistral_common", "data/tekken_240911.json"),
        "python-tiny": ("maskwright.models", "python-tiny"),
    }
)

#: Ids from here on are taken as a sign of damage. The largest vocabulary in use has about 262,000.
ID_LIMIT = 1 << 22


def parse_json(data: bytes, where: str) -> Any:
    """The JSON value.

    Raises: VocabularyError if the bytes are not UTF-8 or not JSON, an object has a key twice, an
    integer has thousands of digits, or the nesting is too deep.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            raise VocabularyError(
                f"{where}: the key {clip(twice)} occurs twice in one object; one of the two would be lost"
            )
        return found

    try:
        return read_json(data.decode(), object_pairs_hook=once)
    except UnicodeDecodeError as error:
        raise VocabularyError(
            f"{where}: not UTF-8 at byte {error.start} ({error.reason}); JSON files must be UTF-8"
        ) from None
    except json.JSONDecodeError as error:
        raise VocabularyError(f"{where}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except VocabularyError:
        raise
    except ValueError as error:  # an integer of thousands of digits, or what is nested too deeply
        raise VocabularyError(f"{where}: not JSON that can be read: {error}") from None


def as_list(value: Any, where: str) -> list[Any]:
    """The value itself.

    Raises: VocabularyError unless it is a list.
    """
    if not isinstance(value, list):
        raise VocabularyError(f"{where} is {clip(value)}, expected a list")
    return value


def as_object(value: Any, where: str) -> Mapping[str, Any]:
    """The value itself.

    Raises: VocabularyError unless it is a JSON object.
    """
    if not isinstance(value, dict):
        raise VocabularyError(f"{where} is {clip(value)}, expected an object")
    return value


def check_id(token: object, where: str) -> int:
    """The id itself.

    Raises: VocabularyError unless it is an int from 0 to ID_LIMIT - 1.
    """
    if not isinstance(token, int) or isinstance(token, bool) or not 0 <= token < ID_LIMIT:
        raise VocabularyError(
            f"{where}: id {clip(token)} is out of range; expected an integer from 0 to {ID_LIMIT - 1}"
        )
    return token


def is_of_package(error: BaseException) -> bool:
    """Whether it is an error of a package's own code, not KeyboardInterrupt or the like.

    Packages written in Rust raise Exception itself, or panic on odd files. A panic is no Exception.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


@contextmanager
def package_errors(where: str, what: str, ending: str = "") -> Iterator[None]:
    """A context in which every error of a tokenizer's package becomes a VocabularyError.

    what : what fails.
    ending : how the message ends.

    The message is "where: what: the package's message", then `ending`.

    Raises: VocabularyError if the package raises. MaskwrightError and MemoryError pass unchanged,
    and so do exceptions that are no Exception, such as KeyboardInterrupt.
    """
    try:
        yield
    except (MaskwrightError, MemoryError):
        raise
    except BaseException as error:
        if not is_of_package(error):
            raise
        raise VocabularyError(f"{where}: {what}: {clip(str(error) or type(error).__name__)}{ending}") from None


def packages_of(source: object) -> set[str]:
    """The packages of an object's class and of its base classes."""
    return {base.__module__.partition(".")[0] for base in type(source).__mro__}


def encode_text(text: str, where: str) -> bytes:
    """The UTF-8 bytes of a text.

    Raises: VocabularyError if it holds half a surrogate pair, which UTF-8 cannot write.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise VocabularyError(f"{where}: {text!r} holds half a surrogate pair, which UTF-8 cannot write") from None
