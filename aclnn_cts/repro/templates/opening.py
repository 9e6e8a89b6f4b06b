"""How every script begins after its imports: NumPy, its data, and an end where nothing can be said."""

import base64
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


def decoded(text):
    """Bytes: pieces of base64, each as often as the number behind its asterisk says."""
    pieces = (piece.partition("*") for piece in text.split())
    return b"".join(base64.b64decode(unit) * int(times or 1) for unit, _, times in pieces)


def unable(why):
    """The surroundings failed: nothing is known of the fault."""
    print(why, file=sys.stderr)
    sys.exit(2)
