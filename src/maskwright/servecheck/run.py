"""Checks a model's folder and a constraint: tokens, ends, padding, store, a few tokens."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import DeadEndError, MaskwrightError, MissingExtraError
from maskwright.completion import load_model, needs_own_code
from maskwright.decoding.adapters.huggingface import MaskwrightLogitsProcessor
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.tokenizer_values import is_of_package
from maskwright.servecheck.folder import CONFIG, GENERATION, ModelFolder, read_folder
from maskwright.servecheck.loading import config_problem, decoders_of, own_code, package_lacking, said
from maskwright.servecheck.report import Problem, ServeReport
from maskwright.servecheck.runtimes import Asked, runtimes_for
from maskwright.servecheck.tokens import DecodingError, compare
from maskwright.serving.requests import RequestCompiler, RequestStore, server_vocabulary
from maskwright.stores.cache import cached_store

if TYPE_CHECKING:
    from maskwright.stores.sources import Constraint


_NOT_LOADED = ("custom-code", "config-not-loaded", "tokenizer-not-loaded")


class _Check:
    """What has been found so far."""

    def __init__(self, folder: ModelFolder) -> None:
        self.folder = folder
        self.loading: list[Problem] = []
        self.problems: list[Problem] = []
        self.checked: list[str] = []
        self.skipped: list[str] = []
        self.facts: dict[str, Any] = {}

    def error(self, code: str, message: object, remedy: str) -> None:
        self.problems.append(Problem("error", code, str(message), remedy))

    def note(self, code: str, message: object, remedy: str) -> None:
        self.problems.append(Problem("note", code, str(message), remedy))

    def vocabulary(self) -> Vocabulary | None:
        """The vocabulary, compared with what decodes it; None if it cannot be read."""
        try:
            found = self.folder.vocabulary()
        except MissingExtraError as error:
            extra = "llama-cpp" if self.folder.is_gguf else "tokenizers"
            self.error("no-package", error, f"install it, and check again: pip install 'maskwright[{extra}]'")
            return None
        except MaskwrightError as error:
            self._without_ends(error)
            return None
        self.facts |= {"tokens": found.size, "special": len(found.special), "eos": list(found.eos)}
        for decoder in decoders_of(self.folder, self.skipped, self.problems):
            before = len(self.problems)
            try:
                for problem in compare(found, decoder):
                    self.problems.append(problem)
            except DecodingError as error:
                self.skipped.append(f"the tokens against {decoder.name}: it cannot decode them ({error})")
            else:
                if len(self.problems) == before:
                    self.checked.append(f"{found.size:,} ids, pairs and bytes against {decoder.name}")
            if decoder.end is not None and decoder.end not in found.eos:
                self.note(
                    "other-end",
                    f"{decoder.name} ends texts with token {decoder.end}, which is not among {list(found.eos)}",
                    "masks allow the latter at the end of a text: set eos_token_id in generation_config.json to all that end one",
                )
        if not found.is_byte_complete:
            self.note(
                "bytes",
                "not every byte is a token, so some texts cannot be written",
                "use a tokenizer with byte fallback if a text may hold any character",
            )
        return found

    def _without_ends(self, error: MaskwrightError) -> None:
        """Say why a vocabulary cannot be read: for the ends that configurations name, or at all."""
        if self.folder.ends:
            with suppress(MaskwrightError):
                self.ends(self.folder.vocabulary_without_ends(), self.folder.ends)
        if not any(problem.severity == "error" for problem in self.problems):
            self.problems.clear()
            remedy = "give the folder its tokenizer's files, as the model's authors published them"
            self.error("tokenizer", error, remedy)

    def padding(self, vocabulary: Vocabulary) -> None:
        """How many logits there are, beside the tokens."""
        n_logits = self.folder.n_logits
        last = max((token for token, data in enumerate(vocabulary.tokens) if data), default=0)
        self.facts["logits"] = n_logits
        if n_logits is None:
            self.skipped.append("padding: no file says how many logits the model gives")
        elif n_logits <= last:
            self.error(
                "too-few-logits",
                f"the model gives {n_logits:,} logits, but the tokenizer has tokens up to id {last:,}",
                "the tokenizer is of another model, or has tokens that the model was not trained with: use the model's own",
            )
        else:
            padding = max(0, n_logits - vocabulary.size)
            said = f": {padding:,} are padding, and masked" if padding else ""
            self.checked.append(f"{n_logits:,} logits for {vocabulary.size:,} ids{said}")

    def ends(self, vocabulary: Vocabulary, named: Mapping[str, tuple[int, ...]]) -> None:
        """The tokens that end texts. named : by the files that name them."""
        if not vocabulary.eos and not named:
            self.error(
                "no-end",
                "no token ends a text, so no text can end but by the limit of tokens",
                "name it: eos_token_id in generation_config.json",
            )
        most = self.folder.n_logits or vocabulary.size
        plain = vocabulary
        if named and not self.folder.is_gguf:
            with suppress(MaskwrightError):  # in the other one an end stands for no text
                plain = self.folder.vocabulary_without_ends()
        by_tokenizer = self._ends_of_tokenizer(plain)
        self._compare_ends(by_tokenizer, named)
        for name, ids in named.items():
            for token in ids:
                if not 0 <= token < most:
                    self.error(
                        "end-out-of-range",
                        f"{name} ends texts with token {token}, but ids are 0 to {most - 1}",
                        f"correct eos_token_id in {name}",
                    )
                elif token < plain.size and plain.tokens[token]:
                    self.error(
                        "end-is-text",
                        f"{name} ends texts with token {token}, which stands for {plain.tokens[token]!r}",
                        "masks would end a text there: mark the token as special in the tokenizer, or take it out of eos_token_id",
                    )
                elif token not in vocabulary.eos:
                    self.note(
                        "end-not-used",
                        f"{name} ends texts with token {token}, which is not among {list(vocabulary.eos)}",
                        "servers that read this file stop there: masks of vLLM's and SGLang's plug-ins follow the server",
                    )
        if not any(problem.code in ("no-end", "end-out-of-range", "end-is-text") for problem in self.problems):
            self.checked.append(f"end of text: tokens {_attributed(vocabulary.eos, {**named, **by_tokenizer})}")

    def _ends_of_tokenizer(self, vocabulary: Vocabulary) -> dict[str, tuple[int, ...]]:
        """The tokens that end texts, by the tokenizer's files that name them."""
        found = {
            name: tuple(sorted(token for token, text in vocabulary.special.items() if text == end))
            for name, end in self.folder.end_texts.items()
        }
        return {name: ids for name, ids in found.items() if ids}

    def _compare_ends(self, by_tokenizer: Mapping[str, tuple[int, ...]], named: Mapping[str, tuple[int, ...]]) -> None:
        """Note what ends texts by the tokenizer's files alone."""
        counted = next((name for name in (GENERATION, CONFIG) if name in named), None)
        if counted is None:
            return
        seen = {*named[counted]}
        for name, ids in by_tokenizer.items():
            if other := [token for token in ids if token not in seen]:
                seen |= {*other}
                self.note(
                    "other-end",
                    f"{name} ends texts with {other}, but {counted} with {list(named[counted])}",
                    f"masks let each of them end a text, transformers stops at the latter alone: name all in {counted}",
                )

    def store(self, constraint: Constraint | Any, vocabulary: Vocabulary) -> RequestStore | None:
        """The store for the model as a server has it; None if there is none."""
        try:
            n_logits = self.folder.n_logits
            vocabulary = server_vocabulary(vocabulary, n_logits, vocabulary.eos, is_padded=False)
            store: Any = cached_store(constraint, vocabulary)
            matcher = store.matcher()
            words = np.zeros(store.n_words, np.uint32)
            matcher.fill(words)
            ending = matcher.short_ending()
        except DeadEndError as error:
            self.error("dead-end", error, "no text can be finished with these tokens: see `maskwright lint`")
            return None
        except MaskwrightError as error:
            self.error("no-store", error, "see the page on the constraint's language in docs/")
            return None
        allowed = int(np.bitwise_count(words).sum())
        shortest = ending.data.decode(errors="replace")
        self.facts |= {"first_mask": allowed, "shortest": shortest}
        self.checked.append(
            f"the store: {allowed:,} of {vocabulary.size:,} tokens may come first; a shortest text is {clip(shortest)}"
        )
        found: RequestStore = store
        return found

    def generate(self, store: RequestStore, n_tokens: int) -> None:
        """A few tokens of the model, by transformers' own loop."""
        if self.folder.has_error or any(problem.code in _NOT_LOADED for problem in [*self.loading, *self.problems]):
            self.skipped.append("generation: the folder's files cannot be loaded as they are")
            return
        if not self.folder.has_weights:
            self.skipped.append("generation: the folder has no model that transformers can load")
            return
        for package in ("torch", "transformers"):
            if importlib.util.find_spec(package) is None:
                self.skipped.append(f"generation: {package} is not installed: pip install 'maskwright[hf]'")
                return
        if lacking := package_lacking(self.folder):
            self.skipped.append(f"generation: transformers needs {lacking} for the tokenizer: pip install {lacking}")
            return
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            loaded = load_model(self.folder.path, "cpu")
            self._generate(loaded, store, n_tokens)
        except MaskwrightError as error:
            if needs_own_code(error.__cause__):
                self.problems.append(own_code("the model", CONFIG))
                return
            self.error("generation", error, "the model cannot be used with this store as it is")
        except BaseException as error:  # whatever a model's own code raises
            if not is_of_package(error):
                raise
            remedy = "see whether model.generate works without a processor"
            self.error("generation", f"transformers failed: {said(error)}", remedy)

    def _generate(self, loaded: Any, store: RequestStore, n_tokens: int) -> None:
        import torch

        processor = MaskwrightLogitsProcessor(store, loaded.tokenizer)
        prompt = torch.tensor([loaded.tokens_of("")])
        options = {"max_new_tokens": n_tokens, "do_sample": False, "logits_processor": [processor]}
        mask = torch.ones_like(prompt)
        with torch.inference_mode():
            output = loaded.model.generate(prompt, attention_mask=mask, pad_token_id=store.vocabulary.eos[0], **options)
        tokens = output[0, prompt.shape[1] :].tolist()
        matcher = store.matcher()
        for token in tokens:
            if matcher.is_finished():
                break
            matcher.advance(token)
        data = b"".join(store.vocabulary.tokens[token] for token in tokens if token < store.vocabulary.size)
        self.facts["generated"] = data.decode(errors="replace")
        self.checked.append(f"{len(tokens)} tokens of the model by transformers: {clip(data.decode(errors='replace'))}")


def check_serving(
    model: str | Path,
    constraint: Constraint | Any,
    asked: Asked | None = None,
    text: str = "",
    n_tokens: int = 8,
    progress: Callable[[str], None] = lambda what: None,
) -> ServeReport:
    """Check that a model will be served under a constraint as it should.

    model : the model's folder, or a GGUF file.
    constraint : a grammar, schema, pattern or composition: what `cached_store` takes.
    asked : how a server's request would bring it; None: not at all.
    text : the constraint's text in such a request.
    n_tokens : how many tokens the model writes, if there is one; 0 for none.
    progress : called with what is done next.

    Raises: UnknownNameError if there is no such folder. All else that is wrong is a problem of the
        report.
    """
    check = _Check(read_folder(model))
    if (problem := config_problem(check.folder)) is not None:
        check.loading.append(problem)
    progress("comparing tokens")
    vocabulary = check.vocabulary()
    store = None
    if vocabulary is not None:
        check.padding(vocabulary)
        check.ends(vocabulary, check.folder.ends)
        progress("compiling the constraint")
        store = check.store(constraint, vocabulary)
    if asked is not None and not asked.refusal and vocabulary is not None:
        try:
            RequestCompiler(vocabulary, cache_entries=1).check(asked.kind, text)
        except MaskwrightError as error:
            asked = asked._replace(refusal=str(error))
    if store is not None and n_tokens and vocabulary is not None and vocabulary.eos:
        progress("generating")
        check.generate(store, n_tokens)
    name = getattr(constraint, "name", "the constraint")
    return ServeReport(
        str(model),
        name,
        check.facts,
        tuple(
            sorted(
                [*check.folder.problems, *check.loading, *check.problems],
                key=lambda problem: problem.severity != "error",
            )
        ),
        tuple(check.checked),
        tuple(check.skipped),
        runtimes_for(check.folder, asked or Asked("", name, "it is no text of a request")),
    )


def _attributed(ends: tuple[int, ...], named: Mapping[str, tuple[int, ...]]) -> str:
    """The tokens that end texts, each with the files that say so.

    >>> _attributed((0, 1), {"a.json": (1,), "b.json": (1,), "c.json": (0,)})
    '[0, 1]: [1] by a.json, b.json; [0] by c.json'
    >>> _attributed((0,), {"a.json": (0, 7), "b.json": (0,)}), _attributed((0,), {})
    ('[0], by a.json, b.json', '[0], by the tokenizer')
    """
    files: dict[tuple[int, ...], list[str]] = {}
    for name, ids in named.items():
        if used := tuple(token for token in ids if token in ends):
            files.setdefault(used, []).append(name)
    if unnamed := tuple(token for token in ends if not any(token in used for used in files)):
        files[unnamed] = ["the tokenizer"]
    said_by = [(list(used), ", ".join(names)) for used, names in files.items()]
    if len(said_by) == 1:
        return f"{list(ends)}, by {said_by[0][1]}"
    return f"{list(ends)}: {'; '.join(f'{used} by {names}' for used, names in said_by)}"
