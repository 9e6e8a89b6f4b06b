"""`python -m aclnn_cts` is the command `aclnn-cts`."""

from __future__ import annotations

import sys

from aclnn_cts.cli.streams import sound_process
from aclnn_cts.sandbox.interrupts import endings_are_interrupts, forget_interrupt, interrupts_held_back
from aclnn_cts.sandbox.limits import one_blas_thread

_INTERRUPTED = 130


def main() -> int:
    """The process: what ends it is put off for the tenths of a second of an import, in which Python may lose it."""
    sound_process()
    one_blas_thread()
    with endings_are_interrupts():
        try:
            with interrupts_held_back():
                from aclnn_cts.cli.main import main as command  # noqa: PLC0415 - as above
        except KeyboardInterrupt as error:
            sys.stderr.write(f"error: interrupted; {error}\n" if str(error) else "error: interrupted\n")
            forget_interrupt()
            return _INTERRUPTED
        return command()


if __name__ == "__main__":
    sys.exit(main())
