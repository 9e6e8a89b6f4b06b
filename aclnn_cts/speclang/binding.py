"""Whether the arguments of a case fit the C prototype: names, kinds and C types. What the document says comes after."""

from __future__ import annotations

from aclnn_cts.core.case import POINTERS, Argument, Case, Tensor, argument_kind, tensors_in
from aclnn_cts.core.case_json import check_int64
from aclnn_cts.core.errors import UsageError, nearest
from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.kinds_number import C_RANGES
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Parameter, Spec
from aclnn_cts.speclang.package import check_product


def bind_case(specs: Specs, case: Case, *, where: str) -> Spec:
    """The spec of a case's operator, after checking operator, product and arguments; UsageError says what is wrong."""
    known = list(specs)
    if case.operator not in specs:
        raise UsageError(
            f"{where}: $.operator: {shown(case.operator)} is not known; `aclnn-cts ops` lists the operators"
            f"{nearest(case.operator, known)}"
        )
    spec = specs[case.operator]
    check_product(case.product, where=f"{where}: $.product")
    check_prototype(spec, case, where=where)
    return spec


def check_prototype(spec: Spec, case: Case, *, where: str) -> None:
    """UsageError where the arguments do not fit the prototype or its C types."""
    names = [item.name for item in spec.parameters]
    for name in case.arguments:
        if name not in names:
            raise UsageError(
                f"{where}: $.arguments: unknown argument {shown(name)}; {spec.operator} takes {', '.join(names)}"
                f"{nearest(name, names)}"
            )
    for item in spec.parameters:
        if item.name not in case.arguments:
            raise UsageError(
                f"{where}: $.arguments.{item.name}: missing; {spec.operator} takes {', '.join(names)} (null for a "
                "null pointer)"
            )
        _check_argument(item, case.arguments[item.name], where=f"{where}: $.arguments.{item.name}")


def _check_argument(item: Parameter, value: Argument, *, where: str) -> None:
    if value is None:
        if item.kind in POINTERS:
            return
        raise UsageError(f"{where}: null; {item.type} is no pointer, expected {{{shown(item.kind)}: ...}}")
    kind = argument_kind(value)
    if kind == "int" and item.kind == "double":
        raise UsageError(f"{where}: int; expected {{'double': ...}} for the C type double")
    if kind != item.kind:
        raise UsageError(f"{where}: {kind}; expected {item.kind} for the C type {item.type}")
    if item.kind == "int" and isinstance(value, int):
        low, high = C_RANGES[item.c_type]
        if not low <= value <= high:
            raise UsageError(f"{where}: {shown(value)}; expected {item.type}, in [{low}, {high}]")
    if isinstance(value, tuple):
        check_int64(value, where=where)
    for tensor in tensors_in(value):
        _check_tensor(item, tensor, where=where)


def _check_tensor(item: Parameter, tensor: Tensor, *, where: str) -> None:
    if tensor.data is not None and not item.is_input:
        raise UsageError(f"{where}: data; {item.name} is an output alone, expected none")
    for sizes in (tensor.shape, tensor.strides or (), tensor.storage_shape or (), (tensor.offset,)):
        check_int64(sizes, where=where)
