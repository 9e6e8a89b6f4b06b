"""`make soak`: a thousand calls that crash, abort, exit, hang, swallow memory or break the device; none costs another.

Prints how often each was injected, what was lost and how long it took until the rest of a batch went on; exit code 1
where a result is lost or wrong, a descriptor is left open, or the rest of any batch waits for more than three seconds.
That last is a matter of the clock: give it a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

from tests.soak.injection import VARIABLE, injected_device, mistakes, orders, plan, run

RESENT_SECONDS = 3.0
"""Within which the rest of a batch is with a fresh runner."""


def main() -> int:
    """Inject, count, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--injections", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    words = parser.parse_args()
    os.environ[VARIABLE] = orders()
    planned = plan(words.injections, seed=words.seed, slow=4)
    began = time.monotonic()
    descriptors = _descriptors()
    host = injected_device()
    with host:
        records = run(planned, host)
        gaps = host.clock.gaps
    left = _descriptors() - descriptors
    found = mistakes(planned, records)
    counts = Counter(item.deed.what for item in planned if item.deed is not None)
    for what, count in counts.items():
        sys.stdout.write(f"{count:5} {what}\n")
    late = sum(gap > RESENT_SECONDS for gap in gaps)
    sys.stdout.write(
        f"{words.injections} injections among {len(planned)} calls in {time.monotonic() - began:.0f} s; "
        f"{len(records)} records, {len(found)} of them wrong; {left} descriptors left open\n"
        f"the rest of a batch went on after {statistics.median(gaps):.2f} s (median), {max(gaps):.2f} s (longest); "
        f"{late} of {len(gaps)} after more than {RESENT_SECONDS:g} s\n"
    )
    for mistake in found:
        sys.stdout.write(f"{mistake}\n")
    return 1 if found or left or late else 0


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


if __name__ == "__main__":
    sys.exit(main())
