"""maskwright: grammar analysis and mask-store optimisation for grammar-constrained decoding.

>>> import maskwright as mw
>>> grammar = mw.parse_grammar('start: "a" start "b" | "a" "b"')
>>> mw.interchange_classes(grammar)
()
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from maskwright.version import version as _version

if TYPE_CHECKING:
    from maskwright.analysis.composition import (
        Composition,
        compose,
        in_json_string,
        read_composition,
        read_structural_tag,
        read_tools,
        special_token,
    )
    from maskwright.analysis.deadline import OutOfTimeError
    from maskwright.analysis.dialects import read_constraint, read_llguidance
    from maskwright.analysis.errors import (
        BackupError,
        DeadEndError,
        EmptyLanguageError,
        EmptySchemaError,
        GrammarError,
        IllegalTokenError,
        LimitError,
        MaskwrightError,
        MaskwrightWarning,
        MissingExtraError,
        NestingError,
        SchemaError,
        StoreError,
        TerminalError,
        UnknownNameError,
        UnusedPartError,
        VocabularyError,
    )
    from maskwright.analysis.grammar import Grammar, Layout, Terminal
    from maskwright.analysis.legality import (
        Deciders,
        Explainer,
        Judge,
        Verdict,
        build_follow_graph,
        interchange_classes,
    )
    from maskwright.analysis.legality.certificate import CertificateError
    from maskwright.analysis.loading import Indenter, load_grammar, normalise, parse_grammar
    from maskwright.analysis.schema.load import JsonSchema, load_schema
    from maskwright.analysis.schema.text_patterns import Regex, load_choice, load_regex
    from maskwright.completion import complete, load_model
    from maskwright.decoding.adapters import MaskwrightLogitsProcessor, apply_mask
    from maskwright.decoding.batch import Batch
    from maskwright.decoding.explain.explanation import Explanation
    from maskwright.decoding.generation import (
        Completion,
        Intervention,
        TokenCounts,
        forced_tokens,
        generate,
        tokenize_partial,
    )
    from maskwright.decoding.gpu import GpuBatch
    from maskwright.decoding.logits import ResidentRows
    from maskwright.decoding.matcher import Matcher
    from maskwright.decoding.reference import ReferenceDecoder
    from maskwright.lint import lint_grammar, lint_schema
    from maskwright.maskstore.canonical import CanonicalTokens, load_canonical
    from maskwright.maskstore.entries.subterminal_tree import subterminal_tree
    from maskwright.maskstore.file.fileformat import save_store, store_info
    from maskwright.maskstore.index import TokenIndex, build_index
    from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
    from maskwright.report.analysis import AnalysisReport, analyze
    from maskwright.retokenisation import retokenise
    from maskwright.stores.build import build_store
    from maskwright.stores.cache import cached_store
    from maskwright.stores.composed_store import ComposedStore
    from maskwright.stores.schema_store import SchemaStore
    from maskwright.stores.store import EntryStore, Store, load_store
    from maskwright.validation import ValidationReport, validate
    from maskwright.validation.corpus import CorpusError
    from maskwright.verification import VerificationReport, verify
    from maskwright.worker_pool import BusyError, CancelledError, NoProcessError, WorkerError

    __version__: str


_HOME = {
    "AnalysisReport": "maskwright.report.analysis",
    "Store": "maskwright.stores.store",
    "Batch": "maskwright.decoding.batch",
    "CanonicalTokens": "maskwright.maskstore.canonical",
    "Completion": "maskwright.decoding.generation",
    "ComposedStore": "maskwright.stores.composed_store",
    "Composition": "maskwright.analysis.composition",
    "DeadEndError": "maskwright.analysis.errors",
    "Deciders": "maskwright.analysis.legality",
    "Explainer": "maskwright.analysis.legality",
    "Explanation": "maskwright.decoding.explain.explanation",
    "GpuBatch": "maskwright.decoding.gpu",
    "Grammar": "maskwright.analysis.grammar",
    "GrammarError": "maskwright.analysis.errors",
    "IllegalTokenError": "maskwright.analysis.errors",
    "Indenter": "maskwright.analysis.loading",
    "Intervention": "maskwright.decoding.generation",
    "JsonSchema": "maskwright.analysis.schema.load",
    "Judge": "maskwright.analysis.legality",
    "Layout": "maskwright.analysis.grammar",
    "LimitError": "maskwright.analysis.errors",
    "EntryStore": "maskwright.stores.store",
    "MaskwrightError": "maskwright.analysis.errors",
    "MaskwrightLogitsProcessor": "maskwright.decoding.adapters.huggingface",
    "Matcher": "maskwright.decoding.matcher",
    "MissingExtraError": "maskwright.analysis.errors",
    "ReferenceDecoder": "maskwright.decoding.reference",
    "Regex": "maskwright.analysis.schema.text_patterns",
    "ResidentRows": "maskwright.decoding.logits",
    "SchemaError": "maskwright.analysis.errors",
    "SchemaStore": "maskwright.stores.schema_store",
    "StoreError": "maskwright.analysis.errors",
    "Terminal": "maskwright.analysis.grammar",
    "TerminalError": "maskwright.analysis.errors",
    "TokenCounts": "maskwright.decoding.generation",
    "TokenIndex": "maskwright.maskstore.index",
    "UnknownNameError": "maskwright.analysis.errors",
    "ValidationReport": "maskwright.validation",
    "Verdict": "maskwright.analysis.legality",
    "VerificationReport": "maskwright.verification",
    "Vocabulary": "maskwright.maskstore.vocabulary",
    "VocabularyError": "maskwright.analysis.errors",
    "analyze": "maskwright.report.analysis",
    "apply_mask": "maskwright.decoding.adapters",
    "build_follow_graph": "maskwright.analysis.legality",
    "build_index": "maskwright.maskstore.index",
    "build_store": "maskwright.stores.build",
    "cached_store": "maskwright.stores.cache",
    "complete": "maskwright.completion",
    "compose": "maskwright.analysis.composition",
    "forced_tokens": "maskwright.decoding.generation",
    "generate": "maskwright.decoding.generation",
    "in_json_string": "maskwright.analysis.composition",
    "interchange_classes": "maskwright.analysis.legality",
    "lint_grammar": "maskwright.lint",
    "lint_schema": "maskwright.lint",
    "load_canonical": "maskwright.maskstore.canonical",
    "load_choice": "maskwright.analysis.schema.text_patterns",
    "load_grammar": "maskwright.analysis.loading",
    "load_model": "maskwright.completion",
    "load_regex": "maskwright.analysis.schema.text_patterns",
    "load_schema": "maskwright.analysis.schema.load",
    "load_store": "maskwright.stores.store",
    "load_vocabulary": "maskwright.maskstore.vocabulary",
    "normalise": "maskwright.analysis.loading",
    "read_composition": "maskwright.analysis.composition",
    "read_structural_tag": "maskwright.analysis.composition",
    "read_tools": "maskwright.analysis.composition",
    "special_token": "maskwright.analysis.composition",
    "parse_grammar": "maskwright.analysis.loading",
    "read_constraint": "maskwright.analysis.dialects",
    "read_llguidance": "maskwright.analysis.dialects",
    "retokenise": "maskwright.retokenisation",
    "save_store": "maskwright.maskstore.file.fileformat",
    "store_info": "maskwright.maskstore.file.fileformat",
    "subterminal_tree": "maskwright.maskstore.entries.subterminal_tree",
    "tokenize_partial": "maskwright.decoding.generation",
    "validate": "maskwright.validation",
    "verify": "maskwright.verification",
    "BackupError": "maskwright.analysis.errors",
    "EmptyLanguageError": "maskwright.analysis.errors",
    "EmptySchemaError": "maskwright.analysis.errors",
    "MaskwrightWarning": "maskwright.analysis.errors",
    "NestingError": "maskwright.analysis.errors",
    "UnusedPartError": "maskwright.analysis.errors",
    "OutOfTimeError": "maskwright.analysis.deadline",
    "CertificateError": "maskwright.analysis.legality.certificate",
    "CorpusError": "maskwright.validation.corpus",
    "BusyError": "maskwright.worker_pool",
    "CancelledError": "maskwright.worker_pool",
    "NoProcessError": "maskwright.worker_pool",
    "WorkerError": "maskwright.worker_pool",
}
"""Public name -> module that defines it.

A module is imported when one of its names is first used. `maskwright --help` needs none of them.
"""


_OLD = {"AutomatonStore": "Store", "MaskStore": "EntryStore"}
"""Deprecated name -> current name."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value = globals()[name] = _version()
        return value
    if name in _OLD:
        warnings.warn(f"maskwright.{name} is now called {_OLD[name]}", DeprecationWarning, stacklevel=2)
        name = _OLD[name]
    if name not in _HOME:
        raise AttributeError(f"module 'maskwright' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, "__version__"})


__all__ = [
    "AnalysisReport",
    "BackupError",
    "Batch",
    "BusyError",
    "CancelledError",
    "CanonicalTokens",
    "CertificateError",
    "Completion",
    "ComposedStore",
    "Composition",
    "CorpusError",
    "DeadEndError",
    "Deciders",
    "EmptyLanguageError",
    "EmptySchemaError",
    "EntryStore",
    "Explainer",
    "Explanation",
    "GpuBatch",
    "Grammar",
    "GrammarError",
    "IllegalTokenError",
    "Indenter",
    "Intervention",
    "JsonSchema",
    "Judge",
    "Layout",
    "LimitError",
    "MaskwrightError",
    "MaskwrightLogitsProcessor",
    "MaskwrightWarning",
    "Matcher",
    "MissingExtraError",
    "NestingError",
    "NoProcessError",
    "OutOfTimeError",
    "ReferenceDecoder",
    "Regex",
    "ResidentRows",
    "SchemaError",
    "SchemaStore",
    "Store",
    "StoreError",
    "Terminal",
    "TerminalError",
    "TokenCounts",
    "TokenIndex",
    "UnknownNameError",
    "UnusedPartError",
    "ValidationReport",
    "Verdict",
    "VerificationReport",
    "Vocabulary",
    "VocabularyError",
    "WorkerError",
    "analyze",
    "apply_mask",
    "build_follow_graph",
    "build_index",
    "build_store",
    "cached_store",
    "complete",
    "compose",
    "forced_tokens",
    "generate",
    "in_json_string",
    "interchange_classes",
    "lint_grammar",
    "lint_schema",
    "load_canonical",
    "load_choice",
    "load_grammar",
    "load_model",
    "load_regex",
    "load_schema",
    "load_store",
    "load_vocabulary",
    "normalise",
    "parse_grammar",
    "read_composition",
    "read_constraint",
    "read_llguidance",
    "read_structural_tag",
    "read_tools",
    "retokenise",
    "save_store",
    "special_token",
    "store_info",
    "subterminal_tree",
    "tokenize_partial",
    "validate",
    "verify",
]
