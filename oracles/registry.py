"""Finds an operator's oracle by the stem of its spec file: among ours, or beside a user's own spec.

An oracle is a module with a formula: a function `backward(f, …)`, or `FORMULA`, which states more than that
(`formula.definition.Operator`). It may have a function `expected(call: OracleInput) -> Expected` of its own, which then
judges in the formula's place. Loading one from a folder runs its
Python, which is why only what computes values (run, fuzz, replay) may ask for one.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

import aclnn_cts.oracles
from aclnn_cts.core.errors import UsageError, did_you_mean
from aclnn_cts.core.expected import (
    Block,
    BlockOracle,
    Condense,
    EachOracle,
    Expected,
    ExpectedOutput,
    Float64,
    Oracle,
    OracleInput,
)
from aclnn_cts.formula.definition import Operator, output_shapes
from aclnn_cts.formula.expectation import FormulaOracle
from aclnn_cts.formula.mistakes import Results, is_signal, mistake, raised

_PACKAGE = aclnn_cts.oracles.__name__
_ENTRY = "expected"
_FORMULA = "FORMULA"
_BACKWARD = "backward"

SecondOracle: TypeAlias = Callable[[OracleInput, str, tuple[int, ...]], "Fraction | None"]
"""`exact(call, output, index)`: one element in rational arithmetic, or in 50 digits; None where that takes too long."""

Values: TypeAlias = Callable[[OracleInput], Mapping[str, Float64]]
"""`values(call)`: outputs in float64, before they are rounded to their dtypes."""

Benchmark: TypeAlias = Callable[[OracleInput], Mapping[str, NDArray[np.float32]]]
"""`benchmark(call)`: outputs as plain FLOAT arithmetic gives them, before they are rounded to their dtypes.

An output that is left out has no second implementation in that call.
"""


def available(folders: Sequence[Path] = ()) -> Mapping[str, str]:
    """The stems that have an oracle, in alphabetical order, each with the place of its module.

    A place is a module's import name for ours, and a file for one that lies beside a spec `<stem>.yaml` in one of
    the user's `folders`; a Python file without such a spec is none of our business. Nothing is imported.

    Raises UsageError where two places claim one stem.
    """
    places = {stem: f"{_PACKAGE}.{stem}" for stem in _own_stems()}
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        for spec in sorted(folder.glob("*.yaml")):
            file = spec.with_suffix(".py")
            if not file.is_file():
                continue
            if spec.stem in places:
                raise UsageError(
                    f"{file}: the operator {spec.stem!r} has an oracle already ({places[spec.stem]}); "
                    f"expected one a stem; rename {spec.name} and {file.name}"
                )
            places[spec.stem] = str(file)
    return dict(sorted(places.items()))


def load_module(stem: str, *, folders: Sequence[Path] = ()) -> ModuleType:
    """The oracle's module, imported once in a process.

    Raises UsageError where there is none, more than one, or one that cannot be imported or has no `expected`.
    """
    places = available(folders)
    if stem not in places:
        looked = ", ".join(str(folder / f"{stem}.py") for folder in folders)
        raise UsageError(
            f"{stem}: no oracle for this operator{did_you_mean(stem, places)}; known are {', '.join(places)}; write "
            f"{looked or f'{stem}.py beside {stem}.yaml'} with a function expected(call: OracleInput) -> Expected"
        )
    place = places[stem]
    module = importlib.import_module(place) if place == f"{_PACKAGE}.{stem}" else _from_file(Path(place))
    if not callable(getattr(module, _ENTRY, None)) and _formula_of(module) is None:
        raise UsageError(
            f"{place}: neither a formula nor an oracle; expected a function {_BACKWARD}(f, …) or "
            f"{_ENTRY}(call: OracleInput) -> Expected; define one of them"
        )
    return module


def load_formula(stem: str, *, folders: Sequence[Path] = ()) -> Operator | None:
    """The operator's formula, where its module states one. Raises as `load_module` does."""
    return _formula_of(load_module(stem, folders=folders))


def _formula_of(module: ModuleType) -> Operator | None:
    stated = getattr(module, _FORMULA, None)
    if isinstance(stated, Operator):
        return stated
    backward = getattr(module, _BACKWARD, None)
    return Operator.of(backward) if callable(backward) else None


def load(stem: str, *, folders: Sequence[Path] = ()) -> Oracle:
    """The oracle of an operator: its module's `expected`, or what its formula says. Raises as `load_module` does."""
    module = load_module(stem, folders=folders)
    own = getattr(module, _ENTRY, None)
    formula = _formula_of(module)
    if own is None and formula is not None:
        return FormulaOracle(formula)
    stated = cast("Oracle", own)
    return stated if stem in _own_stems() else _guarded(stated)


@functools.cache
def _guarded(expected: Oracle) -> Oracle:
    return functools.partial(_stated_by, expected)


def _stated_by(expected: Oracle, call: OracleInput) -> Expected:
    """What a module's own function expects of a call; OracleError for a mistake of that function."""
    try:
        found: object = expected(call)
    except (Exception, SystemExit) as error:
        if is_signal(error):
            raise
        raise mistake(expected, raised(error), call.arguments, error) from error
    if not isinstance(found, Mapping) or not all(isinstance(value, ExpectedOutput) for value in found.values()):
        raise mistake(expected, "returned no dict of ExpectedOutput by output", call.arguments)
    for name, shape in output_shapes(call).items():
        if name in found and np.shape(found[name].value) != shape:
            what = f"{name} has the shape {list(np.shape(found[name].value))}, expected {list(shape)}"
            raise mistake(expected, what, call.arguments)
        unknown = found[name].open if name in found else None
        if unknown is not None and (unknown.dtype != bool or unknown.shape != shape):
            what = f"{name}: open is {unknown.dtype.name} {list(unknown.shape)}, expected bool {list(shape)}"
            raise mistake(expected, what, call.arguments)
    return Results(found, function=expected, arguments=call.arguments)


def load_values(stem: str, *, folders: Sequence[Path] = ()) -> Values:
    """The operator's values alone: its module's `values`, else its formula's, else those of `expected`.

    Raises as `load_module` does.
    """
    module = load_module(stem, folders=folders)
    own, formula = getattr(module, "values", None), _formula_of(module)
    if own is not None:
        return cast("Values", own)
    if formula is not None:
        return FormulaOracle(formula).values
    oracle = load(stem, folders=folders)
    return lambda call: {name: output.value for name, output in oracle(call).items()}


def load_each(stem: str, *, folders: Sequence[Path] = ()) -> EachOracle | None:
    """The operator's oracle of several calls: its module's `expected_each`, where it has one. Raises as `load`."""
    return cast("EachOracle | None", getattr(load_module(stem, folders=folders), "expected_each", None))


def load_condense(stem: str, *, folders: Sequence[Path] = ()) -> Condense | None:
    """What makes a smaller call of one with many rows of 0: the module's `condensed`. Raises as `load_module` does."""
    return cast("Condense | None", getattr(load_module(stem, folders=folders), "condensed", None))


def load_blocks(stem: str, *, elementwise: bool, folders: Sequence[Path] = ()) -> BlockOracle | None:
    """The operator's oracle of large calls: its module's `expected_blocks`, else its formula's slices.

    Those are some elements of an elementwise operator, and else some places of the axes that the module's `LEADING`
    names. Raises as `load`.
    """
    module = load_module(stem, folders=folders)
    own = getattr(module, "expected_blocks", None)
    leading: int | str | None = getattr(module, "LEADING", None)
    formula = _formula_of(module)
    if own is not None or formula is None or hasattr(module, _ENTRY) or (leading is None and not elementwise):
        return cast("BlockOracle | None", own)
    return functools.partial(_in_slices, FormulaOracle(formula), leading)


def _in_slices(oracle: FormulaOracle, leading: int | str | None, call: OracleInput) -> Iterator[Block | None]:
    from aclnn_cts.formula.slices import SlicedOracle  # noqa: PLC0415 - few calls are so large

    return SlicedOracle(oracle, leading)(call)


def load_second(stem: str, *, folders: Sequence[Path] = ()) -> SecondOracle | None:
    """The operator's second oracle: its module's `exact`, else its formula in 50 digits. Raises as `load_module`."""
    module = load_module(stem, folders=folders)
    own, formula = getattr(module, "exact", None), _formula_of(module)
    if own is not None or formula is None:
        return cast("SecondOracle | None", own)
    from aclnn_cts.formula.graph import exact_element  # noqa: PLC0415 - it imports mpmath, and failures alone need it

    return functools.partial(exact_element, formula)


def load_benchmark(stem: str, *, folders: Sequence[Path] = ()) -> Benchmark | None:
    """The operator's second implementation: its module's `benchmark`, else its formula. Raises as `load_module`."""
    module = load_module(stem, folders=folders)
    own, formula = getattr(module, "benchmark", None), _formula_of(module)
    if own is not None or formula is None:
        return cast("Benchmark | None", own)
    return functools.partial(_formula_benchmark, formula)


def _formula_benchmark(formula: Operator, call: OracleInput) -> Mapping[str, NDArray[np.float32]]:
    from aclnn_cts.formula.evaluation import benchmark  # noqa: PLC0415 - tolerances alone need it

    return benchmark(formula, call)


def load_forms(stem: str, *, folders: Sequence[Path] = ()) -> tuple[FormulaOracle, ...]:
    """Further forms of the formula that judges, which explain failures; none where `expected` judges."""
    oracle = load(stem, folders=folders)
    if not isinstance(oracle, FormulaOracle):
        return ()
    return tuple(FormulaOracle(oracle.operator, place) for place in range(1, len(oracle.operator.forms)))


@functools.cache
def _own_stems() -> tuple[str, ...]:
    """Ours, which stay as they are while a process runs."""
    own = (module.name for module in pkgutil.iter_modules(aclnn_cts.oracles.__path__))
    return tuple(name for name in own if not name.startswith("_") and name != "registry")


def _from_file(file: Path) -> ModuleType:
    """Import a file under a name made of its path, so that equal stems in two runs' folders never meet."""
    name = f"{_PACKAGE}._user_{hashlib.sha256(str(file).encode()).hexdigest()[:16]}_{file.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file}: not a Python file; expected a module with a function {_ENTRY!r}")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their own module up while it is being imported.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UsageError(
            f"{file}: the oracle cannot be imported ({type(error).__name__}: {error}); expected a module with a "
            f"function {_ENTRY!r}; correct the file"
        ) from error
    return module
