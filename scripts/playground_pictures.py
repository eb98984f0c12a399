"""Writes the pictures of docs/commands.md, by a headless Chromium: `python scripts/playground_pictures.py`. Needs Pillow."""

from __future__ import annotations

import io
import sys
import tempfile
import threading
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from headless_browser import Browser, browser  # noqa: E402

from maskwright.playground.server import AnswerPool, PlaygroundServer  # noqa: E402

FOLDER = ROOT / "docs" / "images"


def shoot(page: Browser, name: str, width: int, height: int, is_dark: bool, top: int = 0) -> None:
    page.size(width, height, is_dark)
    page.value(f"scrollTo(0, {top})")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.png"
        page.shoot(path)
        picture = Image.open(io.BytesIO(path.read_bytes())).convert("RGB").quantize(160, dither=Image.Dither.NONE)
    picture.save(FOLDER / name, optimize=True)


def main() -> None:
    pool = AnswerPool("python-tiny", 60, 6 << 30)
    server = PlaygroundServer(pool)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, browser(Path(profile)) as page:
        page.size(1280, 900)
        page.open(server.url)
        page.wait("document.querySelectorAll('#tokens button').length", 120)
        page.value("mask = null; take(examples.find((each) => each.title === 'with findings'))")
        page.wait("mask && document.querySelectorAll('#findings li').length > 2")
        page.value("document.getElementById('text').value = 'if a b; else if c 9'; lookAtMask()")
        page.wait("mask && !mask.is_legal")
        shoot(page, "playground-light.png", 1280, 860, False)
        page.value("mask = null; take(examples.find((each) => each.title === 'python'))")
        page.wait("mask")
        page.value("document.getElementById('temperature').value = 0.6; complete()")
        shoot(page, "playground-dark.png", 1280, 860, True)
        page.value("document.getElementById('writings').hidden = true; explain({byte: 93})")
        shoot(page, "playground-narrow.png", 400, 860, False, 560)
    server.shutdown()
    pool.close()


if __name__ == "__main__":
    main()
