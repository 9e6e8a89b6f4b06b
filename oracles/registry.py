"""Finds an operator's oracle by the stem of its spec file: among ours, or beside a user's own spec.

An oracle is a module with a formula: a function `backward(f, …)`, or `FORMULA`, which states more than that
(`formula.definition.Operator`). Loading one from a folder runs its Python, which is why only what computes values (run,
fuzz, replay) may ask for one.
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
from aclnn_cts.core.expected import Block, BlockOracle, Condense, OracleInput
from aclnn_cts.formula.definition import Operator
from aclnn_cts.formula.expectation import FormulaOracle

_PACKAGE = aclnn_cts.oracles.__name__
_FORMULA = "FORMULA"
_BACKWARD = "backward"

SecondOracle: TypeAlias = Callable[[OracleInput, str, tuple[int, ...]], "Fraction | None"]
"""One element of an output of a call in 50 digits; None where that takes too long."""

Benchmark: TypeAlias = Callable[[OracleInput], Mapping[str, NDArray[np.float32]]]
"""The outputs of a call as plain FLOAT arithmetic gives them, before they are rounded to their dtypes.

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

    Raises UsageError where there is none, more than one, or one that cannot be imported or states no formula.
    """
    places = available(folders)
    if stem not in places:
        looked = ", ".join(str(folder / f"{stem}.py") for folder in folders)
        raise UsageError(
            f"{stem}: no oracle for this operator{did_you_mean(stem, places)}; known are {', '.join(places)}; write "
            f"{looked or f'{stem}.py beside {stem}.yaml'} with a function {_BACKWARD}(f, …)"
        )
    place = places[stem]
    module = importlib.import_module(place) if place == f"{_PACKAGE}.{stem}" else _from_file(Path(place))
    if _formula_of(module) is None:
        raise UsageError(
            f"{place}: the oracle states no formula; expected a function {_BACKWARD}(f, …) or "
            f"{_FORMULA} = Operator.of({_BACKWARD}, …); define one of them"
        )
    return module


def load_formula(stem: str, *, folders: Sequence[Path] = ()) -> Operator:
    """What the operator's module states. Raises as `load_module` does."""
    return cast("Operator", _formula_of(load_module(stem, folders=folders)))


def _formula_of(module: ModuleType) -> Operator | None:
    stated = getattr(module, _FORMULA, None)
    if isinstance(stated, Operator):
        return stated
    backward = getattr(module, _BACKWARD, None)
    return Operator.of(backward) if callable(backward) else None


def load(stem: str, *, folders: Sequence[Path] = ()) -> FormulaOracle:
    """The oracle of an operator: what its formula says. Raises as `load_module` does."""
    return FormulaOracle(load_formula(stem, folders=folders))


def load_condense(stem: str, *, folders: Sequence[Path] = ()) -> Condense | None:
    """What makes a smaller call of one with many rows of 0: the module's `condensed`. Raises as `load_module` does."""
    return cast("Condense | None", getattr(load_module(stem, folders=folders), "condensed", None))


def load_blocks(stem: str, *, elementwise: bool, folders: Sequence[Path] = ()) -> BlockOracle | None:
    """The operator's oracle of large calls: slices of its formula; None where they know of each other.

    Those are some elements of an elementwise operator, and else some places of the axes that the module's `LEADING`
    names. Raises as `load`.
    """
    leading: int | str | None = getattr(load_module(stem, folders=folders), "LEADING", None)
    if leading is None and not elementwise:
        return None
    return functools.partial(_in_slices, load(stem, folders=folders), leading)


def _in_slices(oracle: FormulaOracle, leading: int | str | None, call: OracleInput) -> Iterator[Block | None]:
    from aclnn_cts.formula.slices import SlicedOracle  # noqa: PLC0415 - few calls are so large

    return SlicedOracle(oracle, leading)(call)


def load_second(stem: str, *, folders: Sequence[Path] = ()) -> SecondOracle:
    """The operator's second oracle: its formula in 50 digits. Raises as `load_module`."""
    from aclnn_cts.formula.graph import exact_element  # noqa: PLC0415 - it imports mpmath, and failures alone need it

    return functools.partial(exact_element, load_formula(stem, folders=folders))


def load_benchmark(stem: str, *, folders: Sequence[Path] = ()) -> Benchmark:
    """The operator's second implementation: its formula in FLOAT. Raises as `load_module`."""
    return functools.partial(_formula_benchmark, load_formula(stem, folders=folders))


def _formula_benchmark(formula: Operator, call: OracleInput) -> Mapping[str, NDArray[np.float32]]:
    from aclnn_cts.formula.evaluation import benchmark  # noqa: PLC0415 - tolerances alone need it

    return benchmark(formula, call)


def load_forms(stem: str, *, folders: Sequence[Path] = ()) -> tuple[FormulaOracle, ...]:
    """Further forms of the formula, which explain failures; none where each of them conforms."""
    operator = load_formula(stem, folders=folders)
    count = 1 if operator.any_form else len(operator.forms)
    return tuple(FormulaOracle(operator, place) for place in range(1, count))


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
        raise UsageError(f"{file}: not a Python file; expected a module with a function {_BACKWARD}(f, …)")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their own module up while it is being imported.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UsageError(
            f"{file}: the oracle cannot be imported ({type(error).__name__}: {error}); expected a module with a "
            f"function {_BACKWARD}(f, …); correct the file"
        ) from error
    return module
