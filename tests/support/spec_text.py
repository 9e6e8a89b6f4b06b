"""Specs from text, which no folder holds."""

from __future__ import annotations

import functools

from aclnn_cts.core.errors import UsageError
from aclnn_cts.speclang.build import Interface, build_interface, build_spec
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.package import package_folder
from aclnn_cts.speclang.yaml_file import parse_yaml, read_yaml


@functools.cache
def interface() -> Interface:
    """What ships of the two phases."""
    built, problems = build_interface(read_yaml(package_folder() / "interface.yaml"))
    assert not problems.messages
    return built


def spec_from_text(text: str, *, stem: str) -> Spec:
    """Build a spec; UsageError with every message where it is wrong."""
    spec, problems = build_spec(parse_yaml(text, name="<text>"), stem=stem, interface=interface())
    if spec is None or problems.messages:
        raise UsageError("\n".join(problems.sorted()))
    return spec
