"""`spec corners` and `cases --kind corner`."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.cli.conftest import Called


def test_calls_name_their_corners_and_the_command_lists_them(call: Callable[..., Called]) -> None:
    first = json.loads(call("cases", "softmax_backward", "--kind", "corner", "-n", "1").out)
    assert any(corner.startswith("regime: ") for corner in first["origin"]["corners"])
    listed = json.loads(call("spec", "corners", "nll_loss_backward", "--product", "atlas-a2", "--json").out)
    factors = {item["factor"]: item["corners"] for item in listed["factors"]}
    assert all(item["calls"] for item in factors["ignoreIndex"])
    assert {item["refused"] for item in factors["reduction"] if "refused" in item} == {"reduction.range"}
    assert listed["visited"] == sum(item["calls"] > 0 for items in factors.values() for item in items)
    text = call("spec", "corners", "nll_loss_backward", "--product", "atlas-a2").out
    assert "refused by reduction.range: 3, 4 to 15" in " ".join(text.split())
