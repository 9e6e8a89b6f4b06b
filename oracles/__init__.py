"""One module an operator: its mathematics in float64, its error terms, its laws."""

from __future__ import annotations
