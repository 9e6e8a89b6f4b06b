"""Python's cyclic collector in a process that judges many small cases."""

from __future__ import annotations

import gc

__all__ = ["keep_for_good"]


def keep_for_good() -> None:
    """Take what lives by now (modules, specs, an open implementation) out of the collector's sight.

    Each case leaves hundreds of containers, and the collector would walk through all older ones again and again: a
    tenth of a worker's time, more where torch is loaded. Call it in a process of ours once what it works with is
    open: what is part of a dead cycle by then stays for the process's life, as nothing is collected before.

    What is left is looked through after every two hundred thousand new containers instead of every seven hundred: a
    batch's die with it without the collector, and a pass would find those of the chunk under way still in use.
    """
    gc.freeze()
    gc.set_threshold(200_000)
