"""Screenshots of both editions of a report: `python -m tools.screenshot RUN [FOLDER]`, with Debian's chromium.

Every page is taken in both languages, three widths, light and dark, into FOLDER (`build/shots`): the signing edition as
a whole, the explorer section by section, one part and one card open. The README's pictures go to `docs/images`, in few
colours; they show RUN as it is given, so that a relative path names no folder of the machine.
"""

from __future__ import annotations

import base64
import io
import itertools
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from aclnn_cts.reports.html import html_bytes
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.signing import signing_bytes
from aclnn_cts.reports.text import LANGUAGES, Language

_EDITIONS = {"signing": signing_bytes, "explorer": html_bytes}
_WIDTHS = (360, 1280, 3840)
_SCHEMES = ("light", "dark")
_SECTIONS = ("cover", "numbers", "traceability", "precision", "statuses", "coverage", "findings", "waivers", "evidence")
"""Of the explorer."""
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
        if driver.current_url.partition("#")[0] != page.as_uri():
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


def _pages(run: str, folder: Path) -> dict[tuple[str, Language], Path]:
    """Both editions in both languages, of one count of the records."""
    report = acceptance([Path(run)])
    made = {}
    for (edition, write), language in itertools.product(_EDITIONS.items(), LANGUAGES):
        page = made[edition, language] = folder / f"{edition}.{language}.html"
        page.write_bytes(write(report, None, language))
    return made


def _save(shot: Image.Image, path: Path, **how: Any) -> None:  # noqa: ANN401 - Pillow's own
    shot.save(path, **how)
    print(f"{path}: {path.stat().st_size} bytes", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Write the pictures."""
    if not 1 <= len(arguments) <= 2 or not shutil.which("chromium") or not shutil.which("chromedriver"):
        print(f"{__doc__}\nIt takes one run directory, and chromium and chromedriver installed.", file=sys.stderr)
        return 2
    folder = Path(arguments[1] if len(arguments) == 2 else "build/shots")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        pages = _pages(arguments[0], Path(name))
        browser = _Browser()
        try:
            for file, (edition, language, section, height) in _README.items():
                browser.show(pages[edition, language], width=1280, height=height, scheme="light")
                shot = browser.window(section).quantize(_COLOURS, dither=Image.Dither.NONE)
                _save(shot, _IMAGES / f"{file}.png", optimize=True)
            for (edition, language), page in pages.items():
                for width, scheme in itertools.product(_WIDTHS, _SCHEMES):
                    browser.show(page, width=width, height=_HEIGHT, scheme=scheme)
                    for section in _SECTIONS if edition == "explorer" else ("",):
                        file = "-".join(filter(None, (edition, section, language, str(width), scheme)))
                        # Squeezing them would take most of the time.
                        _save(browser.whole(section), folder / f"{file}.png", compress_level=1)
        finally:
            browser.driver.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
