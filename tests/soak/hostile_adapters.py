"""All that a hostile adapter does to its judge, each deed between ordinary calls, and what must come of it.

`run_hostile_adapters` does everything once, in a minute or two; `make test` takes the quick ones from here.
"""

from __future__ import annotations

import faulthandler
import re
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.env import variable_set
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.target import Target
from aclnn_cts.generate.buffers import CallBuffers, block_layout, prepare
from aclnn_cts.sandbox.limits import RunnerLimits
from aclnn_cts.sandbox.process import ProcessHost
from benchmarks.memory import forget_peak, peak
from tests.support.hostile_adapter import DECLARATIONS, LEAVES, OUTCOMES, TROUBLE

SUPPORT = Path(__file__).resolve().parents[1] / "support"
"""Where the adapter's module lies, for `sys.path`."""
ADAPTER = "hostile_adapter:Hostile"
LIMITS = RunnerLimits(call_seconds=4.0, memory_bytes=200 << 20)
_MOST_GROWTH = 100 << 20
"""Bytes that the judge may grow by at most in one batch."""
_HUNG_SECONDS = 120
"""After which a deed that the judge does not end ends the soak."""
_OUTPUTS = frozenset({"out"})
_RESIZE = frozenset({"shorten", "lengthen and seal", "beyond arena"})
"""After these more of the shared memory is mapped than ever before."""
_TOKEN = "ACLNN_CTS_HOSTILE_RUN"  # noqa: S105 - a mark by which what was left behind is found
_PIPE = "the runner broke the rules of its pipe: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """What a call does, and what must come of it."""

    do: str
    ended: str
    words: str = ""
    """A pattern that the outcome's message begins with."""
    quick: bool = False
    """It is part of `make test`."""
    alters_others: bool = False
    """It writes into the other calls' buffers, which nothing keeps it from."""


def _message(do: str, words: str, *, quick: bool = False) -> Deed:
    return Deed(do=do, ended=CallEnd.NOT_RUN, words=_PIPE + words, quick=quick)


def _memory(do: str, *, quick: bool = False) -> Deed:
    # Between two looks of the judge the kernel may be first.
    words = r"(\d+ bytes of resident memory.*|the kernel ended .* for its memory); the limit is 209715200"
    return Deed(do=do, ended=CallEnd.MEMORY_LIMIT, words=words, quick=quick)


def _unsent(do: str, words: str) -> Deed:
    return Deed(do=do, ended=CallEnd.NOT_RUN, words="the adapter's outcome cannot be sent: " + words, quick=True)


def _dies(do: str, *, quick: bool = False) -> Deed:
    return Deed(do=do, ended=CallEnd.SIGNAL, words="the runner died by SIGABRT", quick=quick)


def _vain(do: str, *, alters_others: bool = False) -> Deed:
    return Deed(do=do, ended=CallEnd.RETURNED, quick=True, alters_others=alters_others)


DEEDS = (
    _vain("shorten"),
    _vain("lengthen and seal"),
    _vain("scribble"),
    _vain("read standard input"),
    _vain("flood the log"),
    _vain("punch holes", alters_others=True),
    _vain("fill the arena", alters_others=True),
    _dies("scribble far and die", quick=True),
    _dies("scribble below and die"),
    _dies("scribble huge and die"),
    _dies("scribble an earlier call and die"),
    _dies("empty the log and die"),
    _message("flood", r"b'junkjunk.*' is in its pipe where a message must begin", quick=True),
    _message("junk", r"b'junkjunk.*' is in its pipe where a message must begin", quick=True),
    _message("a little junk", r"b'junk!.*' is in its pipe where a message must begin"),
    _message("announce 300 MB", "its message has 314572800 bytes; the limit is 1048576"),
    _message("announce 2^63", "its message has 9223372036854775808 bytes; the limit is 1048576"),
    _message("begin a message", "a message was begun and not finished within", quick=True),
    _message("nested", "its message cannot be read: Expected `object`, got `array`"),
    Deed(do="flood with messages", ended=CallEnd.RETURNED, alters_others=True),
    _memory("memfds", quick=True),
    _memory("shared map"),
    _memory("deleted file"),
    _memory("beyond arena"),
    _memory("child swallows", quick=True),
    Deed(do="close all", ended=CallEnd.EXIT),
    Deed(do="stop", ended=CallEnd.TIME_LIMIT, words="no answer within 4 s"),
    Deed(do="long message", ended=CallEnd.RETURNED, words="x{4000}$", quick=True),
    _unsent("fact without end", "it has 30000.. bytes; the limit is 1048576"),
    _message("unknown end", "`ended` is 'splendid'; expected one of device fault"),
    _message("nan seconds", r".*Expected `float` >= 0.0 - at `\$.seconds`"),
    _message("endless seconds", r".*Expected `float` < 1000000000.0 - at `\$.seconds`"),
    _message("seconds of text", r".*Expected `float`, got `str` - at `\$.seconds`"),
    _message("status beyond int32", r".*Expected `int` <= 2147483647 - at `\$.phase_one`"),
    _unsent("status beyond 64 bits", "OverflowError"),
    _message("endless fact", r"`facts\['grown'\]` is inf; expected a finite number"),
    _message("fact that is a list", r".*got `array` - at `\$.facts\[...\]`"),
    Deed(do="half a character", ended=CallEnd.RETURNED, words=r"\\ud800$", quick=True),
    Deed(do="daemon", ended=CallEnd.RETURNED, quick=True),
    Deed(do="daemon and exit", ended=CallEnd.EXIT, words="the runner exited with code 9"),
    Deed(do="hop", ended=CallEnd.RETURNED),
    Deed(do="stop the keeper", ended=CallEnd.EXIT),
    Deed(do="kill the keeper", ended=CallEnd.SIGNAL, quick=True),
)
"""Every deed of the adapter but its declarations."""


def mistakes_of(deed: Deed, host: ProcessHost, folder: Path) -> list[str]:
    """Do it between ordinary calls; what is not as it must be. Notes are put into the folder."""
    marker = folder / deed.do
    forget_peak()
    before = peak()
    calls = [_call(host, "double"), _call(host, deed.do, marker), _call(host, "double"), _call(host, "double")]
    outcomes = host.run(calls)
    found = []
    if len(outcomes) != len(calls):
        return [f"{deed.do}: {len(outcomes)} outcomes of {len(calls)} calls"]
    own, others = outcomes[1], [outcomes[0], *outcomes[2:]]
    if own.ended != deed.ended or not re.match(deed.words, own.message):
        found.append(f"it ended by {own.ended}: {own.message[:500]}")
    found += [f"another call ended by {it.ended}: {it.message[:500]}" for it in others if it.ended != CallEnd.RETURNED]
    if not deed.alters_others and not all(map(_doubled, [calls[0], *calls[2:]])):
        found.append("another call has wrong outputs")
    host.recycle()
    if (grown := peak() - before) > _MOST_GROWTH:
        found.append(f"the judge grew by {grown} bytes")
    if deed.do in LEAVES:
        if own.ended == CallEnd.RETURNED:
            host.refresh()
        found += [f"process {each} was left behind" for each in map(int, marker.read_text().split()) if _alive(each)]
    if deed.alters_others:
        # Answers that it forges in time are its answers; a new process of it has none of them.
        host.refresh()
    after = [_call(host, "double"), _call(host, "double", size=4_000_000 if deed.do in _RESIZE else 30)]
    if any(it.ended != CallEnd.RETURNED for it in host.run(after)) or not all(map(_doubled, after)):
        found.append("the next batch is not made as ever")
    host.recycle()
    return [f"{deed.do}: {each}" for each in found]


def open_mistakes(declares: str) -> list[str]:
    """Open an adapter with a declaration that is out of bounds; what is not as it must be."""
    word = f"{ADAPTER},declares={declares}"
    try:
        ProcessHost(word, target=Target(), limits=LIMITS, spare=False).close()
    except HarnessError as error:
        if re.match(f"--adapter {word}: .*{DECLARATIONS[declares][2]}", str(error)) and len(str(error)) < 600:
            return []
        return [f"declares {declares}: {str(error)[:500]}"]
    return [f"declares {declares}: it was opened"]


def run_hostile_adapters() -> list[str]:
    """Do everything once; a line for each thing that was not as it must be, none where all held."""
    known = {*TROUBLE, *LEAVES, *OUTCOMES}
    found = [f"{do}: nobody says what must come of it" for do in known ^ {deed.do for deed in DEEDS}]
    token = uuid.uuid4().hex
    with TemporaryDirectory(prefix="aclnn-cts-hostile-") as name:
        notes, temporary = Path(name, "notes"), Path(name, "temporary")
        notes.mkdir()
        temporary.mkdir()
        with variable_set(_TOKEN, token), variable_set("TMPDIR", str(temporary)), _importable():
            with ProcessHost(ADAPTER, target=Target(), limits=LIMITS) as host:
                for deed in DEEDS:
                    faulthandler.dump_traceback_later(_HUNG_SECONDS, exit=True)
                    found += mistakes_of(deed, host, notes)
            for declares in DECLARATIONS:
                faulthandler.dump_traceback_later(_HUNG_SECONDS, exit=True)
                found += open_mistakes(declares)
            faulthandler.cancel_dump_traceback_later()
        # Others on this machine have things in shared memory too: these are named like the adapter's.
        left = [*temporary.iterdir(), *Path("/dev/shm").glob("hostile-*")]  # noqa: S108 - looked at
    found += [f"left behind: {path}" for path in left]
    return found + [f"left behind: process {pid}" for pid in _with_variable(f"{_TOKEN}={token}".encode())]


@contextmanager
def _importable() -> Iterator[None]:
    sys.path.insert(0, str(SUPPORT))
    try:
        yield
    finally:
        sys.path.remove(str(SUPPORT))


def _call(host: ProcessHost, do: str, marker: Path | None = None, *, size: int = 3) -> Call:
    tensor = Tensor((size,), "FLOAT")
    case = Case("aclnnDouble", {"x": tensor, "out": tensor})
    block = host.memory(block_layout(case, _OUTPUTS).size)
    arrays = {"x": np.arange(size, dtype=np.float32)}
    buffers = prepare(case, outputs=_OUTPUTS, arrays=arrays, memory=block)
    call_mode: Mapping[str, str] = {"do": do} if marker is None else {"do": do, "marker": str(marker)}
    return Call(case, buffers, call_mode=call_mode)


def _doubled(call: Call) -> bool:
    buffers = call.buffers
    assert isinstance(buffers, CallBuffers)
    view = buffers.outputs["out"].view
    return bool((view == 2 * np.arange(view.size, dtype=np.float32)).all())


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _with_variable(setting: bytes) -> list[int]:
    """Processes that were started with this in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and setting in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found
