"""pytest modules, one a promise and none an operator."""

from __future__ import annotations
