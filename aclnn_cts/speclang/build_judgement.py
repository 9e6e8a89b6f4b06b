"""Whether what an operator lists can be judged: dtypes with arithmetic, compute models that apply to something."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aclnn_cts.core.dtypes import DTYPES, JUDGED_INPUTS, JUDGED_OUTPUTS
from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.model import Parameter
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import PRECISION_SECTIONS, OperatorModel
from aclnn_cts.speclang.yaml_file import YamlPath


def check_arithmetic(model: OperatorModel, problems: Problems, parameters: Sequence[Parameter]) -> None:
    """A dtype that valid calls are made of needs arithmetic in the judge: it could not compare a single value."""
    for item in parameters:
        if not item.holds_tensors:
            continue
        judged = JUDGED_OUTPUTS if item.is_output else JUDGED_INPUTS
        for path, dtype in _dtypes(model, item, parameters):
            if dtype in DTYPES and dtype not in judged:
                problems.add(
                    path,
                    f"{item.name}: the judge has no arithmetic for {dtype}; expected any of "
                    f"{', '.join(name for name in DTYPES if name in judged)} for an {item.role}; leave it out of what "
                    "valid calls draw from",
                )


def _dtypes(model: OperatorModel, item: Parameter, parameters: Sequence[Parameter]) -> Iterator[tuple[YamlPath, str]]:
    """The dtypes that valid calls give a tensor, and where each stands in the file."""
    number = parameters.index(item)
    earlier = {other.name: other for other in parameters[:number]}
    if item.dtype_as is not None:
        followed = earlier.get(item.dtype_as)
        for _, dtype in _dtypes(model, followed, parameters) if followed is not None else ():
            yield ("parameters", number, "dtype"), dtype
        return
    given = model.parameters[number].dtypes
    for product in model.products:
        for place, dtype in enumerate(item.dtypes.get(product, ())):
            if isinstance(given, str):
                yield ("tables", given, product, place), dtype
            else:
                inner = (product,) if isinstance(given, dict) else ()
                yield ("parameters", number, "dtypes", *inner, place), dtype
    rows = model.rows or {}
    for product in model.products:
        for place, row in enumerate(rows.get(product, ())):
            for name, dtype in zip(rows.get("parameters", ()), row, strict=False):
                if name == item.name:
                    yield ("rows", product, place), dtype


def check_precision(model: OperatorModel, problems: Problems, parameters: Sequence[Parameter]) -> None:
    """A compute model has to say something, and of a call that there is."""
    outputs = [item.name for item in parameters if item.is_output]
    operands = {
        operand
        for by_dtype in (model.modes.operand if model.modes is not None else {}).values()
        for row in by_dtype.values()
        for operand in row
        if operand is not None
    }
    for number, entry in enumerate(model.precision or ()):
        path = ("precision", number)
        problems.add_if(
            entry.operator is not None,
            (*path, "operator"),
            f"operator: {shown(entry.operator)}; a spec file has models of its own operator alone, leave it out",
        )
        problems.add_if(
            all(getattr(entry, name) is None for name in PRECISION_SECTIONS),
            path,
            f"the entry says nothing; add one of {', '.join(PRECISION_SECTIONS)}",
        )
        chosen = [item for item in parameters if item.name in (entry.outputs or outputs)]
        dtypes = {dtype for item in chosen for _, dtype in _dtypes(model, item, parameters)}
        _check_selector(entry.outputs, outputs, (*path, "outputs"), problems, "output")
        _check_selector(entry.products, model.products, (*path, "products"), problems, "product of the operator")
        _check_selector(entry.dtypes, sorted(dtypes), (*path, "dtypes"), problems, "dtype of these outputs")
        _check_selector(entry.operands, sorted(operands), (*path, "operands"), problems, "operand format of `modes`")


def _check_selector(
    given: Sequence[str] | None, known: Sequence[str], path: YamlPath, problems: Problems, what: str
) -> None:
    if given is None:
        return
    if not given or not known:
        why = f"there is no {what}" if given else "an empty list matches nothing"
        problems.add(path, f"{path[-1]}: {list(given)}; {why}, leave it out")
        return
    problems.all_known(given, known, path, what, numbered=True)
