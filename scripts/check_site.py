"""Checks the website in out/site: `python scripts/check_site.py [--browser]`. Exit code 1 if something is wrong.

Links: each leads to a page or file, and to a place on it, that is there; nothing that a page loads comes from another host.
Images: each has an alternative text, which is no file's name. Ids: none stands on a page twice.
With `--browser` a headless Chromium opens each page at 1,280 and 400 pixels, light and dark: no page is wider than the
window, no script fails, nothing is asked of another host, and text and background have the scheme's colours.
"""

from __future__ import annotations

import functools
import re
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from headless_browser import Browser, browser, chromium  # noqa: E402

WIDTHS = (1280, 400)
LOADS = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
LINKS = {("a", "href"), ("use", "href"), ("use", "xlink:href")}
LABELS = ("aria-labelledby", "aria-describedby")
WITHIN = re.compile(r"url\(['\"]?(#[^'\")]+)")
"""A reference to a place on the page in an attribute's value, as SVG has them."""
FILE = re.compile(r"\S*\.(?:svg|png|jpe?g|gif|webp|avif)", re.IGNORECASE)
"""An alternative text that tells nothing."""
BRIGHTNESS = """(() => {
  const of = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number).reduce((a, b) => a + b, 0) / 765;
  const text = of(getComputedStyle(document.querySelector('article')).color);
  let at = document.querySelector('article');
  while (at && /, 0\\)|transparent/.test(getComputedStyle(at).backgroundColor)) at = at.parentElement;
  return [text, of(getComputedStyle(at || document.body).backgroundColor)];
})()"""
"""Of the text and of what is behind it, 0 to 1."""


class Page(HTMLParser):
    """ids, names : the places that links may lead to, and how often each id stands there. loads : what is loaded with the page.
    links : what is linked, by pictures within themselves too. images : source and alternative text of each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: Counter[str] = Counter()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.images: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "img":
            self.images.append((given.get("src", ""), given.get("alt", "").strip()))
        for name, value in given.items():
            if name == "id":
                self.ids[value] += 1
            elif name == "name":
                self.names.add(value)
            elif (tag, name) in LINKS:
                self.links.append(value)
            elif (tag, name) in LOADS:
                self.loads.append(value)
            elif name in LABELS:
                self.links += (f"#{one}" for one in value.split())
            self.links += WITHIN.findall(value)

    def has(self, place: str) -> bool:
        return place in self.ids or place in self.names


def pages_of(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def unclear(site: Path) -> Iterator[str]:
    """Images of a folder of pages that say nothing to who does not see them, and ids that stand on a page twice."""
    for path, page in pages_of(site).items():
        where = path.relative_to(site)
        for source, text in page.images:
            if not text:
                yield f"{where} shows {source} without an alternative text"
            elif text in (source, unquote(source)) or FILE.fullmatch(text):
                yield f"{where} shows {source} with a file's name as the alternative text, {text}"
        for name, times in page.ids.items():
            if times > 1:
                yield f"{where} has the id {name} {times} times"


def broken(site: Path) -> Iterator[str]:
    """What is wrong with the links of a folder of pages."""
    pages = pages_of(site)
    if site / "index.html" not in pages:
        yield f"{site} has no index.html"
    for path, page in pages.items():
        where = path.relative_to(site)
        for link in page.loads:
            if urlsplit(link).scheme not in ("", "data") or link.startswith("//"):
                yield f"{where} loads {link}"
        for link in dict.fromkeys((*page.links, *page.loads)):
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            target, place = urldefrag(link)
            file = (path.parent / unquote(urlsplit(target).path)).resolve() if target else path
            if not file.is_file() or not file.is_relative_to(site):
                yield f"{where} links to {link}, which is not there"
            elif place and file in pages and not pages[file].has(unquote(place)):
                yield f"{where} links to {link}: the page has no such place"
    for path in sorted(site.rglob("*.css")):
        for link in re.findall(r"(?:@import|url\()\s*[\"']?((?:https?:)?//[^\"')]+)", path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)} loads {link}"


def looks(page: Browser, where: str, width: int, is_dark: bool) -> Iterator[str]:
    """What is wrong with the page that is open."""
    scheme = f"{where}, {width} pixels, {'dark' if is_dark else 'light'}"
    most = page.value("document.documentElement.scrollWidth")
    if most > width:
        yield f"{scheme}: {most} pixels wide"
    text, behind = page.value(BRIGHTNESS)
    if not (text > 0.6 and behind < 0.2 if is_dark else text < 0.4 and behind > 0.8):
        yield f"{scheme}: the text's brightness is {text:.2f} on {behind:.2f}"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def seen(site: Path) -> Iterator[str]:
    """What is wrong with the pages in a browser."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, browser(Path(profile)) as page:
        for path in sorted(site.rglob("*.html")):
            where = path.relative_to(site).as_posix()
            page.events.clear()
            page.open(f"http://127.0.0.1:{server.server_port}/{where}")
            page.wait(f"document.readyState === 'complete' && location.pathname === '/{where}'")
            for width in WIDTHS:
                for is_dark in (False, True):
                    page.size(width, 900, is_dark)
                    yield from looks(page, where, width, is_dark)
            yield from (f"{where}: {said}" for said in page.complaints())
    server.shutdown()


def main(options: list[str]) -> int:
    site = ROOT / "out" / "site"
    found = list(broken(site))
    print(f"links: {len(list(site.rglob('*.html')))} pages, {len(found)} broken")
    wrong = list(unclear(site))
    print(f"images and ids: {len(wrong)} complaints")
    found += wrong
    if "--browser" in options and chromium() is None:
        print("browser: skipped, there is no Chromium")
    elif "--browser" in options:
        wrong = list(seen(site))
        print(f"browser: {len(wrong)} complaints")
        found += wrong
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
