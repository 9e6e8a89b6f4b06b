"""A headless browser that opens a page without a network, where chromium is installed."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aclnn_cts.store.scratch import scratch_folder

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")

MISSING = "" if CHROMIUM and DRIVER else "chromium and chromedriver are not installed (apt-get install chromium-driver)"

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # CI runs as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--window-size=1280,1000",
)

SCHEMES = ("light", "dark")
"""Colours that a reader may prefer."""


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A driver whose log keeps what the page asked for and what its script said."""
    from selenium import webdriver  # noqa: PLC0415 - half a second that only tests in a browser pay
    from selenium.webdriver.chrome.options import Options  # noqa: PLC0415 - as above
    from selenium.webdriver.chrome.service import Service  # noqa: PLC0415 - as above

    # A killed run's profile goes with the next one.
    with scratch_folder(Path(tempfile.gettempdir())) as profile:
        options = Options()
        for argument in (*_ARGUMENTS, f"--user-data-dir={profile}"):
            options.add_argument(argument)
        options.binary_location = CHROMIUM or ""
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver: Any = webdriver.Chrome(options=options, service=Service(DRIVER))
        try:
            driver.set_page_load_timeout(120)
            driver.set_script_timeout(120)
            # The browser's own start page asks for things; what is in the log after this, a page of ours asked for.
            driver.get("about:blank")
            driver.get_log("performance")
            yield driver
        finally:
            driver.quit()


def shown(driver: Any, selector: str) -> list[Any]:
    """The elements of a selector that can be seen."""
    found: list[Any] = driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility());", selector
    )
    return found


OPENED: set[str] = set()
"""The pages that `open_page` was asked for."""


def open_page(driver: Any, path: Path) -> None:
    OPENED.add(path.resolve().as_uri())
    driver.get(path.resolve().as_uri())


@contextlib.contextmanager
def schemed(driver: Any, scheme: str) -> Iterator[None]:
    """While the reader prefers one of `SCHEMES`."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        yield
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@contextlib.contextmanager
def wide(driver: Any, width: int) -> Iterator[None]:
    """While the window has so many pixels from left to right, which may be more or fewer than a real one can have."""
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
