"""Pictures of a report for the README: `python -m docs.screenshot RUN [FOLDER]`, with Debian's chromium.

The report is made anew from the run; sections are shown as a browser 1,280 pixels wide shows them, in few colours.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from aclnn_cts.cli.main import main as call

_SHOTS = (
    ("report-cover", "en", "cover", 720),
    ("report-precision", "en", "precision", 800),
    ("report-traceability-zh", "zh", "traceability", 800),
)
"""Name, language, section and height in pixels."""
_WIDTH = 1280
_COLOURS = 128


def _driver() -> Any:  # noqa: ANN401 - selenium's driver
    from selenium import webdriver  # noqa: PLC0415 - after the words are checked
    from selenium.webdriver.chrome.options import Options  # noqa: PLC0415 - as above
    from selenium.webdriver.chrome.service import Service  # noqa: PLC0415 - as above

    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.binary_location = shutil.which("chromium") or ""
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def main(arguments: Sequence[str]) -> int:
    """Write the pictures."""
    if not 1 <= len(arguments) <= 2 or not shutil.which("chromium") or not shutil.which("chromedriver"):
        print(f"{__doc__}\nIt takes one run directory, and chromium and chromedriver installed.", file=sys.stderr)
        return 2
    folder = Path(arguments[1] if len(arguments) == 2 else "docs/images")
    with tempfile.TemporaryDirectory() as name:
        page = Path(name) / "report.html"
        if code := call(["report", arguments[0], "-o", str(page)]):
            return code
        driver = _driver()
        try:
            driver.get(page.as_uri())
            for file, language, section, height in _SHOTS:
                driver.set_window_size(_WIDTH, height + 143)  # what headless chromium takes for a frame
                driver.find_element("css selector", f"button[data-language={language}]").click()
                driver.execute_script(f"document.getElementById('{section}').scrollIntoView({{behavior: 'instant'}})")
                driver.execute_async_script("setTimeout(arguments[0], 300)")
                shot = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
                path = folder / f"{file}.png"
                shot.quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
                print(f"{path}: {path.stat().st_size} bytes")
        finally:
            driver.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
