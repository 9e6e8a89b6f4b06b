"""Predicates over a case: expressions of the spec language that hold of a call or do not.

They may read what a call's tensors hold as well, which no rule of a spec can: rules decide what a call may be before
its data are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Argument, Case, Tensor, replace_arguments
from aclnn_cts.core.dtypes import component, components
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.rounding import widen
from aclnn_cts.generate.layouts import FLOAT_LAYOUTS, storage_dtype
from aclnn_cts.speclang.expression import UNDEFINED, compile_node
from aclnn_cts.speclang.expression_parser import parse

Predicate: TypeAlias = Callable[[Case], bool]
CompilePredicate: TypeAlias = Callable[[str], Predicate]

MOST_ELEMENTS = 2**16
"""Elements of a tensor up to which its contents are looked at; those of a larger one are undefined."""


_ELEMENTS: Mapping[str, Callable[[NDArray[Any]], NDArray[np.bool_]]] = {
    "nan": np.isnan,
    "inf": np.isinf,
    "zero": lambda values: values == 0,
    "negative": lambda values: values < 0,
}
"""What `holds` can be asked for, beside `subnormal`, which depends on the dtype."""


class FilledTensor(Tensor, frozen=True, kw_only=True):
    """A tensor with what it holds, for the functions of expressions that read contents."""

    contents: Any
    """An array of the tensor's shape, in the dtype of its memory."""

    def holds(self, what: float | str) -> bool:
        """Whether any element is this number, or `nan`, `inf`, `zero`, `negative` or `subnormal`."""
        values = self._numbers()
        if what == "subnormal":
            layout = FLOAT_LAYOUTS.get(component(self.dtype))
            return layout is not None and bool(((values != 0) & (abs(values) < 2.0 ** (1 - layout.bias))).any())
        if not isinstance(what, str):
            return bool((values == what).any())
        if what not in _ELEMENTS:
            raise TypeError(what)
        return bool(_ELEMENTS[what](values).any())

    @property
    def highest(self) -> int | float:
        """The largest element that is not nan. Raises IndexError where there is none."""
        return self._extremes()[-1]

    @property
    def lowest(self) -> int | float:
        """The smallest element that is not nan. Raises IndexError where there is none."""
        return self._extremes()[0]

    @property
    def distinct(self) -> int:
        """How many different values it holds; nan counts as one."""
        return int(np.unique(self._numbers()).size)

    def _extremes(self) -> list[int | float]:
        values = self._numbers()
        values = values[~np.isnan(values)]
        return [values.min().item(), values.max().item()] if values.size else []

    def _numbers(self) -> NDArray[Any]:
        """The elements, those of a floating tensor in float64, of a complex one re and im.

        Raises TypeError for a dtype that has no numbers.
        """
        array = components(np.asarray(self.contents)).reshape(-1)
        if component(self.dtype) in FLOAT_LAYOUTS:
            return widen(array)
        if storage_dtype(self.dtype) != array.dtype:
            raise TypeError(self.dtype)
        return array.astype(np.int64) if array.dtype.kind == "b" else array


def with_contents(cases: Sequence[Case]) -> list[Mapping[str, Argument]]:
    """The arguments of cases, with the tensors that hold data and are small enough as `FilledTensor`."""
    from aclnn_cts.generate.recipes import many_arrays  # noqa: PLC0415 - few predicates read contents

    asked = [
        (case, [name for name, tensor in case.tensors() if tensor.data is not None and tensor.numel <= MOST_ELEMENTS])
        for case in cases
    ]
    return [
        case.arguments
        if isinstance(arrays, UsageError)
        else replace_arguments(case.arguments, _with_contents(case, arrays))
        for case, arrays in zip(cases, many_arrays(asked), strict=True)
    ]


def _with_contents(case: Case, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Argument]:
    return {name: _with(tensor, arrays[name]) for name, tensor in case.tensors() if name in arrays}


def _with(tensor: Tensor, array: NDArray[Any]) -> Tensor:
    return FilledTensor(**{name: getattr(tensor, name) for name in Tensor.__struct_fields__}, contents=array)


def compile_predicate(text: str) -> Predicate:
    """A predicate over a case's arguments; where the expression is undefined it does not hold."""
    return _Predicate(text)


class _Predicate:
    """A compiled predicate. It goes to another process as its text, since what it is compiled to cannot."""

    def __init__(self, text: str) -> None:
        node = parse(text)
        self._text = text
        self._compiled = compile_node(node)
        self._read = tuple(sorted(node.contents_read()))

    def __call__(self, case: Case) -> bool:
        try:
            return self._compiled({**case.arguments, **_filled(case, self._read)}, case.target) is True
        except UNDEFINED:
            return False

    def __reduce__(self) -> tuple[type[_Predicate], tuple[str]]:
        return _Predicate, (self._text,)


def _filled(case: Case, names: Sequence[str]) -> dict[str, Argument]:
    """Those of the named tensors whose contents can be read, with them."""
    if not names:
        return {}
    from aclnn_cts.generate.recipes import case_arrays  # noqa: PLC0415 - few predicates read contents

    tensors = ((name, case.tensor(name)) for name in names)
    small = [name for name, item in tensors if item is not None and item.numel <= MOST_ELEMENTS]
    try:
        return _with_contents(case, case_arrays(case, small)) if small else {}
    except UsageError:
        return {}
