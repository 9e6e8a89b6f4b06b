"""Outputs of many elements against what conforms, block by block: what is known of one block takes little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Block, ExpectedOutput
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.rounding import blocks
from aclnn_cts.judgement.bound import margins
from aclnn_cts.judgement.comparison import (
    ComparedOutput,
    OutputComparison,
    Pending,
    compare_carefully,
    settle_exact,
    settle_within,
)
from aclnn_cts.judgement.figures import index_of
from aclnn_cts.judgement.model import ComputeModel
from aclnn_cts.judgement.operands import OperandFacts


def compare_blocks(
    got: Mapping[str, NDArray[Any]],
    models: Mapping[str, ComputeModel],
    ask: Callable[[], Iterable[Block | None]],
    *,
    ordinary: bool,
) -> tuple[dict[str, OutputComparison], dict[str, ComputeModel]] | None:
    """What `compare_all` says of outputs, from what is expected of one block after another.

    With it the models, which name the functions that a bound rests on. A block says of its consecutive elements of all
    outputs, flat, what the whole says of them, and blocks come in order. None where one of them is None, and with
    `ordinary` where an element is at fault, inf, nan or open.
    """
    mixed: set[str] = set()
    """Outputs of which some blocks are exact and others are not."""
    while True:
        blockwise = {
            name: _Blockwise(name, array, models[name], careful=not ordinary, exactly=False if name in mixed else None)
            for name, array in got.items()
        }
        with np.errstate(all="ignore"):
            for block in ask():
                if block is None:
                    return None
                unsettled = _unsettled(block, blockwise)
                if unsettled and ordinary:
                    return None
                if unsettled:
                    break
            else:
                merged = {name: output.merged() for name, output in blockwise.items()}
                return merged, {
                    name: models[name].with_functions(output.functions) for name, output in blockwise.items()
                }
        mixed |= unsettled


def _unsettled(block: Block, blockwise: Mapping[str, _Blockwise]) -> set[str]:
    """The outputs of which a look at one more block settles nothing."""
    place, outputs, careful = block
    left = {
        name for name, output in outputs.items() if not blockwise[name].look_at(place, output, is_all=careful is None)
    }
    if not left or careful is None:
        return left
    known = careful()
    return {name for name in left if not blockwise[name].look_at(place, known[name])}


def compare_in_blocks(item: ComparedOutput) -> OutputComparison | None:
    """What `compare_all` says of an output, where all its elements are ordinary; else None."""
    if item.operands is not None and item.operands.span is not None:
        return None
    expected = _flat(item.expected, item.got.shape)
    blockwise = _Blockwise(item.output, item.got, item.model, item.operands)
    if all(blockwise.look_at(place, _cut(expected, place)) for place in blocks(item.got.size)):
        return blockwise.merged()
    return None


class _Blockwise:
    """One output of many elements, looked at block by block: as long as these are ordinary, or `careful` all of them.

    What is exact of a block alone is held to margins of 0, which it has where the output is looked at as a whole.
    """

    __slots__ = ("_careful", "_exactly", "_found", "_got", "_model", "_operands", "_output", "_shape", "functions")

    def __init__(
        self,
        output: str,
        got: NDArray[Any],
        model: ComputeModel,
        operands: OperandFacts | None = None,
        *,
        careful: bool = False,
        exactly: bool | None = None,
    ) -> None:
        self._output, self._shape, self._got = output, got.shape, got.reshape(-1)
        self._model, self._operands, self._careful = model, operands, careful
        self._exactly = exactly
        """Whether all blocks so far are exact; None: nothing is known yet."""
        self._found: list[tuple[int, OutputComparison]] = []
        self.functions: tuple[str, ...] = ()
        """Those that the bound of the last block rests on."""

    def look_at(self, place: slice, expected: ExpectedOutput, *, is_all: bool = True) -> bool:
        """Look at one more block: whether that settled it, in the same way as those before.

        `is_all`: what is expected says all that is known of elements that are not ordinary.
        """
        model, self.functions = self._model, expected.functions
        expected = _flat(expected, np.shape(expected.value))
        part = ComparedOutput(
            output=self._output, got=self._got[place], expected=expected, model=model, operands=self._operands
        )
        known = margins(expected, model, operands=self._operands)
        exact = known.below is None and model.through is None and not model.output_truncates
        if self._exactly is None:
            self._exactly = exact
        if self._exactly and not exact:
            return False  # the blocks before alone are exact, and were held to more than the whole is
        if not self._exactly and known.below is None:
            known = known._replace(below=0.0, above=0.0)
        entry = Pending(part, known)
        if not self._exactly:
            settle_within([entry])
        elif expected.open is None:
            settle_exact([entry])
        if entry.found is None and self._careful and is_all:
            entry.found = msgspec.structs.replace(compare_carefully(part, known), elements=None)
        if entry.found is None:
            return False
        self._found.append((place.start, entry.found))
        return True

    def merged(self) -> OutputComparison:
        """What all blocks together come to: the first of the worst elements, and the counts of all."""
        start, worst = max(self._found, key=lambda entry: entry[1].deviation.error_ratio)
        deviations = [found.deviation for _, found in self._found]
        # A fault that no arithmetic explains says more than one that coarser arithmetic would.
        faulty = [found for _, found in self._found if found.kind]
        told = [found for found in faulty if found.kind != Fault.MODEL] or faulty
        size, ignored = self._got.size, sum(deviation.open for deviation in deviations)
        deviation = msgspec.structs.replace(
            worst.deviation,
            index=index_of(start + worst.deviation.index[0], self._shape),
            beyond=sum(deviation.beyond for deviation in deviations),
            elements=size,
            histogram=tuple(map(sum, zip(*(deviation.histogram for deviation in deviations), strict=True))),
            open=ignored,
        )
        kind = max(told, key=lambda found: found.deviation.error_ratio).kind if told else ""
        return OutputComparison(deviation=deviation, kind=kind, judged=size - ignored)


def _flat(expected: ExpectedOutput, shape: tuple[int, ...]) -> ExpectedOutput:
    """The same with arrays of one dimension; those of one number for all elements stay as they are."""

    def flat(array: Any) -> Any:  # noqa: ANN401 - an array or None or a number
        if not isinstance(array, np.ndarray) or not array.shape:
            return array
        return (array if array.shape == shape else np.broadcast_to(array, shape)).reshape(-1)

    return _each_array(expected, flat)


def _cut(expected: ExpectedOutput, place: slice) -> ExpectedOutput:
    """The elements of a block of what `_flat` gives."""
    return _each_array(expected, lambda array: array[place] if isinstance(array, np.ndarray) and array.shape else array)


def _each_array(expected: ExpectedOutput, change: Callable[[Any], Any]) -> ExpectedOutput:
    return msgspec.structs.replace(
        expected,
        value=change(expected.value),
        partial=change(expected.partial),
        open=change(expected.open),
        error=change(expected.error),
        exact=change(expected.exact),
        summands=change(expected.summands),
    )
