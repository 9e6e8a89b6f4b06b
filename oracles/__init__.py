"""One module an operator: its mathematics in float64 and its error terms.

May import `core` and `formula`. Start reading at `softmax_backward`; `registry` finds the oracle of an operator.
"""

from __future__ import annotations
