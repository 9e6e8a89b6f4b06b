"""Names the plugin for a checkout. An installed package is tested with `pytest -p aclnn_cts.plugin` instead."""

from __future__ import annotations

pytest_plugins = ["aclnn_cts.plugin"]
