"""pytest modules, one a check and none an operator.

May import `plugin`. Start reading at `test_values`.
"""

from __future__ import annotations
