"""The values of one call against the document: `check` compares outputs, `expected` says what conforms."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.candidates.arrays import (
    BoundCall,
    ContentRules,
    array_json,
    as_array,
    bind,
    content_rules,
    evaluation,
    first_broken_rule,
    plain_json,
    with_channels_last,
)
from aclnn_cts.core.case import Case, Tensor, owner, real_view, with_arguments
from aclnn_cts.core.dtypes import DTYPES, acl_name, numpy_dtype
from aclnn_cts.core.errors import OracleError, UsageError
from aclnn_cts.core.expected import Float64
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.printable import alternatives_text, quote
from aclnn_cts.core.rounding import is_large, keep_freed_memory
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Result, RunVerdict, Verdict
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.execution.judging import Judge, Judges
from aclnn_cts.judgement.bound import bound, left_open
from aclnn_cts.speclang.editions import check_edition
from aclnn_cts.speclang.evaluate import Evaluation
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.names import parameter_names
from aclnn_cts.speclang.package import check_product, package_folder

_UNDEFINED = (ArithmeticError, IndexError, KeyError, TypeError, ValueError, OracleError)
"""What an oracle raises where the mathematics has no value for the arguments."""


_NOTHING_COMPARED = "nothing was compared: the call computes no element of any output"


class WorstElement(msgspec.Struct, frozen=True, kw_only=True):
    """The element with the largest error ratio."""

    output: str
    index: tuple[int, ...]
    got: float | str
    """A number, or `inf`, `-inf` or `nan`."""
    expected: float | str
    bound: float | str
    """The largest error that conforms, in units of the output."""
    error_ratio: float | str
    """Error over bound; above 1 is a fault."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the document says of the outputs of one call."""

    ok: bool
    """Whether the outputs conform. False also where nothing could be judged: see `verdict`."""
    verdict: str
    """`conforms`, `fails` or `inconclusive`."""
    operator: str
    reason: str = ""
    """One sentence: what is wrong, or why nothing was judged or compared; else empty."""
    fault: str = ""
    """The code of the fault (`docs/verdicts.md`); empty where there is none."""
    rule: str = ""
    """Id of the first rule that the inputs break; empty where they keep all."""
    clause: str = ""
    """Address of the sentence of the document that states that rule."""
    worst: WorstElement | None = None
    """None where no element was compared."""
    open_share: float = 0.0
    """Share of the output elements that the document leaves open: whatever they hold conforms."""

    def __bool__(self) -> bool:
        return self.ok

    def to_json(self) -> dict[str, Any]:
        """The check as plain JSON values (`check.schema.json`)."""
        return plain_json(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedArray:
    """What conforms of one output, element by element; a complex output has re and im in a last dimension."""

    value: Float64
    """The exact value in float64."""
    lower: Float64
    upper: Float64
    """What conforms lies in [lower, upper], ends included; where `value` is inf or nan, `value` alone conforms."""
    bound: Float64
    """No conforming output is farther from `value`."""
    open: NDArray[np.bool_]
    """Where the document leaves the element open."""
    overflow: NDArray[np.bool_]
    """Where an intermediate may overflow, so that inf and nan conform too."""


EXPECTED_PARTS = tuple(field.name for field in fields(ExpectedArray))
"""The arrays that say what conforms of one output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What conforms of the outputs of one call."""

    operator: str
    outputs: Mapping[str, ExpectedArray]

    def __getitem__(self, output: str) -> ExpectedArray:
        return self.outputs[output]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; the elements of small arrays alone."""
        return {
            "operator": self.operator,
            "outputs": {
                name: {key: array_json(getattr(item, key)) for key in EXPECTED_PARTS}
                for name, item in self.outputs.items()
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedDocument:
    """An operator's document, ready to judge calls."""

    spec: Spec
    judge: Judge
    target: Target
    names: Mapping[str, str]
    """C names of parameters by every name."""
    contents: ContentRules


def judged_document(op: str, product: str | None = None, edition: str | None = None) -> JudgedDocument:
    """The document of an operator by its C name or short name. Raises UsageError for an unknown one."""
    check_word(op, where="op")
    for where, word in (("product", product), ("edition", edition)):
        if word is not None:
            check_word(word, where=where)
    return _document(op, product, edition)


def check_word(value: object, *, where: str) -> None:
    """UsageError for a parameter that is no string."""
    if not isinstance(value, str):
        raise UsageError(f"{where}: {quote(value)}; expected a name, as a string")


@functools.cache
def _document(op: str, product: str | None, edition: str | None) -> JudgedDocument:
    check_edition(edition or "", (package_folder(),), where="edition")
    specs = shipped_specs(edition or "")
    spec = specs.find(op, where="op")
    if product is not None:
        check_product(product, where="product")
        if product not in spec.products:
            raise UsageError(
                f"product: {product} is not supported by {spec.operator}; expected {', '.join(spec.products)}"
            )
    target = Target(product=product or spec.usual_product)
    judge = Judges(has_statuses=False).of(spec)
    return JudgedDocument(
        spec=spec, judge=judge, target=target, names=parameter_names(spec), contents=content_rules(spec)
    )


@functools.cache
def shipped_specs(edition: str) -> Specs:
    """The shipped specs, read once."""
    return load_specs(edition=edition)


def check(
    op: str,
    inputs: Mapping[str, object],
    outputs: object,
    *,
    product: str | None = None,
    edition: str | None = None,
) -> CheckResult:
    """Compare the outputs of a call with what the operator's document promises; nothing is called or kept.

    - `op`: the C name (`aclnnSoftmaxBackward`) or the short name (`softmax_backward`).
    - `inputs`: by parameter name, arrays (NumPy, torch or DLPack) and attributes. `normalized_shape` stands for
      `normalizedShape`, and `weight` for `weightOptional`. What is missing is a null pointer.
    - `outputs`: by parameter name; one array, or a sequence in the order of the prototype, where the names are clear.
    - `product`, `edition`: which of the document's tables hold; default: the product that runs use, the spec's edition.

    Raises UsageError for a name or value that the C prototype does not take.
    """
    known = judged_document(op, product, edition)
    got = named_outputs(known, outputs)
    if any(is_large(array.size) for array in got.values()):
        keep_freed_memory()
    call, rules = _call(known, inputs, got)
    judge, case, operator = known.judge, call.case, known.spec.operator
    wrong = _wrong_outputs(known, call, got)
    if wrong is not None and not rules.broken:
        return wrong
    rule = clause = reason = ""
    if rules.broken:
        rule = rules.broken[0].id
        clause = next(iter(known.spec.clauses_of(rule)), "")
        reason = f"the inputs break the rule {first_broken_rule(known.spec, call, rules)}"
    verdict: Verdict | None = None
    if not rules.broken or (wrong is None and rules.has_values):
        performed = PerformedCall(case=case, outcome=Outcome(), arrays=call.inputs, got=got)
        try:
            verdict = judge.values(performed, allowed=rules.statuses)
        except _UNDEFINED as error:
            unknown = f"the mathematics gives no value for such arguments ({type(error).__name__}: {error})"
            reason = reason or unknown
    if verdict is None:
        if rules.broken:
            reason = f"{reason}; their outputs are not judged"
        return CheckResult(
            ok=False, verdict=RunVerdict.INCONCLUSIVE.value, operator=operator, reason=reason, rule=rule, clause=clause
        )
    found = _check(operator, verdict, rule=rule, clause=clause)
    # What is wrong with the outputs may be no more than this.
    return msgspec.structs.replace(found, reason=f"{reason}; {found.reason}") if reason and not found.ok else found


def _call(
    known: JudgedDocument, inputs: Mapping[str, object], outputs: Mapping[str, NDArray[Any]], *, asked_all: bool = False
) -> tuple[BoundCall, Evaluation]:
    """The call of these arrays, and what the rules say of it.

    It asks for the outputs that are given, and for those that no call may leave out; `asked_all`: for all.

    Arrays have no format. Channels come second, as frameworks have them; where a rule is then broken and none with
    channels last, they come last. Outputs have the dtypes that follow from the inputs; those given where no more rules
    are then broken.
    """
    call = bind(known.spec, inputs, outputs, names=known.names, target=known.target)
    if not asked_all:
        call = _asking_for(known.spec, call, outputs)
    rules = evaluation(known.spec, call, known.contents)
    if rules.broken:
        other = with_channels_last(known.spec, call)
        if other is not call:
            again = evaluation(known.spec, other, known.contents)
            if not again.broken:
                call, rules = other, again
    given = {
        name: dtype
        for name in known.spec.computed_outputs(call.case)
        if name in outputs and _differs(known, call.case, name, dtype := acl_name(outputs[name].dtype))
    }
    if given and DTYPES.keys() >= set(given.values()):
        adopted = _with_dtypes(call, given)
        again = evaluation(known.spec, adopted, known.contents)
        if set(_ids(again)) <= set(_ids(rules)):
            return adopted, again
    return call, rules


def _asking_for(spec: Spec, call: BoundCall, outputs: Collection[str]) -> BoundCall:
    """The call with null pointers for those outputs that are not given and may be left out."""
    given = set(map(owner, outputs))
    arguments = dict(call.case.arguments)
    for item in spec.parameters:
        if item.role == "output" and item.name not in given and item.may_be_left_out(arguments, call.case.target):
            arguments[item.name] = None
    if arguments == call.case.arguments:
        return call
    inferred = frozenset(name for name in call.inferred if arguments[name] is not None)
    return replace(call, case=msgspec.structs.replace(call.case, arguments=arguments), inferred=inferred)


def _differs(known: JudgedDocument, case: Case, name: str, dtype: str) -> bool:
    """Whether an output of this dtype may be meant where another follows; one that is an input too has its own."""
    tensor = case.tensor(name)
    return tensor is not None and tensor.dtype != dtype and owner(name) not in known.spec.inputs


def _with_dtypes(call: BoundCall, dtypes: Mapping[str, str]) -> BoundCall:
    changes = {
        name: msgspec.structs.replace(tensor, dtype=dtype)
        for name, dtype in dtypes.items()
        if (tensor := call.case.tensor(name)) is not None
    }
    return replace(call, case=with_arguments(call.case, changes))


def _ids(rules: Evaluation) -> list[str]:
    return [item.id for item in rules.broken]


def _check(operator: str, verdict: Verdict, *, rule: str, clause: str) -> CheckResult:
    passed, failed = verdict.result == Result.PASSED, verdict.result == Result.FAILED
    compared = any(item.elements for item in verdict.deviations)
    return CheckResult(
        ok=passed,
        verdict=RunVerdict.CONFORMS.value
        if passed
        else RunVerdict.FAILS.value
        if failed
        else RunVerdict.INCONCLUSIVE.value,
        operator=operator,
        reason=verdict.message if not passed else "" if compared else _NOTHING_COMPARED,
        fault=str(verdict.kind) if failed else "",
        rule=rule,
        clause=clause,
        worst=worst_element(verdict),
        open_share=open_share(verdict),
    )


def worst_element(verdict: Verdict) -> WorstElement | None:
    """The worst element of all outputs; None where none was compared."""
    compared = [item for item in verdict.deviations if item.elements]
    if not compared:
        return None
    worst = max(compared, key=lambda item: item.error_ratio)
    return WorstElement(
        output=worst.output,
        index=worst.cell,
        got=_number(worst.got),
        expected=_number(worst.expected),
        bound=_number(worst.bound),
        error_ratio=_number(worst.error_ratio),
    )


def _number(value: float | str) -> float | str:
    return value if isinstance(value, str) or np.isfinite(value) else str(float(value))


def open_share(verdict: Verdict) -> float:
    """Share of the elements of all outputs that are open; 0 without elements."""
    elements = sum(item.elements for item in verdict.deviations)
    return sum(item.open for item in verdict.deviations) / elements if elements else 0.0


def named_outputs(known: JudgedDocument, outputs: object) -> dict[str, NDArray[Any]]:
    """Outputs by C name, each tensor of a list by its own. Raises UsageError where they cannot be told apart."""
    spec = known.spec
    if not isinstance(outputs, Mapping):
        values = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        if len(values) > len(spec.outputs):
            raise UsageError(f"outputs: {len(values)} arrays; {spec.operator} writes {', '.join(spec.outputs)}")
        outputs = dict(zip(spec.outputs, values, strict=False))
    got: dict[str, NDArray[Any]] = {}
    words: dict[str, object] = {}
    for word, value in outputs.items():
        name = known.names.get(str(word), "")
        if name not in spec.outputs:
            raise UsageError(f"outputs: {quote(word)}: {spec.operator} writes {', '.join(spec.outputs)}")
        if name in words:
            raise UsageError(f"outputs: {words[name]} and {word} are one output; give one of them")
        words[name] = word
        if value is None:
            continue
        items = value if isinstance(value, (list, tuple)) and spec.parameter(name).kind == "tensor_list" else None
        try:
            if items is None:
                got[name] = as_array(value)
            else:
                got.update({f"{name}[{place}]": as_array(item) for place, item in enumerate(items)})
        except TypeError as error:
            raise UsageError(f"outputs: {name}: {error}") from None
    return got


def _wrong_outputs(known: JudgedDocument, call: BoundCall, got: Mapping[str, NDArray[Any]]) -> CheckResult | None:
    """The check of outputs that are missing, or have another shape or dtype than follows from the inputs."""
    for name in known.spec.computed_outputs(call.case):
        tensor = call.case.tensor(name)
        if tensor is None or owner(name) not in (*call.inferred, *known.spec.inputs):
            continue
        fault: Fault | None = None
        reason = ""
        if name not in got:
            fault, reason = Fault.UNWRITTEN, f"{name} is missing; the call computes it"
        elif got[name].shape != tensor.shape:
            fault, reason = Fault.SHAPE, f"{name} has the shape {list(got[name].shape)}, expected {list(tensor.shape)}"
        elif acl_name(got[name].dtype) != tensor.dtype:
            named = alternatives_text([f"{dtype} ({numpy_dtype(dtype)})" for dtype in _allowed(known, call, name)])
            fault, reason = Fault.DTYPE, f"{name} has the dtype {got[name].dtype}, expected {named}"
        if fault is not None:
            return CheckResult(
                ok=False, verdict=RunVerdict.FAILS.value, operator=known.spec.operator, reason=reason, fault=str(fault)
            )
    return None


def _allowed(known: JudgedDocument, call: BoundCall, name: str) -> list[str]:
    """The dtypes that an output may have beside these inputs, what follows from them first."""
    tensor, item = call.case.tensor(name), known.spec.parameter(owner(name))
    follows = [tensor.dtype] if tensor is not None else []
    others = [] if owner(name) in known.spec.inputs else known.spec.dtypes_of(item, call.case.product)
    broken = set(_ids(evaluation(known.spec, call, known.contents)))
    return follows + [
        dtype
        for dtype in others
        if dtype not in follows
        and set(_ids(evaluation(known.spec, _with_dtypes(call, {name: dtype}), known.contents))) <= broken
    ]


def expected(
    op: str, inputs: Mapping[str, object], *, product: str | None = None, edition: str | None = None
) -> Expected:
    """What conforms of the outputs of a call: value, ends, bound and open elements of each output.

    Takes operator, inputs, product and edition as `check` does. Raises UsageError for inputs that break a rule of the
    document, and for arguments for which the mathematics has no value.
    """
    known = judged_document(op, product, edition)
    call, rules = _call(known, inputs, {}, asked_all=True)
    if rules.broken and not rules.has_values:
        raise UsageError(f"inputs: they break the rule {first_broken_rule(known.spec, call, rules)}")
    return expected_of(known, call.case, call.inputs)


def expected_of(known: JudgedDocument, case: Case, inputs: Mapping[str, NDArray[Any]]) -> Expected:
    """The same of a call that is described already. Raises UsageError where the mathematics gives no value."""
    performed = PerformedCall(case=case, outcome=Outcome(), arrays=inputs)
    found: dict[str, ExpectedArray] = {}
    with np.errstate(all="ignore"):
        try:
            limits = known.judge.limits(performed)
        except _UNDEFINED as error:
            reason = f"{type(error).__name__}: {error}"
            raise UsageError(f"inputs: the mathematics gives no value for such arguments ({reason})") from None
        for name, item in limits.items():
            tensor = case.tensor(name)
            if not isinstance(tensor, Tensor):
                continue
            shape = real_view(tensor).shape
            value = np.broadcast_to(item.expected.value, shape)
            made = bound(item.expected, item.model, operands=item.operands)
            unsaid, overflow = left_open(value, item.expected, item.model, made)
            found[name] = ExpectedArray(
                value=np.array(value),
                lower=np.array(np.broadcast_to(made.ends.lower, shape)),
                upper=np.array(np.broadcast_to(made.ends.upper, shape)),
                bound=np.array(np.broadcast_to(np.asarray(made.ends.width, np.float64), shape)),
                open=unsaid,
                overflow=overflow,
            )
    return Expected(operator=known.spec.operator, outputs=found)
