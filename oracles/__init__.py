"""One module an operator: its mathematics in float64, its error terms, its laws.

May import `core` and `formula`. Start reading at `softmax_backward`; `registry` finds the oracle of an operator.
"""

from __future__ import annotations
