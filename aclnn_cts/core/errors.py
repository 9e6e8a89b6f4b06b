"""The two ways in which a command ends without a verdict."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST_WORD = 100
"""Characters of a word that is compared: the time grows with their square."""


class UsageError(Exception):
    """The command line or an input file is wrong; nothing was run (exit code 2).

    The message names the place (file and path inside it, or the command-line word), the value, what was
    expected and what to do.
    """


class OracleError(UsageError):
    """The file of an oracle is wrong: what it gives for a call, or that it gives nothing."""


class HarnessError(Exception):
    """The harness or its surroundings failed: no library, no device, a full disk (exit code 3)."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The advice `; did you mean 'x'?` where a known word is close to `word`, else an empty string."""
    if len(word) > _LONGEST_WORD:
        return ""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
