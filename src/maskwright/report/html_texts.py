"""What every HTML report says and looks like: its glossary, its style and its script."""

from __future__ import annotations

STEP_FACTS = {
    "original": "Every sequence of terminals that some token can complete or begin, from every state of the lexer.",
    "ignored": "White space and comments never reach the parser: sequences that differ only in them are one.",
    "classes": "Each terminal of a class can take another's place in every rule, so one of them stands for all.",
    "follow": "No sentence has these two terminals side by side (the follow graph has no such edge).",
    "pairs": "The last terminal can follow the one before it in every context: asking about it tells nothing.",
    "never": "No sentence contains the whole sequence after the state's terminal, though each pair in it occurs.",
    "always": "The rest of the sequence can follow its beginning in every context: the beginning decides.",
    "joint": "Two sequences are legal after exactly the same prefixes: one question answers both.",
    "exact": "The same facts, judged on all stacks that an LR parser can have, instead of by approximations.",
}
"""Streamlining step -> the fact that it uses, as the page says it."""


GLOSSARY = {
    "terminal": "A kind of word in the grammar: a keyword, an operator, NAME, NUMBER. The parser sees terminals, not characters.",
    "lexer state": "How far the text has come inside a terminal: after “de” the word may become “def” or a name.",
    "mask": "The set of tokens that may come next. It is computed before each token that the model writes.",
    "entry": "A lexer state, a sequence of terminals, and the tokens that complete or begin exactly this sequence from this "
    "state. The tokens are allowed if the parser accepts the sequence.",
    "parser call": "Asking the parser whether it accepts one sequence where it stands. An entry with an empty sequence needs none.",
    "never legal": "X then S occurs in no sentence of the grammar, whatever stands before or after.",
    "always legal": "Wherever X can stand, S can follow at once.",
    "jointly legal": "After every prefix that ends in X, either both sequences can follow or neither.",
    "interchangeable": "Terminals that can be swapped everywhere without changing the set of rules, such as + and -.",
    "follow graph": "The terminals, with an edge from each to each that can stand directly after it.",
    "post reading": "The counting of the streamlining post: printable characters, leading spaces of tokens stripped, newlines and "
    "indentation as plain terminals. It is here to compare with published numbers.",
    "sound reading": "What decoding uses: the true bytes of all tokens; newlines inside brackets and indentation are obeyed.",
    "rules as loaded": "The grammar's rules as the loader expands them.",
    "rules normalised": "The same language in rules with common beginnings factored out and direct left recursion removed; on them "
    "more sequences can be proved always legal.",
}


STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2430; --soft: #596273; --line: #dfe3ea; --panel: #f5f7fa;
  --before: #d98c2b; --before-ink: #95570b; --after: #1b6fb5; --after-ink: #14578f; --gone: #dce3ec; --never: #eef1f5;
  --sometimes: #7fb2de; --always: #0b4378; --hover: #d98c2b40; --error: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181f; --ink: #e4e8ee; --soft: #9aa5b5; --line: #2d3542;
  --panel: #1c222c; --before: #e0a04f; --before-ink: #e9b36d; --after: #5aa9e6; --after-ink: #7cbcec; --gone: #2d3644;
  --never: #1f2630; --sometimes: #2f6a9f; --always: #a9d6fb; --hover: #e0a04f55; --error: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.2rem 1.2rem 4rem; max-width: 62rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 3rem 0 .4rem; padding-top: .9rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
p { max-width: 46rem; margin: .5rem 0; } .quiet, figcaption, caption { color: var(--soft); font-size: .875rem; }
nav { font-size: .875rem; margin: 1rem 0 0; } nav a { display: inline-block; margin-right: 1rem; }
a { color: var(--after-ink); }
code { font: .86em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; background: var(--panel); padding: .08em .35em;
  border: 1px solid var(--line); border-radius: .3em; white-space: pre-wrap; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); gap: .9rem; margin: 1.4rem 0; }
.tile { background: var(--panel); border: 1px solid var(--line); border-radius: .6rem; padding: .9rem 1.1rem; }
.tile b { display: block; font-size: 1.55rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tile .was { color: var(--before-ink); } .tile .now { color: var(--after-ink); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(19rem, 100%), 1fr)); gap: 1rem 2.2rem; align-items: start; }
figure { margin: .2rem 0; max-width: 34rem; } figcaption { margin-top: .4rem; } figure.wide { max-width: none; }
.scroll { overflow-x: auto; margin: .8rem 0; } td code { white-space: pre; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .3rem; }
th, td { text-align: left; vertical-align: top; padding: .32rem .8rem .32rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; } thead th { vertical-align: bottom; color: var(--soft); } .n { text-align: right; }
td.n { white-space: nowrap; } .sortable td:last-child { min-width: 17rem; }
.entries td:last-child { min-width: 17rem; color: var(--soft); }
td.main, thead th.main { color: var(--after-ink); font-weight: 700; }
dt { font-weight: 600; margin-top: .7rem; } dd { margin: 0; max-width: 46rem; }
.key { display: inline-block; width: .85em; height: .85em; border: 1px solid var(--line); margin-right: .35em; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0; font: .86em ui-monospace, Menlo, Consolas, monospace; }
.finding p { margin: .15rem 0; } .error { color: var(--error); } .warning { color: var(--before-ink); }
.chips code { display: inline-block; margin: 0 .3rem .3rem 0; }
.keyed { margin-right: 1.2rem; } footer { margin-top: 3rem; overflow-wrap: anywhere; } .readout { min-height: 1.6em; margin: .2rem 0; }
@media (max-width: 40rem) {
  .entries, .sortable, .wordy, :is(.entries, .sortable, .wordy) :is(thead, tbody) { display: block; }
  :is(.entries, .sortable, .wordy) tr { display: grid; column-gap: .5rem; border-bottom: 1px solid var(--line); }
  :is(.entries, .sortable, .wordy) :is(th, td) { border: 0; min-width: 0; padding: .15rem 0; overflow-wrap: anywhere; }
  .entries tr { grid-template-columns: repeat(5, 1fr); font-size: .8rem; }
  .sortable tr { grid-template-columns: minmax(0, 1.6fr) minmax(0, 1.1fr) 4.2rem 3rem; }
  .wordy tr { grid-template-columns: minmax(0, 1fr) 4rem; }
  .entries :is(th, td):first-child, :is(.entries, .sortable, .wordy) :is(th, td):last-child { grid-column: 1 / -1; }
  .entries td:first-child { font-weight: 600; } :is(.entries, .sortable) td:last-child { min-width: 0; }
  td code { white-space: pre-wrap; } }
@media print { body { max-width: none; padding: 0; font-size: 10.5pt; } nav, .readout { display: none; }
  figure, .tile, tr, dd { break-inside: avoid; } h2, h3 { break-after: avoid; } .scroll { overflow: visible; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


SCRIPT = """
for (const picture of document.querySelectorAll("svg.matrix")) {
  const names = JSON.parse(picture.dataset.names), words = ["never", "sometimes", "always"];
  const readout = picture.closest("figure").querySelector(".readout"), hint = readout.textContent;
  picture.addEventListener("mousemove", event => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    const column = Math.floor((point.x - picture.dataset.left) / picture.dataset.size);
    const row = event.target.closest(".row"), cell = row ? row.dataset.cells[column] : undefined;
    readout.textContent = cell ? `after ${row.dataset.name} comes ${names[column]}: ${words[cell]}` : hint;
  });
}
for (const head of document.querySelectorAll("table.sortable thead th")) {
  head.style.cursor = "pointer";
  head.title = "sort";
  head.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0], index = head.cellIndex;
    const value = row => row.cells[index].dataset.value ?? row.cells[index].textContent;
    const order = (a, b) => isNaN(value(a)) ? value(a).localeCompare(value(b)) : value(b) - value(a);
    body.append(...[...body.rows].sort(order));
  });
}
"""
