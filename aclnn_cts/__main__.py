"""`python -m aclnn_cts` is the command `aclnn-cts`."""

from __future__ import annotations

import sys

from aclnn_cts.cli.main import main

sys.exit(main())
