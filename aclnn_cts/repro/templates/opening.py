"""How every script begins after its imports: NumPy, its data, and an end where nothing can be said."""

import json
import sys

try:
    import numpy as np
except ImportError as error:
    print(f"{error}; it needs numpy: pip install numpy", file=sys.stderr)
    sys.exit(2)

PROGRAM = json.loads(r"""
@JSON@
""")


def unable(why):
    """The surroundings failed: nothing is known of the fault."""
    print(why, file=sys.stderr)
    sys.exit(2)
