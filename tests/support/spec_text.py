"""Specs from text, which no folder holds."""

from __future__ import annotations

from aclnn_cts.core.errors import UsageError
from aclnn_cts.speclang.build import Interface, build_spec
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.yaml_file import parse_yaml


def spec_from_text(text: str, *, stem: str) -> Spec:
    """Build a spec; UsageError with every message where it is wrong."""
    spec, problems = build_spec(parse_yaml(text, name="<text>"), stem=stem, interface=Interface())
    if spec is None or problems.messages:
        raise UsageError("\n".join(problems.sorted()))
    return spec
