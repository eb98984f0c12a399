"""The page in a headless Chromium: what it shows, by keyboard, at two widths, in light and dark, without asking anyone else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from headless_browser import Browser, browser, chromium

from maskwright.playground.server import AnswerPool, PlaygroundServer

pytestmark = pytest.mark.skipif(chromium() is None, reason="there is no Chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    pool = AnswerPool("python-tiny", 60, 6 << 30)
    server = PlaygroundServer(pool)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        with browser(tmp_path_factory.mktemp("profile")) as found:
            found.size(1280, 900)
            found.open(server.url)
            found.wait("document.querySelectorAll('#tokens button').length", 120)
            yield found
    finally:
        server.shutdown()
        pool.close()
        server.server_close()


def example(page: Browser, title: str) -> None:
    page.value(f"mask = null; take(examples.find((each) => each.title === {title!r}))")
    page.wait("mask")


def test_the_first_page(page: Browser) -> None:
    example(page, "arithmetic")
    assert page.value("document.getElementById('state').textContent") == "legal so far, not whole yet"
    assert page.value("document.getElementById('about').textContent").startswith("python-tiny: 4,096 tokens")
    assert page.value("document.querySelectorAll('#bytes button').length") == 256
    assert page.value("document.querySelectorAll('#bytes .allowed').length") == 13
    page.wait("document.querySelector('#findings strong')?.textContent === 'endless-whitespace'")


def test_by_keyboard(page: Browser) -> None:
    example(page, "arithmetic")
    page.value("document.getElementById('text').focus()")
    page.type("4)")
    page.wait("mask?.is_whole")
    assert page.value("document.getElementById('state').textContent") == "legal, and whole"
    page.type(" x 1")
    page.wait("mask && !mask.is_legal")
    assert page.value("document.querySelector('#behind mark').textContent") == "x 1"
    assert "stops being legal: line 1, column 13" in page.value("document.getElementById('where').textContent")
    page.value("document.getElementById('allowed').focus()")
    page.press("ArrowRight", 39)
    assert page.value("document.activeElement.id") == "refused"
    page.press("ArrowLeft", 37)
    page.value("document.querySelector('#bytes button').focus()")
    page.press("ArrowDown", 40)
    page.press("ArrowRight", 39)
    assert page.value("document.activeElement.textContent") == "!"
    page.value("document.activeElement.click()")
    page.wait("document.getElementById('said').textContent.includes(\"(b'!') is not legal here\")")
    page.press("Escape", 27)
    assert page.value("document.getElementById('why').hidden")


def test_tokens_are_written_explained_and_searched(page: Browser) -> None:
    example(page, "a verdict")
    page.value("[...document.querySelectorAll('#tokens button')].find((each) => each.textContent === 'no').click()")
    page.wait("mask && document.getElementById('text').value === 'Verdict: no'")
    page.value("document.getElementById('refused').click()")
    page.wait("document.querySelector('#tokens .refused')")
    page.value("document.getElementById('search').value = 'tion'; lookAtMask()")
    page.wait("[...document.querySelectorAll('#tokens button')].every((each) => each.textContent.includes('tion'))")
    page.value("document.querySelector('#tokens .refused').click()")
    page.wait("document.getElementById('said').textContent.includes('is not legal here')")
    page.value("document.getElementById('search').value = ''; lookAtMask()")
    page.wait("document.getElementById('page').textContent.startsWith('1 to 100')")
    page.value("document.getElementById('next').click()")
    page.wait("document.getElementById('page').textContent.startsWith('101 to 200')")
    page.value("document.getElementById('before').click()")
    page.wait("document.getElementById('page').textContent.startsWith('1 to 100')")
    page.value("document.getElementById('allowed').click()")


def test_endings_and_completions(page: Browser) -> None:
    pytest.importorskip("transformers")
    example(page, "a person")
    page.value("end()")
    assert page.value("document.getElementById('text').value") == '{"name": "Jo", "age":0}'
    page.wait("document.getElementById('ended').textContent.startsWith('6 bytes')")
    example(page, "arithmetic")
    page.value("complete()")
    page.wait("document.querySelectorAll('#writings pre').length === 2")
    page.value("[...document.querySelectorAll('#writings button')][0].click()")
    page.wait("mask?.is_whole && mask.is_legal")


def test_errors_are_shown(page: Browser) -> None:
    example(page, "arithmetic")
    page.value("document.getElementById('constraint').value = 'start: (\\n'; lookAtMask()")
    page.wait("!document.getElementById('problem').hidden")
    assert "1:9" in page.value("document.getElementById('problem').textContent") or page.value("mask === null")
    assert page.value("document.getElementById('ending').disabled")
    page.value("document.getElementById('constraint').value = 'json'; changed(); lookAtMask()")
    page.wait("mask && document.getElementById('problem').hidden")
    page.value("document.getElementById('open').click()")
    page.wait("document.getElementById('constraint').value.includes('start:')")


def test_a_long_request_can_be_cancelled(page: Browser) -> None:
    example(page, "arithmetic")
    page.value("document.getElementById('constraint').value = 'start: /(a|b)*a(a|b){13}/\\n'; lookAtMask(); undefined")
    page.wait("!document.getElementById('busy').hidden")
    page.value("document.getElementById('cancel').click()")
    page.wait("document.getElementById('busy').hidden", 5)
    example(page, "a date")
    assert page.value("document.querySelectorAll('#tokens button').length") == 3
    assert (
        page.value("[...document.querySelectorAll('#tokens button')].filter((each) => each.tabIndex === 0).length") == 1
    )


@pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (1280, True), (400, False), (400, True)])
def test_it_fits(page: Browser, tmp_path: Path, width: int, is_dark: bool) -> None:
    example(page, "a person")
    page.size(width, 900, is_dark)
    assert page.value("document.documentElement.scrollWidth") <= width
    too_wide = (
        "[...document.querySelectorAll('section')].filter((each) => each.getBoundingClientRect().right > innerWidth)"
    )
    assert page.value(f"{too_wide}.length") == 0
    colours = page.value("['color', 'backgroundColor'].map((what) => getComputedStyle(document.body)[what])")
    light = [sum(map(int, colour[4:-1].split(","))) for colour in colours]
    assert (light[0] > light[1]) == is_dark
    page.shoot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10_000
    page.size(1280, 900)


@pytest.mark.slow
def test_it_asks_nobody_else_and_breaks_no_policy(page: Browser) -> None:
    assert page.complaints() == []
