"""Completes a prompt with a local language model, so that both together are a text of the grammar.

In: a store, a prompt, a model, whose vocabularies are compared. Out: a `Generation`
(maskwright.decoding.generation).
"""

from __future__ import annotations

import importlib.util
import os
import socket
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import a_type, as_boolean, clip, need_type
from maskwright.analysis.errors import MaskwrightError, MissingExtraError, UnknownNameError, VocabularyError
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.decoding.adapters.huggingface import check_same_tokens
from maskwright.decoding.engines import check_tables
from maskwright.decoding.generation.completion import Completion, Intervention, intervention
from maskwright.decoding.generation.generation import Generation, generate
from maskwright.decoding.generation.healing import heal_prompt
from maskwright.decoding.generation.logits import Reader, Sampler, likeliest, reader_of
from maskwright.decoding.generation.options import as_stops, check_names
from maskwright.decoding.infill.prompts import hole_tokens
from maskwright.decoding.logits import need_torch
from maskwright.decoding.matcher import DEFAULT_ROLLBACK
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
from maskwright.models import BUNDLED, model_folder
from maskwright.prompts import as_text, check_order, read_prompt
from maskwright.stores.store import as_store

if TYPE_CHECKING:
    from maskwright.analysis.composition import Composition
    from maskwright.decoding.generation.names import NameSource
    from maskwright.maskstore.canonical import CanonicalTokens
    from maskwright.stores.composed_store import ComposedStore
    from maskwright.stores.schema_store import SchemaStore
    from maskwright.stores.sources import Constraint
    from maskwright.stores.store import Store


@dataclass(frozen=True)
class LanguageModel:
    """A causal language model with its tokenizer.

    name : the name or folder it was loaded by.
    model : the model, an object of transformers, or a function from tokens to logits.
    tokenizer : the model's tokenizer, an object of transformers or of tokenizers.
    vocabulary : the tokens as bytes.
    context : the most tokens that the model sees at once; 0 if its configuration does not say.
    begin : token ids to put before every prompt, in addition to those that the tokenizer adds.
    """

    name: str
    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    vocabulary: Vocabulary
    context: int
    begin: tuple[int, ...] = ()

    def tokens_of(self, text: str) -> list[int]:
        """The token ids that the model reads for a prompt; never empty.

        text : the prompt. If it gives no tokens, the result is one beginning-of-text token, or an
            end-of-text token if the tokenizer has no beginning-of-text token.

        Raises: MaskwrightError if there are no tokens and the tokenizer has neither of the two.
        """
        found = self.tokenizer(text)["input_ids"] if callable(self.tokenizer) else self.tokenizer.encode(text).ids
        tokens = [*self.begin, *found]
        if not tokens:
            begin, end = self.tokenizer.bos_token_id, self.tokenizer.eos_token_id
            if (first := end if begin is None else begin) is None:
                raise MaskwrightError(
                    f"model {self.name} has no token that begins a text, so the prompt cannot be empty: give some of the text"
                )
            tokens = [first]
        return tokens


def load_model(name: str | os.PathLike[str] = BUNDLED, device: str | None = None) -> LanguageModel:
    """Load a language model and its tokenizer.

    No code that comes with a model is executed, and nobody is asked whether it should be. The
    bundled model needs neither torch nor transformers: NumPy computes its logits, unless `device`
    is given.

    name : the bundled model (python-tiny), a folder, or a name on the Hugging Face hub.
    device : "cpu", "cuda", ...; by default CUDA if there is such a device, else the CPU. On the
        CPU float16 weights become float32. The bundled model is then one of transformers, too, if
        that is installed.

    Raises: MissingExtraError if torch or transformers is not installed; UnknownNameError if there
        is no such model, or if the hub cannot be reached; MaskwrightError if a folder's model
        cannot be loaded, needs code of its own, or cannot be put on the device; VocabularyError if
        the model has fewer logits than its tokenizer has tokens; and as `load_vocabulary`.
    """
    need_type("the name of a model", name, (str, os.PathLike), "a str or a Path")
    need_type("device", device, (str, NoneType), "a str or None")
    # PERF: importing torch and transformers takes ten times as long as all else
    if name == BUNDLED and (device is None or (device == "cpu" and _missing_packages())):
        from maskwright.models.numpy_model import load_parts

        vocabulary, (by_numpy, its_tokenizer) = load_vocabulary(BUNDLED), load_parts()
        return LanguageModel(BUNDLED, by_numpy, its_tokenizer, vocabulary, by_numpy.context, vocabulary.eos[:1])
    torch = need_torch()
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise MissingExtraError(
            "transformers is not installed, but language models need it: pip install 'maskwright[hf]'"
        ) from error
    source = _source(name)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if not os.path.isdir(source):
        _check_hub(str(name))
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
        model: Any = AutoModelForCausalLM.from_pretrained(source, trust_remote_code=False, dtype="auto")
    except Exception as error:  # whatever a package raises for files that are not as it expects
        raise _explained(name, source, error) from error
    if device == "cpu" and model.dtype == torch.float16:
        model = model.float()
    try:
        model = model.to(device)
    except (RuntimeError, AssertionError) as error:
        raise MaskwrightError(f"model {name} cannot be put on device {device!r}: {error}") from error
    vocabulary = load_vocabulary(tokenizer, name=Path(source).name, eos=_ends(tokenizer, model) or None)
    rows = int(model.get_output_embeddings().weight.shape[0])
    needed = 1 + max((token for token, data in enumerate(vocabulary.tokens) if data), default=0)
    if rows < needed:
        raise VocabularyError(
            f"model {name} has {rows} logits, but its tokenizer has tokens up to id {needed - 1}: they do not belong together"
        )
    context = int(getattr(model.config.get_text_config(), "max_position_embeddings", 0) or 0)
    begin = (tokenizer.bos_token_id,) if name == BUNDLED else ()
    return LanguageModel(str(name), model, tokenizer, vocabulary, context, begin)


def check_model_name(name: str | os.PathLike[str]) -> None:
    """Check what can be checked of a model's name without importing torch or transformers.

    Raises: MissingExtraError if torch or transformers is not installed; UnknownNameError if the
        name is a path that is no model's folder. `load_model` would raise the same errors.
    """
    if name != BUNDLED and (missing := _missing_packages()):
        raise MissingExtraError(
            f"{missing[0]} is not installed, but language models need it: pip install 'maskwright[hf]'"
        )
    _source(name)


def _missing_packages() -> list[str]:
    return [package for package in ("torch", "transformers") if importlib.util.find_spec(package) is None]


def vocabulary_of(name: str | os.PathLike[str]) -> Vocabulary | None:
    """The vocabulary of a model, read from the files in its folder, or None.

    None means that the model must be loaded to find out: it is a name on the hub, or its files give
    no vocabulary, or no end-of-text token.

    Raises: UnknownNameError if the name is a path that is no model's folder.
    """
    source = _source(name)
    if not os.path.isdir(source):
        return None
    try:
        found = load_vocabulary(source)
    except MaskwrightError:
        return None
    return found if found.eos else None


def check_model(store: Store | SchemaStore | ComposedStore, model: LanguageModel) -> None:
    """Check that a store was built for a model's tokenizer.

    Raises: VocabularyError if a token id stands for different bytes in the two vocabularies, or if
        the model has end-of-text tokens and none of them is one of the store's; MaskwrightError for
        a store of lexing "nfa".
    """
    check_tables([store])
    check_same_tokens(store.vocabulary, model.vocabulary)
    ours, theirs = set(store.vocabulary.eos), set(model.vocabulary.eos)
    if theirs and not ours & theirs:
        raise VocabularyError(
            f"the store's vocabulary {store.vocabulary.name} ends texts with the tokens {sorted(ours)}, model {model.name} with "
            f"{sorted(theirs)}: build the store from the model's folder, or load the vocabulary with eos={sorted(theirs)}"
        )


def start_completion(
    store: Store | SchemaStore | ComposedStore,
    prompt: str | bytes,
    model: LanguageModel,
    *,
    instruction: str | bytes = "",
    suffix: str | bytes | None = None,
    constrained: bool = True,
    heal: bool = True,
    canonical: bool | CanonicalTokens = False,
    names: NameSource | None = None,
    **options: Any,
) -> Generation:
    """Start the completion of a prompt; the result is an iterator over its steps.

    store : a store for the model's tokenizer.
    prompt : the beginning of a text of the grammar; bytes must be UTF-8.
    model : the language model.
    instruction : what the model reads before the prompt, and the grammar does not: any text.
    suffix : what stands behind the text, which is then the middle of one: `store.matcher`. A model
        with special tokens for holes reads it; others do not.
    constrained : whether to generate under the grammar's masks. False runs the same loop without
        masks; the prompt is checked all the same.
    heal : whether to take back the prompt's last tokens where a longer token could replace them,
        see `maskwright.decoding.generation.healing`.
    canonical : whether to take only tokens that the model's tokenizer itself makes, see `generate`;
        or the `load_canonical` of it, which is read anew otherwise.
    names : which names there are, as `generate` takes it, but asked about the whole text, the
        prompt included. `maskwright.python_names.PythonNames` is one.
    options : the other options of `generate`.

    Raises: IllegalTokenError if no legal text begins with the prompt; the message says where it
        goes wrong and which bytes could come there. VocabularyError if the store is not for the
        model's tokenizer. MaskwrightError if the prompt is not UTF-8. UnknownNameError for another
        option. And as `generate`.
    """
    _check_options("start_completion", options)
    constrained, heal = as_boolean("constrained", constrained), as_boolean("heal", heal)
    check_model(store, model)
    data, text = as_text(prompt)
    max_rollback = max([DEFAULT_ROLLBACK, *map(len, as_stops(options.get("stop", ())))])
    read_prompt(store.matcher(max_rollback), data)
    told = as_text(instruction, "the instruction")[1] + text
    tokens, tail = None if suffix is None else hole_tokens(model, told, as_text(suffix, "the suffix")[1]), b""
    if tokens is None:
        tokens = model.tokens_of(told)
        tokens, tail = heal_prompt(model.vocabulary, tokens, data) if heal else (tokens, tail)
    data = data[: len(data) - len(tail)]
    if suffix is None:
        matcher = store.matcher(max_rollback)
        matcher.advance_bytes(data)
    else:
        matcher = store.matcher(max_rollback, prefix=data, suffix=suffix)
    if canonical is True and constrained:
        # PERF: what reads the merges of a tokenizer is imported where somebody asks for it
        from maskwright.maskstore.canonical import load_canonical

        canonical = load_canonical(model.tokenizer)
    return generate(
        model.model,
        matcher if constrained else None,
        tokens,
        vocabulary=store.vocabulary,
        heal=tail,
        canonical=None if isinstance(canonical, bool) or not constrained else canonical,
        names=None if names is None or not constrained else _behind(names, data),
        **options,
    )


def _behind(names: NameSource, prompt: bytes) -> NameSource:
    """A source of names for a text whose beginning is not told again."""
    check_names(names)
    return lambda text: names(prompt + text)


def complete(
    store: Store | SchemaStore | ComposedStore | Constraint | Composition | str | os.PathLike[str],
    prompt: str | bytes,
    model: LanguageModel | str | os.PathLike[str] = BUNDLED,
    **options: Any,
) -> Completion:
    """Complete a prompt: the prompt followed by the result's `data` is a legal text.

    Runs `start_completion` to its end. With `constrained=False` the text may be illegal, and with
    `close=False` it may be incomplete.

    store : a store, or its file; or what `mw.build_store` builds one of, such as a schema, which it
        then does with the model's vocabulary. A str or a path is a store's file.
    prompt : the beginning of a text of the grammar; bytes must be UTF-8.
    model : a loaded model, or what `load_model` takes.
    options : those of `mw.generate`, whose docstring says what each means: max_tokens (256),
        seconds, stop, stop_when_complete, temperature (0), top_k, top_p, seed, close (True),
        canonical, fast_forward, opportunistic, counts, names, lookahead. And instruction, what the
        model reads before the prompt, no part of the text; suffix, what stands behind; and
        constrained=False for no masks; heal=False to keep the prompt's last tokens as they are.
        Tokens that only spell the prompt's end again do not count towards max_tokens.

    Raises: MaskwrightError where the arguments come in another order; as `start_completion`,
    `load_store`, `build_store` and `load_model`.
    """
    _check_options("complete", options)
    check_order(store, prompt)
    found: Any = as_store(store)  # type: ignore[arg-type]
    is_store = isinstance(getattr(found, "vocabulary", None), Vocabulary)
    if is_store:
        check_tables([found])  # before a model is loaded
    else:
        # PERF: who has a store need not wait for what builds one
        from maskwright.stores.build import build_store
        from maskwright.stores.sources import as_constraint

        found = as_constraint(found)
    if not isinstance(model, LanguageModel | str | os.PathLike):
        what = "what mw.load_model returns, or takes; transformers' own generate takes mw.MaskwrightLogitsProcessor"
        raise MaskwrightError(f"the model is {a_type(model)}; expected {what}")
    loaded = model if isinstance(model, LanguageModel) else load_model(model)
    return start_completion(found if is_store else build_store(found, loaded), prompt, loaded, **options).run()


def _check_options(call: str, options: Mapping[str, Any]) -> None:
    """Raises: UnknownNameError for options that neither `start_completion` nor `generate` has."""
    found = {
        one.name
        for each in (start_completion, generate)
        for one in signature(each).parameters.values()
        if one.kind is one.KEYWORD_ONLY
    } - {"vocabulary"}
    for name in options.keys() - found:
        raise UnknownNameError(f"{call} has no option {name!r}{suggestion(name, sorted(found))}")


class ModelDraw:
    """Draws the next token with a model, one text after the other: a `next_token` of `validate`.

    temperature : 0 takes the likeliest token.
    seed : the draws depend on it, the number of the text and its tokens, not on earlier texts.
    """

    def __init__(self, model: LanguageModel, temperature: float = 0.8, seed: int = 0) -> None:
        self._model, self._temperature, self._seed = model, temperature, seed
        self._read: list[int] = []
        self.begin_text(0)

    def begin_text(self, number: int) -> None:
        """Begin the text of this number: seed the sampler again with the seed and the number."""
        self._sampler = Sampler(self._temperature, 0, 1.0, (self._seed, number))
        self._reader: Reader | None = None
        self.interventions: list[Intervention] = []  # in this text

    def __call__(self, tokens: Sequence[int], words: npt.NDArray[np.uint32]) -> int:
        """The next token id.

        tokens : the token ids of the text so far.
        words : (ceil(V / 32),) uint32; the mask of the tokens allowed next.
        """
        if self._reader is not None and len(tokens) == len(self._read) + 1 and list(tokens[:-1]) == self._read:
            self._reader.push(tokens[-1])
        else:
            self._reader = reader_of(self._model.model, [*self._model.tokens_of(""), *tokens])
        self._read[:] = tokens
        logits = self._reader.logits()
        own = likeliest(logits)
        if found := intervention(len(tokens), logits, words, own):
            self.interventions.append(found)
        return self._sampler.choose(logits, words, own)


def _source(name: str | os.PathLike[str]) -> str:
    """The argument for `from_pretrained`: a folder, or a name on the hub."""
    if name == BUNDLED:
        return str(model_folder(BUNDLED))
    path = Path(os.path.expanduser(name))
    if os.path.isdir(path):
        if not (path / "config.json").is_file():
            raise UnknownNameError(
                f"folder {path} is not a model: it has no config.json; expected what save_pretrained writes"
            )
        return str(path)
    looks_like_path = (
        path.is_absolute() or str(name).startswith((".", "~")) or str(name).count("/") > 1 or os.path.exists(path)
    )
    if looks_like_path:
        raise UnknownNameError(
            f"there is no model folder {path}; expected a folder with config.json, a tokenizer and weights"
        )
    return str(name)


def _check_hub(name: str) -> None:
    """Raises UnknownNameError at once if a model is not cached and the hub cannot be reached.

    transformers would try for minutes.
    """
    from huggingface_hub import constants, try_to_load_from_cache

    try:
        cached = try_to_load_from_cache(name, "config.json")
    except ValueError as error:  # it names no repository
        raise UnknownNameError(f"no model is named {clip(name)}: {clip(str(error))}") from error
    if isinstance(cached, str) or any(map(urllib.request.getproxies().get, ("https", "all"))):
        return
    reason = "it is switched off by HF_HUB_OFFLINE" if constants.HF_HUB_OFFLINE else ""
    if not reason:
        try:
            socket.getaddrinfo(urllib.parse.urlsplit(constants.ENDPOINT).hostname, 443)
        except OSError as error:
            reason = error.strerror or str(error)
    if reason:
        raise UnknownNameError(_unknown(name, f"cannot be reached ({reason})"))


def _unknown(name: str, why: str) -> str:
    return (
        f"no model {name!r}: it is not bundled ({BUNDLED} is), there is no such folder, and the Hugging Face hub {why}. "
        "Without a connection, give the folder of a downloaded model"
    )


def needs_own_code(error: BaseException | None) -> bool:
    """Whether transformers refuses a model or tokenizer because it would have to run its code."""
    return isinstance(error, ValueError) and "trust_remote_code" in str(error)


def _explained(name: str | os.PathLike[str], source: str, error: Exception) -> MaskwrightError:
    if needs_own_code(error):
        return MaskwrightError(
            f"model {name} can only be loaded by running code that comes with it (auto_map in its config.json or "
            "tokenizer_config.json), which is never done here; use a model that transformers has classes for, or load "
            "it yourself if you trust the code, and give MaskwrightLogitsProcessor to its generate"
        )
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if os.path.isdir(source):
        return MaskwrightError(f"the model in {source} cannot be loaded: {type(error).__name__}: {first}")
    return UnknownNameError(_unknown(str(name), f"did not provide it ({type(error).__name__}: {first})"))


def _ends(tokenizer: Any, model: Any) -> list[int]:
    """End-of-text ids, from the tokenizer and from the model's generation configuration."""
    found = [tokenizer.eos_token_id]
    named = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    found += list(named) if isinstance(named, list | tuple) else [named]
    return sorted({int(token) for token in found if token is not None})
