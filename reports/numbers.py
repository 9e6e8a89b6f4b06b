"""Numbers as a person reads them, the same in both languages."""

from __future__ import annotations

from aclnn_cts.core.printable import number_text

__all__ = [
    "bytes_text",
    "count_text",
    "headroom_text",
    "percent_text",
    "seconds_text",
    "share_text",
    "short_count_text",
]


def count_text(value: int) -> str:
    """A count with thin groups of thousands: `12 345`."""
    return f"{value:,}".replace(",", "\u202f")


def short_count_text(value: int) -> str:
    """A count in four characters at most, for a cell of a picture: `812`, `14k`, `3.1M`."""
    for limit, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= limit:
            return f"{value / limit:.1f}{unit}" if value < 10 * limit else f"{value // limit}{unit}"
    return str(value)


def percent_text(part: int, whole: int) -> str:
    """A share: `69.2%`; `100%` and `0%` only where it is exact, a dash where there is no whole."""
    if not whole:
        return "—"
    if part in (0, whole):
        return "0%" if not part else "100%"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f}%"


def share_text(value: float | str) -> str:
    """A share of a bound, or the headroom left of it: the same, without words for infinity."""
    text = number_text(value)
    return {"inf": "∞", "-inf": "-∞"}.get(text, text)


def headroom_text(value: float | str) -> str:
    """The headroom left of a limit; far beyond the limit, that it is far beyond."""
    return "< -999" if value == "-inf" or (isinstance(value, float) and value < -999.0) else share_text(value)


def seconds_text(value: float | None) -> str:
    """A duration: `3.2 s`, `4 min 05 s`, `2 h 10 min`; a dash where it is not known."""
    if value is None:
        return "—"
    if value < 60:
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def bytes_text(value: int) -> str:
    """A size: `812`, `14.2 KiB`, `3.1 MiB`."""
    size = float(value)
    for unit in ("", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.1f} {unit}" if unit else f"{value}"
        size /= 1024
    raise AssertionError
