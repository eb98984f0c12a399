"""docs/serving.md, docs/serving-vllm.md and docs/serving-runtimes.md"""

from __future__ import annotations

from ..facts import constant, record
from ..page import About, Page

serving = Page("docs/serving.md")
vllm = Page("docs/serving-vllm.md")
runtimes = Page("docs/serving-runtimes.md")
PAGES = (serving, vllm, runtimes)

# docs/serving.md
requests = record("first_requests")
both = [requests.at(f"first_masks/{vocabulary}") for vocabulary in ("tekken", "mistral-7b-v0.1")]
drawn = both[0].at("drawn/one_at_a_time")
serving.figure("some # nodes in # kB:", About(drawn("median_nodes")), drawn("median_bytes") / 1e3)


def longer(path: str) -> float:
    """The figure of the vocabulary that takes longer."""
    return max(float(one(path)) for one in both)


serving.figure(
    "# ms of CPU time in the median and # ms at the 99th percentile",
    *(longer(f"drawn/one_at_a_time/cpu_ms/{name}") for name in ("p50", "p99")),
)
serving.figure(
    "One of SchemaStore's: # ms in the median, # s for the slowest",
    longer("schemastore/one_at_a_time/cpu_ms/p50"),
    longer("schemastore/one_at_a_time/cpu_ms/most") / 1e3,
)
serving.figure("needs # ms before, to check it", longer("drawn/check/cpu_ms/p50"))
serving.given("(cores + 1) / 2 threads", "vLLM's number of threads")
serving.figure(
    "*The store*: from milliseconds to # CPU seconds of building",
    max(cell["maskwright"]["cpu_s"] for cell in record("compiling")("cells")),
)
serving.given("PyTorch (2.13) draws illegal ones", "a version of PyTorch")
serving.given("16-, 32- and 64-bit floats", "types of floats")
kilobytes = constant("decoding/engine/texts.py", "_FIRST_RECORDS") * 3 * 4 / 1e3
serving.limit("# KB of state a text to begin with", About(kilobytes))

# docs/serving-vllm.md
vllm.given("against the classes of 0.33", "a version of vLLM")
vllm.given("versions before 0.12", "a version of vLLM")
vllm.given("vLLM 0.32 and 0.33", "versions of vLLM")
vllm.given("is how 0.32 is written", "a version of vLLM")
limits = "src/maskwright/serving/options.py"
settings = "src/maskwright/serving/settings.py"
vllm.limit("more than # bytes, NUL", constant(limits, "most_bytes"))
vllm.given("for the 256 bytes alone", "a byte has 256 values")
vllm.limit("| `hybrid` | # |", constant(settings, "hybrid"))
vllm.limit("| `strict_keywords` | # |", constant(settings, "strict_keywords"))
vllm.limit("| `close_early` | # |", constant(settings, "close_early"))
vllm.limit("`cache_megabytes` | #, # |", constant(settings, "cache_entries"), constant(settings, "cache_megabytes"))
vllm.limit("up to # MB in all", constant("analysis/kept.py", "MOST_BYTES") >> 20)
vllm.limit("| `disk_megabytes` | # |", constant(settings, "disk_megabytes"))
vllm.limit(
    "`most_megabytes` | #; #; #; # |",
    *(constant(limits, name) for name in ("most_bytes", "check_seconds", "compile_seconds", "most_megabytes")),
)
work = "src/maskwright/serving/work.py"
vllm.limit(
    "What takes more than # CPU seconds, or has a text of more than # characters",
    constant(work, "SOON"),
    constant(work, "SMALL"),
)
vllm.limit("where at most # tokens may come", constant("src/maskwright/serving/server_matcher.py", "FEW"))
check = record("serving-vllm")
vllm.figure("all # texts are right", check("two_ranks/requests"))
vllm.holds("all 176 texts are right", not check("two_ranks/wrong"))
own, ngrams = check.at("speculation_own_drafts"), check.at("speculation_ngram")
vllm.figure(
    "# of # drafts were accepted in # texts of # tokens",
    own("accepted_tokens"),
    own("draft_tokens"),
    own("texts"),
    own("tokens"),
)
vllm.figure("of n-grams # of # (", ngrams("accepted_tokens"), ngrams("draft_tokens"))
fill = record("serving-fill")
KEYS = ("fill_least/mean", "fill_least/median", "fill_least/worst_step", "accept_least/mean")
for work, head in {"schema and python": "64 with Python*", "schema alone": "| *64 requests with a schema*"}.items():
    engines = [
        (engine, fill.at(f"microseconds_of_cpu_a_row/{work}/{engine}"))
        for engine in ("maskwright", "guidance", "xgrammar")
    ]
    rows = " ".join(f"| {engine} | # | # | # | # |" for engine, _ in engines)
    vllm.figure(f"{head} | | | | | {rows}", *(one(key) for _, one in engines for key in KEYS))
vllm.given("*64 requests with a schema, 64 with Python*", "ROWS of reports/bench/serving_fill.py")
vllm.given("*64 requests with a schema*", "ROWS of reports/bench/serving_fill.py")
passes = fill.at("microseconds_of_cpu_a_row/schema and python/maskwright")
vllm.figure("passes of # steps", passes("steps"))
first = [
    fill(f"microseconds_of_cpu_a_row/{work}/maskwright/fill_first_pass/mean")
    for work in ("schema and python", "schema alone")
]
vllm.figure("takes maskwright # and # on average", *first)
vllm.given("only from 129 requests on", "vLLM's code")
vllm.limit("state of a request is some # kB", About(kilobytes))
matcher = "src/maskwright/serving/server_matcher.py"
vllm.limit(
    "masks of more than # s have taken # s of CPU time", constant(matcher, "SLOW"), constant(matcher, "MOST_SLOW")
)
texts = check.at("texts")
vllm.figure("without a GPU: # requests under # constraints at once", texts("requests"), texts("constraints"))
closed = [check.at(kind) for kind in ("closed_early", "closed_early_ngram")]
vllm.figure("by a program that is not maskwright; # that are closed early", sum(one("requests") for one in closed))
vllm.holds("which all end in time", not any(one("wrong") for one in (texts, *closed)))

# docs/serving-runtimes.md
runtimes.given("| 5.23, 5.24 |", "versions of transformers")
runtimes.given("for 1.3.", "a version of Outlines")
runtimes.limit("with more than # bytes", constant(limits, "most_bytes"))
