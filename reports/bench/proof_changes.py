"""The changes of `proof_mutations`: for each row of proofs/README.md one that makes its function do what the theorem forbids."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """theorems : the rows. file, old, new : the change. tests : what pytest is asked to run."""

    theorems: tuple[str, ...]
    file: str
    old: str
    new: str
    tests: str


DECIDERS, JUDGE = "analysis/legality/deciders.py", "analysis/legality/judge.py"
STREAMLINE, CERTIFICATE = "maskstore/entries/streamline.py", "analysis/legality/certificate.py"
TRANSDUCER, SETS = "analysis/lexing/transducer.py", "maskstore/automaton/configuration_sets.py"
OF_DECIDERS = "tests/analysis/legality/test_deciders.py"
OF_EXPLORATION, OF_CLASSES = (
    "tests/analysis/legality/test_exploration.py",
    "tests/analysis/legality/test_interchange.py",
)
OF_STREAMLINE = "tests/maskstore/entries/test_streamline.py"
OF_SETS, OF_TRANSDUCER = (
    "tests/maskstore/automaton/test_configuration_sets.py",
    "tests/analysis/lexing/test_transducer.py",
)
OF_CERTIFICATES = "tests/analysis/legality/test_certificates_in_coq.py -k 0"
OF_EXACT = "tests/analysis/legality/test_exact.py"
OF_LANGUAGE = "tests/report/test_certificates.py -k language"
OF_CLAIMS = "tests/analysis/legality/test_certificates_in_coq.py -k opposite"
OF_CLOSURE, OF_VERIFY = "tests/maskstore/automaton/test_closure.py", "tests/maskstore/verify/test_verify.py"
OF_TABLES = "tests/maskstore/verify/test_tables.py"
OF_LAYOUT = "tests/decoding/engine/test_layout_in_coq.py"

NEVER = "return bool(self.judge([_as_query(context, sequence)])[0] == NEVER)"
IMPLIES = "return prover.implies(left, premise, conclusion) or prover.implies_from_before(left, premise, conclusion)"
OCCURRENCES = "occurrences.setdefault(symbol, set()).add((rule.lhs, rule.rhs[:i], rule.rhs[i + 1 :]))"
ALWAYS_CALL = "return self._implies(context[0], context[1:], context[1:] + sequence)"

CHANGES = (
    Change(
        ("grammar.prefix_iff_stack",), DECIDERS, "order[symbols[order] >= 0]", "order[symbols[order] > 0]", OF_DECIDERS
    ),
    Change(
        ("grammar.prefix_iff_uses_up",),
        DECIDERS,
        "return bool(self.judge([Query(START, sequence)])[0] == ALWAYS)",
        "return True",
        OF_DECIDERS,
    ),
    Change(("never_legal.never_legal_sound",), DECIDERS, NEVER, NEVER.replace("== NEVER", "!= ALWAYS"), OF_DECIDERS),
    Change(("never_legal.never_legal_exact",), DECIDERS, NEVER, "return False", OF_DECIDERS),
    Change(
        ("never_legal.follow_graph_sound",),
        JUDGE,
        "if left != ANYWHERE and not self._follow_rows[left][right]",
        "if left != ANYWHERE and self._follow_rows[left][right]",
        OF_STREAMLINE,
    ),
    Change(
        ("never_legal.never_legal_erased",),
        DECIDERS,
        "tuple(s for s in rule.rhs if s not in erased)",
        "rule.rhs",
        OF_DECIDERS,
    ),
    Change(
        (
            "never_legal.never_legal_same_language",
            "always_legal.always_legal_same_language",
            "jointly_legal.jointly_legal_same_language",
        ),
        JUDGE,
        "normalised = normalise(grammar)",
        "import dataclasses\n        normalised = normalise(grammar)\n"
        "        normalised = dataclasses.replace(normalised, rules=normalised.rules[:1] + normalised.rules[2:])",
        OF_STREAMLINE,
    ),
    Change(("always_legal.always_legal_sound",), DECIDERS, ALWAYS_CALL, "return True", OF_DECIDERS),
    Change(("always_legal.always_exact_on_stacks",), DECIDERS, ALWAYS_CALL, "return False", OF_DECIDERS),
    Change(
        ("implication.implied_sound",),
        DECIDERS,
        IMPLIES,
        "return prover.implies(left, conclusion, premise)",
        OF_DECIDERS,
    ),
    Change(
        ("implication.implied_exact_on_stacks",),
        DECIDERS,
        "self._stamp += 1\n        return bool(",
        "self._stamp += 1\n        return False and bool(",
        OF_DECIDERS,
    ),
    Change(
        ("implication.implied_always_context",),
        DECIDERS,
        ALWAYS_CALL,
        "return self._implies(context[0], (), sequence)",
        OF_DECIDERS,
    ),
    Change(
        ("from_before.from_before_sound", "from_before.from_before_always_context"),
        DECIDERS,
        "return all(self.implies(int(terminal), premise, conclusion) for terminal in befores)",
        "return any(self.implies(int(terminal), premise, conclusion) for terminal in befores)",
        OF_DECIDERS,
    ),
    Change(
        ("from_before.from_before_always",),
        DECIDERS,
        "if holds.span[len(premise), start] & accepted and",
        "if False and",
        OF_DECIDERS,
    ),
    Change(
        ("from_before.from_before_exact", "from_before.from_before_always_exact"),
        DECIDERS,
        IMPLIES,
        "return prover.implies(left, premise, conclusion)",
        OF_EXPLORATION,
    ),
    Change(
        ("jointly_legal.jointly_legal_both_ways",),
        DECIDERS,
        "remainder + second) and self._implies(",
        "remainder + second) or self._implies(",
        OF_DECIDERS,
    ),
    Change(
        ("jointly_legal.jointly_legal_always",),
        DECIDERS,
        "return True\n        if not context:\n            return all(self.is_jointly_legal",
        "return True\n        if not first or not second:\n            return False\n        if not context:\n            return all(self.is_jointly_legal",  # noqa: E501
        OF_DECIDERS,
    ),
    Change(
        ("jointly_legal.jointly_legal_fold", "streamlining.streamline_sound"),
        STREAMLINE,
        "pairs[leader][1] for",
        "pairs[0][1] for",
        OF_STREAMLINE,
    ),
    Change(
        ("interchange.interchange_sound", "interchange.like_word"),
        "analysis/legality/interchange.py",
        OCCURRENCES,
        OCCURRENCES.replace("rule.rhs[i + 1 :]", "()"),
        OF_CLASSES,
    ),
    Change(
        ("interchange.replaceable_same_language",),
        "analysis/legality/interchange.py",
        "if rewrite:\n",
        "if False:\n",
        OF_CLASSES,
    ),
    Change(
        ("interchange.replaceable_prefix",),
        STREAMLINE,
        "least[s] if s < n else s for",
        "0 if s < n else s for",
        OF_STREAMLINE,
    ),
    Change(
        ("interchange.swap_is_not_enough",),
        "analysis/legality/interchange.py",
        OCCURRENCES,
        OCCURRENCES.replace(
            "rule.rhs[:i], rule.rhs[i + 1 :]", "tuple(sorted(-1 if s == symbol else s for s in rule.rhs)), ()"
        ),
        OF_CLASSES,
    ),
    Change(
        ("streamlining.streamline_mask",),
        STREAMLINE,
        "if never[left, self.spoken(n)]",
        "if not never[left, self.spoken(n)]",
        OF_STREAMLINE,
    ),
    Change(("streamlining.streamline_masks",), STREAMLINE, "if always[case]]", "if not always[case]]", OF_STREAMLINE),
    Change(
        ("streamlining.streamline_spoken_sound",),
        STREAMLINE,
        "for s in symbols if s not in ignored",
        "for s in symbols if s in ignored",
        OF_STREAMLINE,
    ),
    Change(
        ("streamlining.never_after_anywhere",),
        JUDGE,
        "Query(left, self._plain(variant)) for",
        "Query(START if left == ANYWHERE else left, self._plain(variant)) for",
        OF_STREAMLINE,
    ),
    Change(
        ("streamlining.delete_readings",),
        JUDGE,
        "variants = self.variants(left, sequence)\n            legal[number]",
        "variants = [sequence]\n            legal[number]",
        OF_STREAMLINE,
    ),
    Change(
        ("streamlining.fold_readings",),
        JUDGE,
        "return ENDED_NEWLINE not in variant and self.newline not in (left, *variant[:-1])",
        "return ENDED_NEWLINE not in variant",
        OF_STREAMLINE,
    ),
    Change(
        ("streamlining.merge_readings",),
        JUDGE,
        "for one, other in self._variants(left, first, second)",
        "for one, other in [(first, second)]",
        OF_STREAMLINE,
    ),
    Change(
        ("end_of_text.ends_iff_word", "end_of_text.marked_prefix"),
        "analysis/lr/bisimulation.py",
        "{ACCEPT: 1 << n_terminals}",
        "{1: (1 << n_terminals) - 1}",
        f"{OF_VERIFY} {OF_CLOSURE}",
    ),
    Change(
        ("stack_automaton.walk_exact", "partial_stacks.masks_exact"),
        "maskstore/automaton/closure.py",
        "c.edges.mask[:n_edges],",
        "np.roll(c.edges.mask[:n_edges], 1),",
        OF_CLOSURE,
    ),
    Change(
        ("stack_automaton.walk_exact", "partial_stacks.masks_exact"),
        "maskstore/verify/walks.py",
        "if classes & ~mask:",
        "if False:",
        f"{OF_VERIFY} -k altered",
    ),
    Change(
        ("stack_automaton.walk_ends",),
        "maskstore/automaton/closure.py",
        "c.edges.node[:n_edges],",
        "np.zeros_like(c.edges.node[:n_edges]),",
        OF_CLOSURE,
    ),
    Change(
        ("partial_stacks.means_step", "partial_stacks.accepts_exact"),
        SETS,
        "pair_of_group[is_open] = pair_of_open",
        "pair_of_group[is_open] = pair_of_open[::-1]",
        OF_SETS,
    ),
    Change(
        ("partial_stacks.reads_exact",),
        SETS,
        "is_open = representative_of[firsts] != exploring.REFUSED_CONTINUATION",
        "is_open = (representative_of[firsts] != exploring.REFUSED_CONTINUATION) & (np.arange(len(firsts)) % 5 > 0)",
        OF_SETS,
    ),
    Change(
        ("lr_decidable.waiting_finite",),
        SETS,
        "classes.least[mine])",
        "classes.least[mine][::-1])",
        OF_SETS,
    ),
    Change(
        ("longest_match.lexes_emit",),
        TRANSDUCER,
        "target, behind = self._row_of(START_STATE if state.reread is None else state.reread[1])",
        "target, behind = self._row_of(START_STATE)",
        OF_TRANSDUCER,
    ),
    Change(
        ("longest_match.reads_exact",),
        TRANSDUCER,
        "return START_STATE, self.lexemes.emitted(winner)",
        "return START_STATE, ()",
        OF_TRANSDUCER,
    ),
    Change(
        ("longest_match.reads_or_never",),
        TRANSDUCER,
        "if state.winner < 0 or self.has_modes:\n            target = np.full(n_classes, DEAD if state.winner < 0 else",
        "if state.winner < 0 or self.has_modes or state.reread is not None:\n"
        "            target = np.full(n_classes, DEAD if state.winner < 0 or state.reread is not None else",
        OF_TRANSDUCER,
    ),
    Change(
        ("longest_match.reads_all",),
        TRANSDUCER,
        "emitted += outputs + self.output_of[end_output]",
        "emitted += self.output_of[end_output]",
        OF_TRANSDUCER,
    ),
    Change(
        ("tables.runs_sound",),
        "maskstore/verify/tables.py",
        "self._known[key] = self._derive_all(heads, popped)",
        "self._known[key] = True",
        f"{OF_TABLES} -k altered",
    ),
    Change(
        ("tables.runs_complete", "tables.tables_exact"),
        "maskstore/verify/tables.py",
        "found.append((state if len(rule.rhs) == 1 else -1, columns))",
        "found.append((state, columns))",
        f"{OF_TABLES} -k lack",
    ),
    Change(
        ("tables.tables_complete",),
        "maskstore/verify/tables.py",
        "if columns & self._end and ACCEPTS not in",
        "if False and ACCEPTS not in",
        f"{OF_TABLES} -k lack",
    ),
    Change(
        ("tables.tables_sound",),
        "maskstore/verify/tables.py",
        "return below == [0] and self.labels(0, state) <= start",
        "return True",
        f"{OF_TABLES} -k altered",
    ),
    Change(
        ("viable.reads_prefix", "viable.reads_exact"),
        "maskstore/verify/viable.py",
        "if not items]",
        "if False]",
        "tests/report/test_lr_tables.py -k dead_end",
    ),
    Change(
        ("viable.merged_prefix",),
        "maskstore/verify/viable.py",
        "if not own:",
        "if False:",
        "tests/maskstore/verify/test_viable.py -k dead_end",
    ),
    Change(
        ("viable.merged_prefix",),
        "maskstore/verify/viable.py",
        "for base in self.full.deep_below(state, length)",
        "for base in sorted(self.full.deep_below(state, length))[:1]",
        "tests/maskstore/verify/test_viable.py -k renamed",
    ),
    Change(
        ("viable.never_exact", "viable.never_exact_start"),
        CERTIFICATE,
        'return not accepted[0] if self.kind == "never" else',
        'return True if self.kind == "never" else',
        OF_LANGUAGE,
    ),
    Change(
        ("viable.always_exact", "viable.jointly_exact"),
        CERTIFICATE,
        "else accepted[0] == accepted[1]",
        "else True",
        OF_LANGUAGE,
    ),
    Change(
        ("viable.never_exact_start", "viable.jointly_exact_start"),
        CERTIFICATE,
        "return frozenset({0})",
        "return frozenset()",
        OF_LANGUAGE,
    ),
    Change(
        ("certificate.settle_right",),
        CERTIFICATE,
        "alternatives[start : start + alternatives[start - 1]] if",
        "alternatives[start : start + 1] if",
        OF_EXACT,
    ),
    Change(
        ("certificate.settle_right",),
        CERTIFICATE,
        "Pending(one.position, one.pops - 1, one.nonterminal)",
        "Pending(one.position, max(0, one.pops - 2), one.nonterminal)",
        OF_CERTIFICATES,
    ),
    Change(
        ("certificate.check_sound",),
        CERTIFICATE,
        "if (cell, outcomes) not in listed:",
        "if not listed:",
        OF_CERTIFICATES,
    ),
    Change(
        ("certificate.never_certified", "certificate.always_certified", "certificate.jointly_certified"),
        CERTIFICATE,
        "elif not proof.claim.allows([outcome is None for outcome in outcomes]):",
        "elif False:",
        OF_CLAIMS,
    ),
    Change(
        ("layout.move_exact",),
        "maskstore/tokens/events.py",
        "return Move(self.wide % TAB_STOP, self.wide // TAB_STOP * TAB_STOP, self.narrow + 1)",
        "return Move(self.wide % TAB_STOP, self.wide, self.narrow + 1)",
        OF_LAYOUT,
    ),
    Change(
        ("layout.layout_exact", "layout.masks_exact"),
        "maskstore/tokens/events.py",
        "return Move(ABSOLUTE)",
        "return Move(PLAIN)",
        OF_LAYOUT,
    ),
    Change(
        ("layout.indent_exact", "layout.bytes_exact"),
        "decoding/engine/_draft_kernels.py",
        "if wide != top or narrow != narrow_of(memory, arena, below):",
        "if wide != top:",
        OF_LAYOUT,
    ),
    Change(
        ("layout.visible_exact", "layout.visible_cases"),
        "decoding/engine/_mask_kernels.py",
        "depth_case += min(memory[region + c.DEPTH], n_depth_cases - 1)",
        "depth_case += 0",
        OF_LAYOUT,
    ),
    Change(
        ("layout.end_exact",),
        "decoding/engine/_end_kernels.py",
        "if code == c.OK and has_newline and memory[region + c.DRAFT_DEPTH] == 0:",
        "if code == c.OK and has_newline and memory[region + c.DRAFT_DEPTH] == 1:",
        "tests/decoding/engine/test_engine_ends.py",
    ),
)
