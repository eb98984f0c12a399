"""docs/measurements.md, up to real code."""

from __future__ import annotations

from ..facts import constant, record
from ..page import About, Page
from .gpu import overheads

page = Page("docs/measurements.md")
PAGES = (page,)
SIZES = {"32,000": "mistral-7b-v0.1", "131,072": "tekken"}
page.given("a shared 2-core machine", "the machine of the records")

# Streamlining
streamlining = record("streamlining")
warm = streamlining.at("runs/mistral-7b-v0.1 warm")
READINGS, RULES = {"post": "the post's", "sound": "sound"}, {"lark": "Lark's", "normalised": "normalised"}
for reading in READINGS:
    for rules in RULES:
        entry = warm.at(f"entries/reading={reading},rules={rules}")
        steps = [entry(step) for step in ("original", "follow", "never", "always")]
        head = f"| {READINGS[reading]} reading, {RULES[rules]} rules |"
        original = entry("original")
        page.figure(
            f"{head} # | # | # | # | #x | # | #x |",
            *steps,
            original / entry("always"),
            entry("joint"),
            original / entry("joint"),
        )
page.given("streamlining post (2025), which reports 112,283 entries and about 10x", "the post")
page.figure(
    "the post's # states, and its # interchange classes are the same # terminals",
    warm("lexer/post/states"),
    len(warm("interchange/classes")),
    warm("interchange/terminals"),
)
exact = streamlining.at("exact_step/mistral-7b-v0.1/entries")
main = warm.at("entries/reading=sound,rules=normalised")
page.figure("(sound reading) from # on to #", exact("joint"), exact("exact"))
page.holds(
    "Exact LR verdicts take python.lark's entries", (main("joint"), main("exact")) == (exact("joint"), exact("exact"))
)
page.figure("before and after the analysis | #, # |", main("original"), main("exact"))
tekken = streamlining.at("runs/tekken warm")
page.figure(
    "without lint) takes # CPU seconds as a process, or # when Numba compiles first, and # MB",
    warm("process_cpu_seconds"),
    streamlining("runs/mistral-7b-v0.1 cold/process_cpu_seconds"),
    warm("peak_rss_mb"),
)
page.figure("32,000; # CPU seconds and # MB at V = 131,072", tekken("process_cpu_seconds"), tekken("peak_rss_mb"))

# The engine beside its peers
masks = record("masks")
WORKS = [f"cells/work={work},vocabulary={size.replace(',', '')}" for work in ("python", "json") for size in SIZES]
NAMES = {
    "ours": "maskwright",
    "llguidance": "llguidance #",
    "xgrammar": "xgrammar #",
    "glrmask": "glrmask #",
    "kbnf": "kbnf #",
    "outlines": "outlines-core #",
    "syncode": "SynCode #",
}
"""Heads of rows and columns, `#` for the version that was measured."""


def in_unit(us: float) -> tuple[float, str]:
    """A time as the page shows it: microseconds without a unit, milliseconds, or seconds."""
    return (us, "") if us < 1e3 else (us / 1e3, " ms") if us < 1e6 else (us / 1e6, " s")


for table, way in {"| alone": "both_us", "| 128 texts": "batches/128/both_us"}.items():
    for engine, name in NAMES.items():
        cells, values = [], []
        versions = {facts["version"] for work in WORKS if "version" in (facts := masks(f"{work}/engines/{engine}"))}
        for work in WORKS:
            facts = masks.at(f"{work}/engines/{engine}")
            if facts("status") != "measured" or ("batches" in way and "both_us" not in facts("batches/128")):
                is_tried = "measured with" not in facts.facts.get("reason", "")  # a tokenizer that was not made for it
                cells.append("failed" if facts("status") == "failed" else "cannot" if is_tried else "not tried")
                continue
            shown = [in_unit(facts(f"{way}/{key}")) for key in ("mean", "p50")]
            cells.append("#{} (#{})".format(*(unit for _, unit in shown)))
            values += [About(value) for value, _ in shown]
        if values:
            assert len(versions) == 1, f"one run, one version of {engine}: {versions}"
            page.figure(f"| {name} | {' | '.join(cells)} |", *(versions if "#" in name else ()), *values, within=table)
documents = {
    masks(f"{work}/engines/{engine}/replay/documents_begun") for work in WORKS for engine in ("ours", "llguidance")
}
page.figure("over # real files, mean (median)", *documents)
page.given("Where a mask takes a tenth of a second", "what STRIDE of reports/bench/masks.py says")
page.limit("window of # tokens are made", constant("reports/bench/peers/process.py", "WINDOW"))
batch = max(masks(f"{WORKS[0]}/engines/ours/batches"), key=int)
page.figure("A step of # texts that stand anywhere", int(batch))
page.figure("| # texts | python.lark, V", int(batch))
for engine in ("llguidance", "glrmask"):
    ratios = [masks(f"{work}/engines/{engine}/ratio/of_means") for work in WORKS]
    page.figure(
        f"{engine} takes # and # times as long as maskwright on python.lark, # and # on JSON", *map(About, ratios)
    )
page.holds(
    "llguidance refused none of these texts",
    not any(masks(f"{work}/engines/llguidance/replay/documents_refused") for work in WORKS),
)
page.figure("llguidance compiles python.lark in # CPU seconds", masks(f"{WORKS[0]}/engines/llguidance/compile_cpu_s"))

page.figure(
    "mean at 32,000 tokens | # us | | the same for JSON | # us |",
    *(masks(f"{work}/engines/ours/both_us/mean") for work in (WORKS[0], WORKS[2])),
)

# Building stores
compiling = record("compiling")
for name in ("a^n b^n", "json.lark", "json", "lark:python", "c", "java", "python", "sql"):
    two = [compiling.at(f"cells/grammar={name},vocabulary={vocabulary}") for vocabulary in SIZES.values()]
    head = "JSON, a text that both read" if name == "json.lark" else name
    values = [cell(f"maskwright/{key}") for key in ("cpu_s", "peak_mb", "open_cpu_s", "open_mask_us") for cell in two]
    peers = [cell("glrmask/cpu_s") for cell in two] if "glrmask" in two[0].facts else []
    page.figure(f"| {head} | # / # | # / # | # / # | # / # | {'# / # |' if peers else ' |'}", *values, *peers)

once = (compiling(f"cells/grammar={name},vocabulary=mistral-7b-v0.1/maskwright/cpu_s") for name in ("json", "python"))
page.figure("compiling `json`, and `python`, once | #, # CPU seconds |", *once)

# Exactness
equal = [record(f"mask_equality-{vocabulary}") for vocabulary in SIZES.values()]
page.figure(
    "the same set at all of # positions of real Python files with the Mistral vocabulary, and at all of # with tekken",
    *(one("positions") for one in equal),
)
page.holds(
    "No true next token was refused.",
    all(one("positions_with_different_masks") == one("true_next_tokens_refused") == 0 for one in equal),
)
page.figure(
    "The parser was asked # -> # and # -> # times a mask",
    *(one(f"parser_calls_per_mask/{key}") for one in equal for key in ("original", "streamlined")),
)
agreement = record("pyformlang_agreement")
queries, times = agreement.at("queries_that_agree"), agreement.at("milliseconds_a_query_on_python.lark")
page.figure(
    "on # random queries of python.lark and # of random small grammars, in # ms a query instead of # s",
    queries("python.lark"),
    queries("small"),
    times("maskwright"),
    times("pyformlang") / 1e3,
)
replays = [record(f"engine_replay-{vocabulary}") for vocabulary in SIZES.values()]
page.figure(
    "allowed in # Python files of # M tokens at V = 32,000 and # M at 131,072",
    replays[0]("files"),
    *(one("tokens") / 1e6 for one in replays),
)
page.figure("that were allowed, all of them | # M |", replays[0]("tokens") / 1e6)
page.figure("# files are outside python.lark", replays[0]("refused_files"))
page.holds(
    "All true next tokens were allowed",
    all(one("false_refusals") == 0 for one in replays),
)
page.holds(
    "that parse refuses them too, and takes all others",
    all(one("accepted_against_the_parse") == 0 and one("files") == replays[0]("files") for one in replays),
)
comparisons = record("oracle_agreement")("comparisons")
page.figure("it agrees on # sampled (prefix, token) pairs", sum(one["pairs"] for one in comparisons))
page.holds("it agrees on", not any(one["disagreements"] for one in comparisons))

# The experiments on real code
FILES = {
    "validation-lark-python": "# files of the standard library and the evaluation data,",
    "validation-python": "No false refusal in # files,",
}
for kind, files in FILES.items():
    found = record(kind)
    replay = [found.at(f"replay {vocabulary}") for vocabulary in SIZES.values()]
    drawn = [found.at("sample uniform"), found.at("sample model")]
    page.figure(
        f"{files} # M tokens at V = 32,000 and # M at 131,072",
        replay[0]("texts"),
        *(one("figures/tokens") / 1e6 for one in replay),
    )
    page.holds(
        "No false refusal" if kind == "validation-python" else "no false refusal",
        all(one("classes/false refusal") == 0 for one in replay),
    )
    page.figure("are equal at # positions", found("streamlined/figures/positions"))
    places = sum(one("figures/closed") for one in drawn)
    characters = sum(one("figures/characters") for one in drawn) / 1e6
    done = found.at("completions")
    if kind == "validation-lark-python":
        page.figure("no false refusal. # files are outside", replay[0]("classes")["outside: the grammar lacks it"])
        page.figure(
            "takes # CPU seconds a MB at 32,000 and # at 131,072;", *(one("costs/replay_s_per_mb") for one in replay)
        )
        page.figure(
            "with `tokenizers` takes # and # in the same runs", *(one("costs/tokenizers_s_per_mb") for one in replay)
        )
        page.figure("# texts drawn under the masks, half", sum(one("texts") for one in drawn))
        page.figure("cut off and closed in # places, # M characters: all are", places, characters)
        page.holds(
            "all are texts of the grammar by a parse",
            all(one("classes")["refused by the grammar's own parse"] == 0 for one in drawn),
        )
        page.figure(
            "CPython refuses # of the # uniform ones and # of the model's",
            drawn[0]("failures"),
            drawn[0]("texts"),
            drawn[1]("failures"),
        )
        page.figure("# prefixes of files that the bundled model has not seen", done("prefixes"))
        page.figure(
            "all # are texts of the grammar, # parse under CPython; without masks # do",
            done("closed_by_the_grammar"),
            done("constrained"),
            done("unconstrained"),
        )
        page.figure("The first token takes # ms (median)", done("first_token_s/p50") * 1e3)
    else:
        page.holds("and none outside the grammar", all(one("classes/replayed") == one("texts") for one in replay))
        page.figure(
            "that parse, of #: with masks, without | #, # |",
            done("prefixes"),
            done("constrained"),
            done("unconstrained"),
        )
        page.figure(
            "Of the same # completions all parse; # do without masks", done("constrained"), done("unconstrained")
        )
        page.figure(
            "Of # texts drawn under the masks and closed in # places, # M characters, # parse",
            sum(one("texts") for one in drawn),
            places,
            characters,
            sum(one("classes/accepted") for one in drawn),
        )

# Ten figures of other pages
small = record("schemas-mistral-7b-v0.1")("ours/compile and first mask, under 1 kB/p50") / 1e3
page.figure("under 1 kB, median | # ms |", small)
page.given("schema under 1 kB, median", "how the record parts the schemas")
page.figure("a model of 8B shape on an H200, at most | # % |", max(overheads["resident rows"]))
suite = record("schema_coverage").at("typed/engines/ours/total")
wrong, refused = suite("judged") - suite("right"), suite("tests") - suite("judged")
page.figure("| of # tests of the JSON-Schema-Test-Suite:", suite("tests"))
page.figure("of a schema that is refused | #, #, # |", suite("right"), wrong, refused)
page.figure("tokens of tool calls that need no model | # % |", record("forced")("tool calls/share_percent"))
page.given("completed by 60 tokens", "the option's default in reports/bench/validation.py")
