"""Screenshots of what people open in a browser: `python -m tools.screenshot RUN... -o FOLDER [--site SITE]`.

Both editions of the first run's report and the matrix of all runs in both languages, and pages of a built site: each at
two widths, light and dark. A page that is wider than its window is named, and the exit code is 1. The README's pictures
go to `docs/images`, in few colours, with `--readme`; they show RUN as it is given, so that a relative path names no
folder of the machine. It needs Debian's chromium.
"""

from __future__ import annotations

import argparse
import base64
import io
import itertools
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from aclnn_cts.cli.main import main as command
from aclnn_cts.reports.html import html_bytes
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.signing import signing_bytes
from aclnn_cts.reports.text import LANGUAGES, Language

_EDITIONS = {"signing": signing_bytes, "explorer": html_bytes}
_WIDTHS = (400, 1280)
"""Pixels: a telephone, and a window on a desk."""
_SCHEMES = ("light", "dark")
_SECTIONS = ("cover", "numbers", "traceability", "precision", "statuses", "coverage", "findings", "waivers", "evidence")
"""Of the explorer."""
_SITE = (
    "index",
    "tutorials/first-bug",
    "bounds",
    "corners",
    "isolation",
    "verdicts",
    "commands",
    "schemas",
    "wrong-kernels",
    "operators/index",
    "zh/index",
    "zh/tutorials/first-bug",
)
"""Of the site: of each kind of page one or two."""
_HEIGHT, _TALLEST = 1000, 3000
"""Pixels of a window, and of a picture."""
_IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
_README: dict[str, tuple[str, Language, str, int]] = {
    "signing": ("signing", "en", "", 900),
    "explorer-start": ("explorer", "en", "cover", 760),
    "explorer-clauses-zh": ("explorer", "zh", "traceability", 760),
}
"""Picture: edition, language, section and height in pixels."""
_COLOURS = 128


@dataclass(frozen=True, slots=True)
class _Page:
    """What is taken: a file, and the sections of it that have a picture each."""

    name: str
    path: Path
    sections: Sequence[str] = ("",)


class _Browser:
    """Chromium, which takes pictures of a page."""

    def __init__(self) -> None:
        from selenium import webdriver  # noqa: PLC0415 - after the words are checked
        from selenium.webdriver.chrome.options import Options  # noqa: PLC0415 - as above
        from selenium.webdriver.chrome.service import Service  # noqa: PLC0415 - as above

        options = Options()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
            options.add_argument(argument)
        options.binary_location = shutil.which("chromium") or ""
        self.driver: Any = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))

    def show(self, page: Path, *, width: int, height: int, scheme: str) -> None:
        """Open a page in a window of that size."""
        driver = self.driver
        self._resize(width, height)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        if not page.is_file():
            raise SystemExit(f"{page}: no such page; build it with `make site`, and correct the list of pages")
        # Anew, since some pages choose their colours once.
        driver.get(page.as_uri())

    def window(self, section: str) -> Image.Image:
        """What the window shows from a section on, or from the top of the page."""
        self.driver.execute_script(
            "const part = arguments[0] && document.getElementById(arguments[0]);"
            "part ? part.scrollIntoView({behavior: 'instant'}) : scrollTo(0, 0)",
            section,
        )
        self._wait()
        return _image(self.driver.get_screenshot_as_base64())

    def whole(self, section: str) -> Image.Image:
        """A section, or the page, from its top on, in a window as tall; its first part and its first card are open."""
        self.driver.execute_script(_OPEN, section)
        self._wait()
        width, height = self.driver.execute_script(_SIZE, section)
        self._resize(width, min(int(height), _TALLEST))
        return self.window(section)

    def overflow(self) -> int:
        """Pixels that the page is wider than its window."""
        found: int = self.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
        return max(found, 0)

    def _resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def _wait(self) -> None:
        """For what is unpacked and moved."""
        self.driver.execute_async_script("setTimeout(arguments[0], 150)")


_OPEN = """
const part = document.getElementById(arguments[0]);
for (const chosen of [".fold", ".finding details.more"]) (part?.querySelector(chosen) ?? {}).open = true;
"""
_SIZE = """
const part = document.getElementById(arguments[0]) ?? document.documentElement;
return [innerWidth, Math.ceil(part.getBoundingClientRect().height)];
"""


def _image(data: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")


def _reports(run: str, folder: Path) -> dict[tuple[str, Language], Path]:
    """Both editions in both languages, of one count of the records."""
    report = acceptance([Path(run)])
    made = {}
    for (edition, write), language in itertools.product(_EDITIONS.items(), LANGUAGES):
        page = made[edition, language] = folder / f"{edition}.{language}.html"
        page.write_bytes(write(report, None, language))
    return made


def _matrices(runs: Sequence[str], folder: Path) -> Iterator[_Page]:
    """The matrix in both languages."""
    for language in LANGUAGES:
        target = folder / f"matrix.{language}"
        if command(["matrix", *runs, "-o", str(target), "--lang", language]):
            raise SystemExit(f"matrix {' '.join(runs)}: it was not written")
        yield _Page(f"matrix-{language}", target / "index.html")


def _save(shot: Image.Image, path: Path, **how: Any) -> None:  # noqa: ANN401 - Pillow's own
    shot.save(path, **how)
    print(f"{path}: {path.stat().st_size} bytes", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures; 1 where a page is wider than its window."""
    parser = argparse.ArgumentParser(prog="tools.screenshot")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run directories; the first one is reported")
    parser.add_argument("-o", dest="folder", type=Path, default=Path("build/shots"), help="build/shots")
    parser.add_argument("--site", type=Path, help="the folder of a built site")
    parser.add_argument("--readme", action="store_true", help="also write the pictures of docs/images")
    options = parser.parse_args(arguments)
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        parser.error("chromium and chromedriver are not installed: apt-get install chromium-driver")
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        reports = _reports(options.runs[0], Path(name))
        pages = [
            _Page(f"{edition}-{language}", path, _SECTIONS if edition == "explorer" else ("",))
            for (edition, language), path in reports.items()
        ]
        pages += _matrices(options.runs, Path(name))
        if options.site:
            pages += [
                _Page(f"site-{page.replace('/', '-')}", options.site.resolve() / f"{page}.html") for page in _SITE
            ]
        browser = _Browser()
        try:
            if options.readme:
                _take_readme(browser, reports)
            wide = [line for page in pages for line in _take(browser, page, options.folder)]
        finally:
            browser.driver.quit()
    print(*wide, sep="\n")
    return 1 if wide else 0


def _take_readme(browser: _Browser, reports: dict[tuple[str, Language], Path]) -> None:
    for file, (edition, language, section, height) in _README.items():
        browser.show(reports[edition, language], width=1280, height=height, scheme="light")
        shot = browser.window(section).quantize(_COLOURS, dither=Image.Dither.NONE)
        _save(shot, _IMAGES / f"{file}.png", optimize=True)


def _take(browser: _Browser, page: _Page, folder: Path) -> Iterator[str]:
    """Take a page, section by section; what is wider than its window is said."""
    for width, scheme in itertools.product(_WIDTHS, _SCHEMES):
        browser.show(page.path, width=width, height=_HEIGHT, scheme=scheme)
        for section in page.sections:
            file = "-".join(filter(None, (page.name, section, str(width), scheme)))
            # Squeezing them would take most of the time.
            _save(browser.whole(section), folder / f"{file}.png", compress_level=1)
        if over := browser.overflow():
            yield f"{page.name}: {over} pixels wider than {width}"


if __name__ == "__main__":
    sys.exit(main())
