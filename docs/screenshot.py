"""Screenshots of both editions of a report: `python -m docs.screenshot RUN [FOLDER]`, with Debian's chromium.

Every page is taken in both languages, three widths, light and dark, into FOLDER (`build/shots`); the README's pictures
go to `docs/images`, in few colours.
"""

from __future__ import annotations

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
_WIDTHS = (360, 1280, 1920)
_SCHEMES = ("light", "dark")
_SECTIONS = ("cover", "numbers", "traceability", "precision", "statuses", "coverage", "findings", "waivers", "evidence")
"""Of the explorer."""
_HEIGHT = 1000
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

    def take(self, page: Path, *, section: str, width: int, height: int, scheme: str) -> Image.Image:
        """The section, or the top of the page, as a window of that size shows it."""
        driver = self.driver
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        if driver.current_url.partition("#")[0] != page.as_uri():
            driver.get(page.as_uri())
        driver.execute_script(
            "const part = arguments[0] && document.getElementById(arguments[0]);"
            "part ? part.scrollIntoView({behavior: 'instant'}) : scrollTo(0, 0)",
            section,
        )
        driver.execute_async_script("setTimeout(arguments[0], 150)")
        return Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")


def _pages(run: str, folder: Path) -> dict[tuple[str, Language], Path]:
    """Both editions in both languages, of one count of the records."""
    report = acceptance([Path(run)])
    made = {}
    for (edition, write), language in itertools.product(_EDITIONS.items(), LANGUAGES):
        page = made[edition, language] = folder / f"{edition}.{language}.html"
        page.write_bytes(write(report, None, language))
    return made


def _save(shot: Image.Image, path: Path) -> None:
    shot.quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size} bytes")


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
                page = pages[edition, language]
                shot = browser.take(page, section=section, width=1280, height=height, scheme="light")
                _save(shot, Path("docs/images", f"{file}.png"))
            for (edition, language), page in pages.items():
                for section in _SECTIONS if edition == "explorer" else ("", "waivers", "findings", "signoff"):
                    for width, scheme in itertools.product(_WIDTHS, _SCHEMES):
                        shot = browser.take(page, section=section, width=width, height=_HEIGHT, scheme=scheme)
                        what = section or "top"
                        _save(shot, folder / f"{edition}-{what}-{language}-{width}-{scheme}.png")
        finally:
            browser.driver.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
