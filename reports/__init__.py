"""Consumers of records: they show what was judged and never judge."""

from __future__ import annotations
