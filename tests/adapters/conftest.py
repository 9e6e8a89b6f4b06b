from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from aclnn_cts.adapters.protocol import Session
from aclnn_cts.adapters.registry import load, parse_adapter_word
from aclnn_cts.core.target import Target


@pytest.fixture(scope="module")
def sessions() -> Iterator[Mapping[str, Session]]:
    opened = {way: load(parse_adapter_word(f"torch:outputs={way}")).open(Target(), {}) for way in ("direct", "copy")}
    yield opened
    for session in reversed(opened.values()):
        session.close()
