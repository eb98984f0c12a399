"""docs/sources.md"""

from __future__ import annotations

from ..facts import record
from ..page import Page
from .selective import whole

page = Page("docs/sources.md")
PAGES = (page,)

# The streamlining post: its own figures are given, ours are a record's
post = record("post_counts")
counts, recipes = post.at("counts"), post("recipes")
lexer, entries = counts.at("lexer"), counts.at("entries")
POST = {
    "| terminals | 100 |": counts("terminals"),
    "| nonterminals | 176 |": counts("nonterminals"),
    "| rules | 536 |": counts("rules"),
    "| states of the lexer NFA | 410 |": lexer("states"),
    "| its transitions | 2,398 |": lexer("transitions"),
    "| interchange classes | 7, of 35 terminals |": counts("classes"),
    "| sequences behind `def` | 1,036 |": counts("behind_def"),
    "| entries | 112,283 |": entries("original"),
    "| rows of the token NFA | 2,837,801 |": counts("rows"),
    "| fewer entries | about 10 times |": entries("ratio"),
}
for head, ours in POST.items():
    page.given(head, "the post")
    page.figure(f"{head} #", ours)
page.figure("terminals | 7, of # |", counts("terminals_in_classes"))
page.given("gives 1,036, 112,283 or 2,837,801.", "the post")
of_lark = counts("terminals") - counts("declared")
reading, accepting = counts("reading_transitions"), counts("accepting_states")
page.figure("Lark 1.3.1 lists #, those it ignores", of_lark)
page.given("100 would be these 99 and the end", "the post, and what the line says of Lark")
page.given("has 176 and 536 with the start symbol", "Lark's own files, of the versions that are named")
page.given(
    "have 176 and 537 with `file_input`, and 175 and 534 with", "Lark's own files, of the versions that are named"
)
page.figure("# states of # minimal automata over", lexer("states") - 2, of_lark)
page.figure("transitions`: # read a character, # lead to the terminals, # from", reading, of_lark, accepting)
page.holds("2,188 read a character, 99 lead", reading + of_lark + accepting == lexer("transitions"))
page.figure("makes the same # and # of the plain patterns", lexer("states") - 2, reading)
page.given("the other 8 are is not known", "the post's 2,398 without ours")
for name, recipe in recipes.items():
    page.figure(f"| {name} | # | # | # |", *(recipe[key] for key in ("behind_def", "entries", "rows")))
near = recipes["initial states, and special pieces are texts"]["entries"]
page.figure("have # entries more than the post, # %", near - 112_283, 100 * (near - 112_283) / 112_283)
states, resting = counts("sound_lexer/states"), counts.at("resting_states")
page.figure("# states of the terminals' automata; # with a start", states - 2, states)
page.figure("# in which a token can end", resting("sound"))
page.figure("In the post reading they are #, # and #.", lexer("states") - 2, lexer("states"), resting("post"))
page.figure("it leaves # of # entries, the steps before it", entries("follow"), entries("original"))
page.holds(
    "410 states, 7 classes and 176 nonterminals are equal",
    (lexer("states"), counts("classes"), counts("nonterminals")) == (410, 7, 176),
)
page.holds("the same 7 classes with the same members", counts("classes") == 7)
page.given("About 10 times fewer entries", "the post")
page.figure("| # times; [more]", entries("ratio"))
page.figure(
    "| # before and # after, as a mean over lexer",
    *(counts(f"parser_calls/{key}") for key in ("original", "streamlined")),
)

# Two terminals of context
equal = record("mask_equality-mistral-7b-v0.1")
left = [counts(f"pair_contexts/mean_entries_after_{n}") for n in ("one", "two")]
asked = [equal(f"parser_calls_per_mask/{key}") for key in ("streamlined", "two_terminals")]
for context, of_context, calls in zip("12", left, asked, strict=True):
    store = post.at(f"by_context/{context}")
    page.figure(
        f"| {context} | # | # | # | # kB | # MB | # | # | # |",
        *(store(key) for key in ("entries", "cells", "masks")),
        store("mask_bytes") / 1e3,
        store("file_bytes") / 1e6,
        store("cpu_seconds"),
        of_context,
        calls,
    )
    page.given(f"| {context} |", "the terminals of context")
page.figure("the mean over all # pairs of a", counts("pair_contexts/contexts"))
page.figure("were equal at all\n# positions", equal("positions"))
page.holds("were equal at all", equal("positions_with_different_masks") == equal("true_next_tokens_refused") == 0)

# Selective multiplication
page.figure("measured at most # % of a step can be gained", whole)

# Domino and fast-forward tokens: figures of others are given
page.given("1.7 times on JSON with a schema", "the paper, as others quote it")
page.given("30.8 % right answers under a template where the model alone has 41.5 %", "the paper, as others quote it")
page.given("Definition 2.1", "the paper's number")
page.figure("together are [# times]", record("generation_replay-cuda")("ways/counts and forced tokens/speedup"))
page.given("With two tokens back, or seven bytes,", "the article")
page.given("with one 23 cases, with none 97 % of the sequences", "the article")
runs = record("forced-flexible").at("schemas")
page.figure("held back # % of the runs where white", 100 - 100 * runs("apart") / runs("runs"))
page.holds(
    "half of the places",
    0.4 < record("forced")("schemas/ours/apart") / record("forced")("schemas/ours/places") < 0.6,
)
page.given("12.7 % of the tokens of MaskBench are forced; 12.1 % without", "the article")
