"""Pages with few figures: limits of the code most of all."""

from __future__ import annotations

from ..facts import constant, record
from ..page import About, Page

commands = Page("docs/commands.md")
glossary = Page("docs/internals/glossary.md")
howto = Page("docs/grammar-howto.md")
semantics = Page("docs/semantics.md")
ahead = Page("docs/internals/ahead.md")
kinds = Page("docs/internals/engine.md")
library = Page("docs/grammars/README.md")
linting = Page("docs/linting.md")
front_ends = Page("docs/front-ends.md")
trouble = Page("docs/troubleshooting.md")
PAGES = (commands, glossary, howto, semantics, ahead, kinds, library, linting, front_ends, trouble)

wheels = record("wheels")("wheels").values()
commands.given("for Python 3.13 to 3.11", "the versions of which there are wheels")
commands.given("with Python 3.11, 3.12 and 3.13.", "the versions of which there are wheels")
commands.given("by Numba 0.62, the last", "the last version with wheels for these machines")
commands.given("it brings 37 MB of data", "the folder data of mistral-common 1.11")
added = [wheel["megabytes_added"] for wheel in wheels]
commands.figure("The base takes # to # MB with byte code", min(added), max(added))
largest = [wheel["megabytes_of_the_largest"] for wheel in wheels]
numpy = [sizes["numpy"] + sizes["numpy.libs"] for sizes in largest]
commands.figure("NumPy # to #, maskwright #", min(numpy), max(numpy), max(sizes["maskwright"] for sizes in largest))
commands.figure("The commands take # more", max(wheel["megabytes_of_cli"] for wheel in wheels))

glossary.given("bits in 32-bit words", "a definition")
glossary.given("three bytes that no UTF-8 text holds", "a definition")
howto.limit("which may have #.", constant("analysis/lexing/transducer.py", "STATE_LIMIT"))

front_ends.limit("the numbers go up to #.", constant("analysis/fronts/reading.py", "MAX_COUNT"))
front_ends.limit("goes back # tokens unless", constant("decoding/matcher.py", "DEFAULT_ROLLBACK"))
trouble.given("in 16 bits", "a type of floats")

commands.given("one of the 256 bytes", "a byte has 256 values")
server = "src/maskwright/playground/server.py"
commands.limit("Bodies have at most # bytes", constant(server, "MOST_BODY"))
commands.limit("texts # characters", constant("src/maskwright/playground/questions.py", "MOST_TEXT"))
commands.given("constraints 1,000,000 (in UTF-8)", "what a server takes of a request by default")
commands.limit(
    "A request has # seconds for its headers and # for its body",
    constant(server, "HEADER_SECONDS"),
    constant(server, "READ_SECONDS"),
)
commands.limit("At most # requests are under way", constant(server, "MOST_CONNECTIONS"))

semantics.given("A line 2,147,483,647 columns in", "the largest of C's ints, as CPython counts columns")
semantics.limit("more than # readings at one place", constant("decoding/engine/constants.py", "MAX_STACKS"))
engine = "decoding/engine/constants.py"
semantics.limit("or # reductions before one terminal", constant(engine, "MOST_SINCE") * constant(engine, "STRIDE"))
again = constant("analysis/lexing/transducer.py", "MAX_AGAIN"), constant("analysis/lexing/encoding.py", "MAX_PENDING")
semantics.limit("backs up over more than # lexemes, or under `contextual` over more than # bytes", *again)
semantics.limit("more than # states of a lexer", constant("analysis/lexing/transducer.py", "STATE_LIMIT"))
semantics.limit("more than # terminals under `nfa`", constant("analysis/legality/judge.py", "MAX_TERMINALS"))
linting.limit("after more than # lexemes or # bytes", *again)
semantics.limit("a token of more than # bytes", constant("maskstore/vocabulary/vocabulary.py", "LONGEST_TOKEN"))


costs = record("ahead")
seconds, steps = costs.at("cpu_seconds_to_the_first_masks"), costs.at("nanoseconds_of_fill_and_advance")
ahead.figure("a finished store needs # CPU seconds", seconds("numba, nothing kept"))
ahead.figure("The same calls then take # seconds", seconds("ahead"))
ahead.figure("from an earlier process they take #.", seconds("numba, kept"))
installed = [wheel["cpu_seconds_to_the_first_masks"] for wheel in wheels]
ahead.figure("a wheel they take # to #, since", min(installed), max(installed))
ahead.figure("JSON # ns instead of #;", *(About(steps(f"json/{way}")) for way in ("ahead", "numba")))
ahead.figure("python.lark # instead of #.", *(About(steps(f"lark:python/{way}")) for way in ("ahead", "numba")))


library.given("SQLite 3.40 statements", "a version of SQLite")
