"""docs/generation.md"""

from __future__ import annotations

from ..facts import constant, record
from ..page import Page

budgets = Page("docs/generation.md")
PAGES = (budgets,)

# docs/generation.md
budgets.limit("where # in a row do not fit", constant("decoding/generation/generation.py", "MOST_TRIES"))
budgets.limit("no more of it after # bytes", constant("decoding/generation/blanks.py", "MOST_BLANKS"))
budgets.given("(an array of at least 300 items)", "an example")
generation = record("generation")
usual, opportunistic, forced = (
    generation.at(f"python/{way}, temperature 0") for way in ("usual", "own choice first", "forced tokens")
)
budgets.figure("| Python, # tokens after the beginnings of # real files", generation("max_tokens"), usual("texts"))
budgets.figure("| as usual | # | # | | # |", usual("masks"), usual("model_calls"), usual("legal"))
saved = 100 - 100 * opportunistic("masks") / usual("masks")
budgets.figure(
    "| `opportunistic` | # (# % saved) | # | # | # |",
    opportunistic("masks"),
    saved,
    opportunistic("model_calls"),
    opportunistic("same"),
    opportunistic("legal"),
)
budgets.figure(
    "canonical tokens) | # | # | # | # |", forced("masks"), forced("model_calls"), forced("same"), forced("legal")
)
warm, first = generation.at("python/usual, temperature 0.8"), generation.at("python/own choice first, temperature 0.8")
budgets.given("definition 2.1", "the paper's number")
budgets.given("With k = 0", "an example")
budgets.given("At temperature 0.8", "the benchmark's option")
share = 100 - 100 * (first("masks") / first("model_calls")) / (warm("masks") / warm("model_calls"))
budgets.figure("of # files, # % of the masks are saved, and # texts are whole", first("texts"), share, first("legal"))
for head, key in (("greedily", "0"), ("temperature 1", "1")):
    plain, counts = (generation.at(f"schema/{way}, temperature {key}") for way in ("usual", "counts"))
    budgets.figure(f"| {head}, as usual | # | # | # | |", plain("tokens"), plain("model_calls"), plain("calls_a_token"))
    budgets.figure(
        f"| {head}, with counts | # | # | # | # |",
        counts("tokens"),
        counts("model_calls"),
        counts("calls_a_token"),
        counts("same"),
    )
budgets.figure("| a JSON schema, # prompts,", generation("schema/usual, temperature 0/texts"))
budgets.figure("counts of # other instances", generation("learned"))
budgets.given("60 tokens each", "MOST of reports/bench/generation.py")

# Canonical and forced tokens
costs = record("canonical")
budgets.figure("real sources in # languages", len(costs("tokenizers/tekken/sources")))
for name in ("python-tiny", "mistral-7b-v0.1", "tekken"):
    one = costs.at(f"tokenizers/{name}")
    sources = one("sources").values()
    tokens, refused = (sum(source[key] for source in sources) for key in ("tokens", "refused"))
    budgets.figure(
        f"| {name} | # | #, # us | #, # |", one("load_cpu_s"), one("us/narrow"), one("us/advance"), tokens, refused
    )
budgets.limit("comes first; # are kept", constant("maskstore/canonical/tokens.py", "KEPT_ROWS"))
budgets.figure("The bundled model writes # texts", costs("calls/canonical/texts"))
for way, facts in costs("calls").items():
    budgets.figure(f"| {way} | # | # | # |", facts["complete"], facts["tokens"], facts["model_calls"])

shares = record("forced")
both = shares.at("schemas")
for words, one in (
    ("schemas, compact, keys in the schema's order | #, # | # % |", both.at("ours")),
    ("with such arguments | #, # | # % |", shares.at("tool calls")),
    ("Python files | #, # | # % |", shares.at("python")),
    ("SQL statements | #, # | # % |", shares.at("sql")),
):
    budgets.figure(words, one("texts"), one("tokens"), one("share_percent"))
of_schemas, of_calls = both.at("ours"), shares.at("tool calls")
budgets.figure(
    "they are not at # of # places of the schemas' instances, and at # of # of the tool calls",
    *(n for one in (of_schemas, of_calls) for n in (one("places") - one("apart"), one("places"))),
)
flexible = record("forced-flexible").at("schemas")
other = flexible("runs") - flexible("apart")
budgets.figure("Of # runs in # instances", flexible("runs"), flexible("texts"))
budgets.figure("writes them # are not the text's tokens, # %", other, 100 * other / flexible("runs"))
budgets.figure("`mw.tokenize_partial` makes # and # tokens", of_schemas("held"), of_calls("held"))
budgets.holds("all of them the text's", of_schemas("held_wrong") == of_calls("held_wrong") == 0)
peer = both.at("llguidance")
budgets.figure("# %, in # places other tokens of the same text", peer("share_percent"), peer("wrong"))
budgets.holds("The texts are those that both engines read", peer("tokens") == both("ours/tokens"))
budgets.figure("llguidance refuses # of the", both("left_out")["llguidance, schemas"])
budgets.given("of the 180 schemas", "how many the evaluation data has")

replay = record("generation_replay-cpu")
budgets.given("24 layers of Qwen 2.5 0.5B's shape", "the shape's name")
ways, control = replay("ways"), "without masks, again"
loop = ways["masks"]["us_beside_model"] - ways["without masks"]["us_beside_model"]
budgets.holds("0.5B's shape on one core", replay("threads") == 1)
budgets.figure("want # instances of the same schema", ways["masks"]["texts"])
budgets.given("generation_replay.py --texts 4 --repeats 3", "options of the command")
budgets.figure("all ways write the same # tokens", ways["masks"]["tokens"])
budgets.holds("all ways write the same", all(way["same"] == way["texts"] for way in ways.values()))
budgets.figure("They take turns at each text, # times", replay("repeats"))
budgets.figure("without masks is # times as fast as itself", ways[control]["speedup"])
budgets.figure("noise. (# for masks is noise, too", ways["masks"]["speedup"])
budgets.figure("by the last column # us a token, # % of it", loop, loop / 10 / ways["masks"]["ms_a_token"])
for name, way in ways.items():
    if name != control:
        budgets.figure(
            f"| {name} | # | # | # ms | # | # us |",
            way["model_calls"],
            way["calls_a_token"],
            way["ms_a_token"],
            way["speedup"],
            way["us_beside_model"],
        )

replay = record("generation_replay-int8")
ways = replay("ways")
budgets.holds("With weights of a byte each", replay("weights") == "int8")
budgets.given("generation_replay.py --int8 --texts 6", "an option of the command")
budgets.figure("--texts 6`, # tokens, # times each)", ways["masks"]["tokens"], replay("repeats"))
budgets.figure(
    "are # times as fast as no masks (without masks, again: #), forced tokens # times,",
    *(ways[name]["speedup"] for name in ("masks", control, "forced tokens")),
)
budgets.figure(
    "counts # times, and both # times.", *(ways[name]["speedup"] for name in ("counts", "counts and forced tokens"))
)

replay = record("generation_replay-cuda")
ways = replay("ways")
budgets.holds("On one NVIDIA H200, in bfloat16", replay("device") == "NVIDIA H200")
budgets.given("generation_replay.py --device cuda --texts 14", "an option of the command")
budgets.figure("--texts 14`, # tokens)", ways["masks"]["tokens"])
masked, free = ways["masks"], ways["without masks"]
budgets.figure(
    "alone are # times as fast as no masks by it, and # by tokens a second (# and #).",
    masked["speedup"],
    masked["tokens_a_second"] / free["tokens_a_second"],
    masked["tokens_a_second"],
    free["tokens_a_second"],
)
budgets.figure("forced tokens are # times as fast as no masks", ways["forced tokens"]["speedup"])
budgets.figure("counts # times, and both together", ways["counts"]["speedup"])
together = ways["counts and forced tokens"]
budgets.figure("both together # times, at # passes a token", together["speedup"], together["calls_a_token"])
budgets.figure("beyond what it takes without is # % of a pass there", loop * free["tokens_a_second"] / 1e4)

# Under Domino's grammars, and white space
domino = record("domino")
models = domino("models")
of_models = {name: list(grammars.values()) for name, grammars in models.items()}
long, short = of_models["int8"], of_models["bundled"]
budgets.figure("and with counts of # other texts", domino("learned"))
budgets.given("With 24 layers, weights of a byte", "the shape's layers")
budgets.figure(
    "and # texts of a grammar, # tokens in all",
    long[0]["masks"]["texts"],
    sum(ways["masks"]["tokens"] for ways in long),
)
for name in long[0]:
    cells = [ways[name][key] for ways in long for key in ("calls_a_token", "speed")]
    budgets.figure(f"| {name} | {' | '.join(['#, #'] * len(long))} |", *cells, within="| | json | json_gsm8k")
every = [way for grammars in of_models.values() for ways in grammars for way in ways.values()]
budgets.holds("All ways write the same tokens. `json` has", all(way["same"] == way["texts"] for way in every))
budgets.holds("nothing is forced there", models["int8"]["json"]["forced tokens"]["calls_a_token"] == 1)
budgets.given("best, 1.7 times as fast", "the paper's")
budgets.figure(
    "with # texts of a grammar, # tokens, masks",
    short[0]["masks"]["texts"],
    sum(ways["masks"]["tokens"] for ways in short),
)
for words, name in (
    ("masks alone are # to # times", "masks"),
    ("counts with s = 16 are # to # times", "counts, s = 16"),
):
    speeds = [ways[name]["speed"] for ways in short]
    budgets.figure(words, min(speeds), max(speeds))
budgets.figure("instances of # schemas of SchemaStore are", len(domino("white_space/schemas")))
for name, sums in domino("white_space/wanted").items():
    budgets.figure(f"| {name} | # | # |", sums["tokens"], sums["model_calls_forced"])
free = domino("white_space/free")
for words, name in (("# of # bytes in the natural style", "natural"), ("# of # in the style `any`", "any")):
    budgets.figure(words, free[name]["white_space"], free[name]["bytes"])
budgets.holds("and none in `compact`", free["compact"]["white_space"] == 0)
