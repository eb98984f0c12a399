"""Masks of the original store and of the streamlined ones, of one terminal of context and of two, compared at every position of real Python
files, and what each asks of the parser.

python reports/bench/mask_equality.py [--tokenizer mistral-7b-v0.1] [--positions 110000]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import add_data, python_files, write_record
from peers.tokenizers import encoder
from peers.work import takes_python
from rich.progress import track

import maskwright as mw
from maskwright.analysis.errors import IllegalTokenError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", default="mistral-7b-v0.1", choices=["mistral-7b-v0.1", "tekken"])
    parser.add_argument("--positions", type=int, default=110_000)
    add_data(parser)
    arguments = parser.parse_args()
    encode = encoder(arguments.tokenizer)
    grammar, vocabulary = mw.load_grammar("lark:python", lexing="nfa"), mw.load_vocabulary(arguments.tokenizer)
    stores = {
        "original": mw.build_store(grammar, vocabulary, streamlined=False),
        "streamlined": mw.build_store(grammar, vocabulary),
        "two_terminals": mw.build_store(grammar, vocabulary, context=2),
    }
    decoders = [mw.ReferenceDecoder(store) for store in stores.values()]
    positions = files = different = refused = 0
    begin = time.process_time()
    for record in track(list(python_files()), description="files"):
        if positions >= arguments.positions:
            break
        if not takes_python(record):
            continue
        text: str = record["text"]
        tokens = encode(text)
        first = vocabulary.tokens[tokens[0]]
        for decoder in decoders:
            decoder.reset()
        if first.startswith(b" ") and not text.startswith(" "):
            # SentencePiece puts a space before the text's first word; it is not part of the text
            for decoder in decoders:
                decoder.advance_bytes(first[1:])
            tokens = tokens[1:]
        files += 1
        try:
            for token in tokens:
                masks = [decoder.mask() for decoder in decoders]
                different += not all(np.array_equal(mask, masks[0]) for mask in masks[1:])
                if not (masks[0][token >> 5] >> (token & 31)) & 1:
                    refused += 1
                for decoder in decoders:
                    decoder.advance(token)
                positions += 1
        except IllegalTokenError as error:
            print(f"{record['path']}: {error}")
            continue
    calls = {
        name: round(decoder.n_parser_calls / decoder.n_masks, 3) for name, decoder in zip(stores, decoders, strict=True)
    }
    facts = {
        "tokenizer": arguments.tokenizer,
        "files": files,
        "positions": positions,
        "positions_with_different_masks": different,
        "true_next_tokens_refused": refused,
        "parser_calls_per_mask": {**calls, "ratio": round(calls["original"] / calls["streamlined"], 2)},
        "cpu_seconds": round(time.process_time() - begin, 1),
    }
    print(facts)
    command = (
        f"python reports/bench/mask_equality.py --tokenizer {arguments.tokenizer} --positions {arguments.positions}"
    )
    write_record(f"mask_equality-{arguments.tokenizer}", command, facts)


if __name__ == "__main__":
    main()
