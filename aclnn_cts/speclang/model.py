"""`Spec`: one operator, its rules and statements, as the packages after this one see it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from aclnn_cts.core.case import Argument, Case, TensorList
from aclnn_cts.core.dtypes import promoted_dtype
from aclnn_cts.core.target import DEFAULT_PRODUCT, Target
from aclnn_cts.speclang.evaluator import Evaluator
from aclnn_cts.speclang.expression import FUNCTIONS, UNDEFINED
from aclnn_cts.speclang.kinds import CaseChange, Test, Words
from aclnn_cts.speclang.shape import ShapeExpression
from aclnn_cts.speclang.spec_claims import NotTestable, SpecClaim


@dataclass(frozen=True, slots=True)
class Rule(ABC):
    """A kind of constraint, which can be evaluated, broken on purpose and described.

    `speclang.build_constraints.KINDS` lists the kinds. Evaluation reads the arguments of a call alone.
    """

    @property
    @abstractmethod
    def test(self) -> Test:
        """What is evaluated."""

    @abstractmethod
    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        """Changes that may break it in a case that holds all, nearest first."""

    @property
    def operands(self) -> tuple[str, ...]:
        """The tensors that it says promote to one dtype."""
        return ()

    def limits(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        """Changes that put a case on the rule's limits and one step to both sides; nothing for a rule without one."""
        return iter(())

    @abstractmethod
    def describe(self, product: str) -> Words:
        """The rule in both languages, as it is stated for a product."""


@dataclass(frozen=True, slots=True)
class ParameterRule(Rule):
    """A rule on one parameter."""

    of: str

    @property
    def wants_given(self) -> bool:
        """Whether it is that the pointer is not null."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """One documented rule of an operator."""

    id: str
    kind: str
    rule: Rule
    clauses: tuple[str, ...]
    strength: str
    statuses: tuple[str, ...]
    """What the document promises when it is broken: status names, `ACLNN_ERR_*`, or nothing."""
    products: frozenset[str] | None
    when: Evaluator | None
    when_text: str | None
    requires: tuple[str, ...]
    also: frozenset[str]
    """Limits that a call which breaks it may break besides: what it is promised stays an error."""
    group: str | None
    breaks: tuple[Mapping[str, Any], ...]
    """Assignments to draws or places (`param[axis]`) that break it: compiled expressions over the drawn names."""
    near: tuple[Mapping[str, Any], ...]
    """Assignments that sit on its limit and beside it."""
    unsafe: str | None
    valued: bool = False
    """Of an open rule: what a call that breaks it computes is said, and judged where the call succeeds."""

    def applies_to(self, product: str) -> bool:
        """Whether the document states it for a product."""
        return self.products is None or product in self.products


ConstraintTest: TypeAlias = tuple[int, int, Test, Constraint]
"""Of one constraint: its own bit, the bits of those that it requires, its test, and itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of the first phase, in the order of the C prototype."""

    name: str
    type: str
    """The C type as the prototype writes it."""
    kind: str
    """What stands for it in a case (`core.case.argument_kind`)."""
    role: str
    """`input`, `output`, `inout` (both: the call reads what the memory holds and writes its result there) or
    `attribute`."""
    shape: ShapeExpression | None = None
    """Of a list, that of each tensor: it may read the tensor's place as `index`."""
    length: Evaluator | None = None
    """Of a list: how many tensors it has."""
    dtypes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What generation draws from, by product."""
    dtype_as: str | None = None
    """The parameter whose dtype it takes."""
    dtype_else: tuple[str, ...] = ()
    """Those whose dtype it takes where `dtype_as` is a null pointer: the first that is given."""
    formats: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    format_by: Evaluator | None = None
    """The format that follows from drawn names: one of `formats`."""
    format_as: str | None = None
    layouts: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Of `formats`, those for each number of dimensions, where they depend on it."""
    strided: bool = False
    """Whether the document allows a tensor that is not contiguous."""
    optional: bool = False
    """Whether it may be a null pointer in a valid call."""
    optional_when: Evaluator | None = None
    """The calls in which it may be; None: all."""
    present: Evaluator | None = None
    """Of an output: whether the call computes it; where it does not, the pointer may be null (`Spec.leaves_out`).
    Of an input: whether a valid call may give it; else it is null."""
    data: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    """Recipe templates by kind of data (`exact`, `realistic`, `hostile`); values may be expressions."""

    @property
    def holds_tensors(self) -> bool:
        """Whether it is a tensor or a list of them."""
        return self.kind in ("tensor", "tensor_list")

    @property
    def is_input(self) -> bool:
        """Whether it has contents before the call."""
        return self.role in ("input", "inout")

    @property
    def is_output(self) -> bool:
        """Whether the call writes it."""
        return self.role in ("output", "inout")

    @property
    def c_type(self) -> str:
        """The C type without qualifiers: `int8_t` for `const int8_t`."""
        return " ".join(word for word in self.type.split() if word != "const")

    def may_be_left_out(self, names: Mapping[str, Any], target: Target) -> bool:
        """Whether a valid call with these attributes may have a null pointer here."""
        return self.optional and (self.optional_when is None or bool(self.optional_when(names, target)))

    def is_never_given(self, target: Target) -> bool:
        """Whether no valid call has anything but a null pointer here."""
        try:
            return self.present is not None and not self.present({}, target)
        except UNDEFINED:
            return False

    def is_computed(self, arguments: Mapping[str, Any], target: Target) -> bool:
        """Whether a call computes an output; so it is too where a broken call leaves that open."""
        try:
            return self.present is None or bool(self.present(arguments, target))
        except UNDEFINED:
            return True


RUNS = ("run", "factorisation", "partition", "broadcast")
"""Kinds of draws of several sizes: free ones, of a product, of a sum, and such as broadcast with others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One name of generation, in the order in which names are drawn. Bounds are compiled over earlier names."""

    name: str
    kind: str
    """`integer`, `derived`, `choice`, `dtype`, or one of `RUNS`."""
    low: Evaluator | None = None
    high: Evaluator | None = None
    value: Evaluator | None = None
    choices: tuple[Evaluator, ...] = ()
    sizes: tuple[Evaluator, Evaluator] | None = None
    of: str = ""
    """Of kind `dtype`: the tensor whose dtype it is."""
    unit: int = 0
    """Elements of one, of a size that a training call has large together with others; 0 of all other draws."""

    @property
    def is_run(self) -> bool:
        """Whether it is several sizes."""
        return self.kind in RUNS

    def bounds(self, names: Mapping[str, Any], target: Target) -> tuple[int, int]:
        """Least and most of an integer, or of the length of a run of any kind; TypeError for other kinds."""
        if self.low is None or self.high is None:
            raise TypeError(f"{self.name}: a draw of kind {self.kind} has no bounds")
        return self.low(names, target), self.high(names, target)

    def given(self, names: Mapping[str, Any], target: Target) -> Any:  # noqa: ANN401 - what an expression gives
        """What a derived name is, the product or sum of a run, or the run that one of kind broadcast goes with.

        TypeError for other kinds.
        """
        if self.value is None:
            raise TypeError(f"{self.name}: a draw of kind {self.kind} has no value of its own")
        return self.value(names, target)

    def size_bounds(self, names: Mapping[str, Any], target: Target) -> tuple[int, int]:
        """Least and most of each size of a run; TypeError for other kinds."""
        if self.sizes is None:
            raise TypeError(f"{self.name}: a draw of kind {self.kind} has no sizes")
        low, high = self.sizes
        return low(names, target), high(names, target)


class Mode(msgspec.Struct, frozen=True, kw_only=True):
    """The compute precision that a call asks for."""

    name: str
    """The enumerator (`KEEP_DTYPE`, ...), or empty where the operator has none."""
    operand: str | None
    """The format that operands are rounded to: a dtype name or `HFLOAT32`; None: their own dtype."""


_NO_MODE = Mode(name="", operand=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """The attribute that chooses the compute precision, and what each value promises."""

    attribute: str
    by: str
    """A tensor, or `promote(x, y)`."""
    sources: tuple[str, ...]
    """The tensors whose dtypes select the row: one, or those that promote."""
    names: Mapping[int, str]
    operand: Mapping[str, Mapping[str, tuple[str | None, ...]]]
    """By product and dtype of `by`: the operand format of each value; None where the document says error."""

    def dtype_of(self, dtypes: Mapping[str, str]) -> str:
        """The dtype that selects the row, of tensors with these; empty where they do not promote."""
        return promoted_dtype([dtypes[name] for name in self.sources]) or ""

    def supported(self, product: str, dtype: str) -> tuple[int, ...]:
        """The values that the document does not reject."""
        row = self.operand.get(product, {}).get(dtype, ())
        return tuple(value for value, operand in enumerate(row) if operand is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One statement of a document: where it stands, our wording, how certain it is, and how it is encoded."""

    at: str
    en: str
    zh: str
    certainty: str
    products: tuple[str, ...] = ()
    """Where it is stated; everywhere where it names none."""
    constraints: tuple[str, ...] = ()
    check: str | None = None
    when: Evaluator | None = None
    when_text: str | None = None
    output: str | None = None
    """The one output that the clause is about, where its address does not name it."""
    faults: tuple[str, ...] = ()
    """The kinds of fault that contradict it; all where it names none."""
    interface: str | None = None
    example: str | None = None
    untestable: tuple[str, str] | None = None
    """Why no test can show it, in English and Chinese."""
    reason: str | None = None
    """The word for that in `wording.yaml`; None where the spec words a reason of its own."""
    contradicts: tuple[str, ...] = ()

    def applies_to(self, product: str) -> bool:
        """Whether the document states it for a product."""
        return not self.products or product in self.products


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A worked example of the document."""

    name: str
    at: str
    product: str | None
    arguments: Mapping[str, Argument]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtkArgument:
    """What the executor of ATK case files puts in the place of an argument. Expressions read the file's inputs."""

    shape: ShapeExpression | None = None
    dtype: str | None = None
    dtype_as: str | None = None
    data: Mapping[str, Any] | None = None
    """A recipe and its parameters, expressions compiled."""
    items: ShapeExpression | None = None
    value: Evaluator | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Atk:
    """How the operator's ATK case files differ from its prototype."""

    names: Mapping[str, str] = field(default_factory=dict)
    """The prototype's name by the files' own, where they differ in more than capitals."""
    others: tuple[str, ...] = ()
    """Inputs of the files that are no parameters."""
    format: str | None = None
    """The format that the executor gives every tensor, whatever the files say."""
    arguments: Mapping[str, AtkArgument] = field(default_factory=dict)
    """By parameter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One operator: what its document promises, executable."""

    operator: str
    """The C name."""
    stem: str
    """The file's stem, which names the oracle too."""
    path: str
    sha256: str
    text: str = field(repr=False)
    """The whole file, as a run keeps it."""
    document: str
    """Its title."""
    edition: str = ""
    """The name of the document's edition, where it has one."""
    document_sha256: str = ""
    """Of the edition that was read; empty where the spec names none."""
    products: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    draws: tuple[Draw, ...]
    constraints: tuple[Constraint, ...]
    """In evaluation order: what a constraint requires stands before it."""
    clauses: Sequence[Clause]
    examples: tuple[Example, ...]
    modes: Modes | None = None
    rows: Mapping[str, tuple[tuple[str, ...], ...]] | None = None
    row_parameters: tuple[str, ...] = ()
    precision: tuple[Mapping[str, Any], ...] = ()
    """Compute models of its own, as they are written, which `judgement.model` adds to those of `precision.yaml`."""
    header: str | None = None
    elementwise: bool = False
    """Whether an element of an output depends on one element of each tensor of its shape."""
    large_calls: tuple[Mapping[str, int], ...] = ()
    """Sizes of training, by draw, of calls that plans of the longer profiles have: beyond what a tensor has there."""
    atk: Atk | None = None
    open: tuple[str, ...] = ()
    """Places of a draft that are not settled: nothing is run with such a spec."""
    claims: Mapping[str, SpecClaim] = field(default_factory=dict, repr=False)
    """What the spec says of statements of its document that are not plain, by address."""
    tests: Mapping[str, tuple[ConstraintTest, ...]] = field(default_factory=dict, repr=False)
    """By product: what `speclang.evaluate` puts a case to."""
    pointers: tuple[tuple[str, Constraint], ...] = ()
    """Constraints on the pointers of the call itself, by pointer."""

    inputs: tuple[str, ...] = field(init=False, repr=False)
    """Names of the inputs, tensors and lists of tensors; those that are outputs too among them."""
    outputs: tuple[str, ...] = field(init=False, repr=False)
    """Names of the outputs, tensors and lists of tensors; those that are inputs too among them."""
    conditional: tuple[Parameter, ...] = field(init=False, repr=False)
    """The outputs that only some calls compute, and the inputs that only some give."""
    promoting: tuple[str, ...] = field(init=False, repr=False)
    """The inputs that are converted to one dtype before anything is computed, where the document says so."""

    _given: Mapping[str, Sequence[Constraint]] = field(init=False, repr=False)
    """By parameter, the rules that want it given."""
    _has_lists: bool = field(init=False, repr=False)
    _parameters: Mapping[str, Parameter] = field(init=False, repr=False)
    _constraints: Mapping[str, Constraint] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Gather the names that are asked for with every call."""
        tensors = tuple(item.name for item in self.parameters if item.is_input and item.holds_tensors)
        object.__setattr__(self, "inputs", tensors)
        object.__setattr__(self, "outputs", tuple(item.name for item in self.parameters if item.is_output))
        object.__setattr__(self, "conditional", tuple(item for item in self.parameters if item.present is not None))
        given: dict[str, list[Constraint]] = {}
        for item in self.constraints:
            if isinstance(item.rule, ParameterRule) and item.rule.wants_given:
                given.setdefault(item.rule.of, []).append(item)
        object.__setattr__(self, "_given", given)
        related = {name for item in self.constraints for name in item.rule.operands}
        object.__setattr__(self, "promoting", tuple(name for name in tensors if name in related))
        object.__setattr__(self, "_parameters", {item.name: item for item in self.parameters})
        object.__setattr__(self, "_constraints", {item.id: item for item in self.constraints})
        object.__setattr__(self, "_has_lists", any(item.kind == "tensor_list" for item in self.parameters))

    @property
    def source(self) -> str:
        """The document's title and, where it is named, its edition."""
        return f"{self.document}, edition {self.edition}" if self.edition else self.document

    def dtypes_of(self, item: Parameter, product: str) -> tuple[str, ...]:
        """The dtypes of a tensor on a product: its own list, its column of the rows, or those of what it follows."""
        while item.dtype_as is not None and item.name not in self.row_parameters:
            item = self.parameter(item.dtype_as)
        if item.name in self.row_parameters and self.rows is not None:
            column = self.row_parameters.index(item.name)
            return tuple(dict.fromkeys(row[column] for row in self.rows.get(product, ())))
        return item.dtypes.get(product, ())

    def parameter(self, name: str) -> Parameter:
        """A parameter by its name; KeyError where there is none."""
        return self._parameters[name]

    def constraint(self, identifier: str) -> Constraint:
        """A constraint by its id; KeyError where there is none."""
        return self._constraints[identifier]

    def constraints_for(self, product: str) -> tuple[Constraint, ...]:
        """The constraints that apply to a product."""
        return tuple(item for item in self.constraints if item.products is None or product in item.products)

    def clauses_of(self, constraint: str) -> tuple[str, ...]:
        """Addresses of the clauses that a constraint encodes."""
        return tuple(clause.at for clause in self.clauses if constraint in clause.constraints)

    def computed_outputs(self, case: Case) -> tuple[str, ...]:
        """The outputs that a case asks for, each tensor of a list: all but those whose condition is false."""
        left_out = [item.name for item in self.conditional if not item.is_computed(case.arguments, case.target)]
        names = tuple(name for name in self.outputs if name not in left_out) if left_out else self.outputs
        return _tensor_names(names, case) if self._has_lists else names

    def leaves_out(self, item: Parameter, arguments: Mapping[str, Any], target: Target) -> bool:
        """Whether a valid call may have null for an output: it is not computed, and no rule wants it given."""
        return not item.is_computed(arguments, target) and not any(
            rule.applies_to(target.product) and (rule.when is None or rule.when(arguments, target))
            for rule in self._given.get(item.name, ())
        )

    @property
    def lacks(self) -> tuple[Clause, ...]:
        """What the document does not say and the formula would need: its operator's values are open there."""
        return tuple(clause for clause in self.clauses if clause.reason == NotTestable.MISSING)

    @property
    def usual_product(self) -> str:
        """What calls are for where none is named: the default where the document names it, else its last product."""
        return DEFAULT_PRODUCT if DEFAULT_PRODUCT in self.products else self.products[-1]

    def given_inputs(self, case: Case) -> tuple[str, ...]:
        """The input tensors that are no null pointers, each tensor of a list."""
        names = tuple([name for name in self.inputs if case.arguments.get(name) is not None])
        return _tensor_names(names, case) if self._has_lists else names

    def updated_tensors(self, case: Case) -> frozenset[str]:
        """The tensors that are input and output, each tensor of a list."""
        return frozenset(_tensor_names([name for name in self.inputs if name in self.outputs], case))

    def output_tensors(self, case: Case) -> frozenset[str]:
        """The names of all output tensors, each tensor of a list."""
        return frozenset(_tensor_names(self.outputs, case) if self._has_lists else self.outputs)

    def computed_in(self, case: Case) -> str | None:
        """The dtype that the inputs of a call promote to; None where the document says of none that they do."""
        given = [value for name in self.promoting if (value := case.arguments.get(name)) is not None]
        try:
            return str(FUNCTIONS["promote"][1](*given)) if given else None
        except UNDEFINED:
            return None

    def mode(self, case: Case) -> Mode:
        """The compute precision that a case asks for (its own dtype's where the operator has no modes)."""
        if self.modes is None:
            return _NO_MODE
        value = case.arguments.get(self.modes.attribute)
        dtypes = {name: getattr(case.arguments.get(name), "dtype", "") for name in self.modes.sources}
        row = self.modes.operand.get(case.product, {}).get(self.modes.dtype_of(dtypes), ())
        operand = row[value] if isinstance(value, int) and 0 <= value < len(row) else None
        return Mode(name=self.modes.names.get(value, "") if isinstance(value, int) else "", operand=operand)


def _tensor_names(names: Sequence[str], case: Case) -> tuple[str, ...]:
    """The names of parameters, those of lists replaced by those of their tensors."""
    found: list[str] = []
    for name in names:
        value = case.arguments.get(name)
        found += [f"{name}[{place}]" for place in range(len(value))] if isinstance(value, TensorList) else [name]
    return tuple(found)
