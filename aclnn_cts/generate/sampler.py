"""Drawing valid cases: every constraint holds by construction, nothing is drawn and thrown away.

A `Sampler` is made once for an operator and a target; it prepares all that does not change from case to case. `draw`
takes decisions from a `Choices`, `case` turns them into arguments, with a `CaseChange` applied where a constraint is to
be broken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import msgspec

from aclnn_cts.core.case import BoolArray, CallOptions, Case, Data, FloatArray, Origin, Tensor, TensorList, scalar_of
from aclnn_cts.core.dtypes import DTYPES, FLOAT8, INEXACT, promoted_dtype
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.regime import Regime
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import Choices
from aclnn_cts.generate.configuration import (
    ANYTHING,
    DATA_KINDS,
    DEFAULT_DATA,
    EXPANDED,
    SIZE_CLASSES,
    VIEWS,
    Configuration,
    Drawing,
    Mode,
    Options,
    RecipeTemplate,
    lay_out,
    row_labels,
)
from aclnn_cts.generate.names import NameDrawer
from aclnn_cts.generate.recipes import RECIPES
from aclnn_cts.generate.sizes import BUDGETS, LARGE_SHARES, SHARES, Sizes, draw_sizes, large_sizes, mixed_sizes
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.expression_parser import parse
from aclnn_cts.speclang.kinds import CaseChange
from aclnn_cts.speclang.kinds_data import FiniteRule
from aclnn_cts.speclang.kinds_dtype import SameDtypeRule, are_dtypes_allowed, relations, scalar_dtypes
from aclnn_cts.speclang.model import Parameter, Spec
from aclnn_cts.speclang.shape import INDEX, compile_shape

_MAX_OUTPUT_ELEMENTS = 1 << 25
"""The same of an output, which has no data."""
_LARGE_CALL = 1 << 24
"""Elements of an input of a large call, such as a mask of 4,096 x 4,096 places."""
_MAX_ENTRIES = 1 << 8
"""Tensors of a list that a case is made with."""
_ZEROS = ("zeros", "one_hot")
"""Recipes of which many elements are zero."""
_TINY = 160
"""Elements of a tensor of a call whose sizes are then set."""
_VAST_ROWS = (1 << 24) + 17
"""A size of an output alone that neither 16 bits nor the integers of FLOAT count."""
_VAST = 8
"""Cases of a plan that have it, of the longer profiles."""

_NARROW = frozenset({"INT8", "UINT8", "INT16", "UINT16", "BOOL"})
"""Integer dtypes that cannot count them."""

_GIVEN = object()
"""What stands for a tensor that is not made yet, and is no null pointer."""
_VALID = Origin(kind="valid")
_ONE_PHASE = CallOptions(phases=1)
_SEEDS = 2**32 - 1
_THOUSAND = 1_000
_STEPPED = VIEWS.index("stepped")
_WITHOUT_DATA = frozenset(name for name, dtype in DTYPES.items() if dtype.kind in ("other", "complex")) | FLOAT8
"""Dtypes of tensors that are descriptors alone, where the operator lists none of them."""


class Sampler:
    """Valid cases of one operator for one target."""

    def __init__(self, spec: Spec, target: Target) -> None:
        self.spec = spec
        self.target = target
        product = target.product
        self._relations = relations(spec, product)
        """Which dtypes go together: inputs that promote, outputs that follow or are cast."""
        self.dtype_rows = dtype_rows(spec, target)
        """Every assignment of dtypes to tensors that the tables allow."""
        self._equal_rows = tuple(row for row in self.dtype_rows if len({row[name] for name in spec.promoting}) < 2)
        self.format_rows = _format_rows(spec, product)
        """Every assignment of formats to tensors that the tables allow."""
        self._without_data = _WITHOUT_DATA.difference(*(row.values() for row in self.dtype_rows))
        self.names = NameDrawer(spec, target)
        """What draws the free names."""
        self._tensors = tuple(item for item in spec.parameters if item.holds_tensors)
        self._shapes: Mapping[str, Callable[..., tuple[int, ...]]] = {
            item.name: compile_shape(item.shape) for item in spec.parameters if item.shape is not None
        }
        optional = {item.name for item in spec.parameters if item.optional}
        shaped = ((item.name, item.shape) for item in spec.parameters if item.shape is not None)
        self._of_nulls = frozenset(name for name, shape in shaped if optional.intersection(shape.names()))
        """Whose shape is another where some optional parameter is a null pointer."""
        self.strided = tuple(item.name for item in self._tensors if item.strided)
        """The tensors that need not be contiguous."""
        self._following: set[str] = set()
        """Tensors that take the format of one whose format follows from drawn names."""
        for item in self._tensors:
            source = next((other for other in self._tensors if other.name == item.format_as), None)
            if source is not None and (
                source.format_by is not None or source.layouts or source.name in self._following
            ):
                self._following.add(item.name)
        self._inputs = tuple(item for item in self._tensors if item.is_input)
        self._scalars = tuple(item for item in spec.parameters if item.kind == "scalar")
        self._optional = tuple(item.name for item in spec.parameters if item.optional)
        self._sometimes = any(item.optional_when is not None for item in spec.parameters)
        self._settled = frozenset(
            item.name
            for item in spec.conditional
            if item.holds_tensors and self._sometimes and (item.is_input or item.optional)
        )
        """Those that a valid call gives where `present` is true, and only there."""
        conditions = (
            condition
            for item in spec.parameters
            for condition in (item.optional_when, item.present)
            if self._sometimes and condition is not None
        )
        read = set().union(*(parse(condition.text).names() for condition in conditions))
        for item in reversed(self._tensors):
            if item.name in read and item.shape is not None:
                read |= item.shape.names()
        single_inputs = (item.name for item in self._tensors if item.is_input and item.length is None)
        self._in_conditions = read.intersection(single_inputs)
        """Input tensors on whose shapes it depends whether others may be null pointers."""
        self.excludable = tuple(
            item.name
            for item in spec.conditional
            if item.is_output and item.name not in self._settled and not item.is_never_given(target)
        )
        """The outputs that the arguments of some calls exclude, and of others do not."""
        rules = (item.rule for item in spec.constraints_for(product))
        finite = {name: rule.infinite for rule in rules if isinstance(rule, FiniteRule) for name in rule.of}
        self._templates = {
            (item.name, family): _templates(item, family, infinite=finite.get(item.name))
            for item in self._inputs
            for family in ("float", "other")
        }
        self._vast = _of_outputs_alone(spec)
        self._has_large = any(draw.unit for draw in spec.draws)

    @property
    def given_rows(self) -> tuple[Mapping[str, str], ...]:
        """The same without tensors that no valid call gives."""
        never = {item.name for item in self.spec.conditional if item.is_never_given(self.target)}
        return tuple({name: dtype for name, dtype in row.items() if name not in never} for row in self.dtype_rows)

    def templates(self, name: str, family: str, *, kinds: Sequence[str] = DATA_KINDS) -> tuple[RecipeTemplate, ...]:
        """Templates of an input's data of these kinds, for floating dtypes (`float`) or others (`other`)."""
        by_kind = self._templates[name, family]
        return tuple(template for kind in kinds for template in by_kind[kind])

    def shape(self, name: str, environment: Mapping[str, Any]) -> tuple[int, ...]:
        """The shape of a tensor, or the contents of an int array, in a valid case with these names."""
        return self._shapes[name](environment, self.target)

    def options(self, configuration: Configuration) -> Options:
        """A configuration made ready for `draw`."""
        labels = dict(zip(map(id, self.dtype_rows), row_labels(self.dtype_rows), strict=True))
        labels |= zip(map(id, self.format_rows), row_labels(self.format_rows), strict=True)
        sizes = configuration.allowed_options("size", list(SIZE_CLASSES)) if "size" in configuration.allowed else ()
        templates = {
            (item.name, family): configuration.allowed_options(
                f"data:{item.name}", self.templates(item.name, family), lambda template: template.recipe
            )
            for item in self._inputs
            for family in ("float", "other")
            if f"data:{item.name}" in configuration.allowed
        }
        return Options(
            configuration=configuration,
            dtype_rows=configuration.allowed_options("dtype", self.dtype_rows, lambda row: labels[id(row)]),
            format_rows=configuration.allowed_options("format", self.format_rows, lambda row: labels[id(row)]),
            budgets=[SIZE_CLASSES[name][1] for name in sizes] or BUDGETS,
            views={
                name: configuration.allowed_options(f"layout:{name}", range(len(VIEWS)), VIEWS.__getitem__)
                for name in self.strided
                if f"layout:{name}" in configuration.allowed
            },
            templates=templates,
        )

    def draw(  # noqa: PLR0913 - each is a choice of the caller's
        self,
        choices: Choices,
        *,
        budget: int | None = None,
        options: Options | None = None,
        regime: Regime | None = None,
        row: int | None = None,
        mode: Mode | None = None,
        data_kind: str | None = None,
        heavy: bool = False,
        large: bool = False,
    ) -> Drawing:
        """Every free choice of one valid case, with at most `budget` elements a tensor where one is given.

        `options` narrow what is chosen among (`options(configuration)`); a regime decides its sizes, the number of a
        row its dtypes, a kind of data (one of `DATA_KINDS`) its contents. `mode` is a value of the mode's attribute
        that these dtypes support. `heavy`: the regime's sizes are those of a longer profile. `large`: sizes that the
        spec calls so are.
        """
        budgets: Sequence[int] = BUDGETS
        configuration = ANYTHING
        if row is not None:
            dtypes, formats = self.dtype_rows[row], choices.pick(self.format_rows)
        elif options is None:
            dtypes, formats = self._row(choices), choices.pick(self.format_rows)
        else:
            dtypes, formats = choices.pick(options.dtype_rows), choices.pick(options.format_rows)
            budgets, configuration = options.budgets, options.configuration
        sizes: Sizes
        if large:
            sizes = large_sizes(choices, heavy=heavy)
        elif regime is not None:
            sizes = draw_sizes(choices, regime, self.target, heavy=heavy)
        else:
            sizes = mixed_sizes(choices, choices.pick(budgets) if budget is None else budget)
        names, picks = self.names.draw(choices, sizes, configuration, dtypes=dtypes)
        modes = self.spec.modes
        if modes is not None:
            supported = modes.supported(self.target.product, modes.dtype_of(dtypes))
            allowed = configuration.allowed_options("mode", supported, modes.names.__getitem__)
            names[modes.attribute] = choices.pick(allowed) if mode is None else mode
        views = self._views(choices, options)
        data = self._templates_for(choices, dtypes, names, options, data_kind)
        scalars = {item.name: choices.pick(self.dtypes_of(item, dtypes)) for item in self._scalars}
        nulls = tuple([name for name in self._optional if choices.integer(0, 3) == 0])
        seed = choices.integer(0, _SEEDS)
        given = tuple([name for name in self.excludable if choices.integer(0, 1)])
        return Drawing(self.target, dtypes, formats, names, picks, views, data, seed, scalars, nulls, given)

    def _row(self, choices: Choices) -> Mapping[str, str]:
        """A row of dtypes; of inputs that promote, half the time one in which they have one dtype.

        Each dtype of the first of these comes as often, however many outputs it can be converted to.
        """
        if not self.spec.promoting:
            return choices.pick(self.dtype_rows)
        rows, first = self._equal_rows if choices.integer(0, 1) else self.dtype_rows, self.spec.promoting[0]
        dtype = choices.pick(tuple(dict.fromkeys(row[first] for row in rows)))
        return choices.pick([row for row in rows if row[first] == dtype])

    def dtypes_of(self, item: Parameter, row: Mapping[str, str]) -> Sequence[str]:
        """The dtypes that a scalar may have beside tensors of these."""
        return scalar_dtypes(self._relations, item, row, self.target)

    @cached_property
    def _expandable(self) -> frozenset[str]:
        """The inputs whose elements may share a place in memory."""
        inputs = frozenset(self.strided).intersection(self.spec.inputs).difference(self.spec.outputs)
        return frozenset(
            name
            for name in inputs
            if any(row.get(name) in INEXACT for row in self.dtype_rows)
            and any(RECIPES[template.recipe].elementwise for template in self.templates(name, "float"))
        )

    def _is_expanded(self, item: Parameter, dtype: str, data: Data | None) -> bool:
        """Whether equal elements in one place are still contents that the recipe could give."""
        recipe = RECIPES.get(data.recipe or "") if data is not None else None
        return item.name in self._expandable and dtype in INEXACT and recipe is not None and recipe.elementwise

    def views_of(self, name: str) -> Iterator[int]:
        """The numbers of the views that a tensor can have in which it is not contiguous."""
        views = range(1, len(VIEWS) if name in self.strided else 1)
        return (view for view in views if view not in EXPANDED or name in self._expandable)

    def _views(self, choices: Choices, options: Options | None) -> dict[str, int]:
        views: dict[str, int] = {}
        if choices.integer(0, 7) > 4:
            for name in self.strided:
                if (view := choices.integer(0, len(VIEWS) + 1)) < len(VIEWS):
                    views[name] = view
        for name, numbers in options.views.items() if options is not None else ():
            views[name] = choices.pick(numbers)
        return views

    def _templates_for(
        self,
        choices: Choices,
        dtypes: Mapping[str, str],
        names: Mapping[str, Any],
        options: Options | None,
        wanted: str | None,
    ) -> dict[str, RecipeTemplate]:
        style = choices.integer(0, 15)
        kind = wanted or (DATA_KINDS[0] if style < 5 else DATA_KINDS[1] if style < 12 else DATA_KINDS[2])
        data: dict[str, RecipeTemplate] = {}
        hostile = choices.pick(self._inputs) if wanted == "hostile" else None
        for item in self._inputs:
            family = "float" if dtypes[item.name] in INEXACT else "other"
            chosen = kind if kind != "hostile" or choices.integer(0, 1) or item is hostile else "realistic"
            data[item.name] = choices.pick(self._fitting(self._templates[item.name, family][chosen], names))
            if options is not None and (item.name, family) in options.templates:
                data[item.name] = choices.pick(self._fitting(options.templates[item.name, family], names))
        if options is None:
            self._beside_special(choices, dtypes, data)
        return data

    def _fitting(self, templates: Sequence[RecipeTemplate], names: Mapping[str, Any]) -> Sequence[RecipeTemplate]:
        """Those for calls with these attributes; all where there are none."""
        if all(template.when is None for template in templates):
            return templates
        return [template for template in templates if template.fits(names, self.target)] or templates

    def _beside_special(self, choices: Choices, dtypes: Mapping[str, str], data: dict[str, RecipeTemplate]) -> None:
        """Half the time, zeros in the other inputs where one has inf and nan: what skips zeros loses their product."""
        special = [name for name, template in data.items() if template.recipe == "special"]
        if len(special) != 1:
            return
        others = [name for name in data if name not in special and dtypes[name] in INEXACT]
        if not others or choices.integer(0, 1):
            return
        for name in others:
            zeros = [item for item in self._templates[name, "float"]["hostile"] if item.recipe in _ZEROS]
            if zeros:
                data[name] = choices.pick(zeros)

    def random_case(self, choices: Choices, number: int, *, heavy: bool = False, large_calls: bool = False) -> Case:
        """The random valid case of that number in its stream: sizes of regimes by their shares.

        `heavy` adds the regime of that name, and makes long and real sizes larger. `large_calls`: the stream begins
        with those of the spec.
        """
        if heavy and self._vast and number < _VAST:
            return self._vast_case(choices, number)
        if large_calls and number < len(self.spec.large_calls):
            return self._large_call(choices, self.spec.large_calls[number])
        if self._has_large and choices.integer(0, _THOUSAND - 1) < LARGE_SHARES[heavy]:
            return self.case(self.draw(choices, large=True, heavy=heavy))
        regime = _regime(choices.integer(0, _THOUSAND - 1), heavy=heavy)
        return self.case(self.draw(choices, regime=regime, heavy=heavy))

    def _large_call(self, choices: Choices, sizes: Mapping[str, int]) -> Case:
        """A case of these sizes that can be judged in little memory.

        Hostile data and outliers would leave much of it open. A view takes up to twice its elements.
        """
        drawing = self.draw(choices, budget=_TINY, data_kind="realistic")
        names = self.names.reassign(drawing, CaseChange(text="", assign=sizes), moves_runs=True)
        data = dict(drawing.data)
        for name in (name for name, template in drawing.data.items() if template.recipe == "outliers"):
            even = [item for item in self._templates[name, "float"]["realistic"] if item.recipe != "outliers"]
            data[name] = choices.pick(self._fitting(even, names) or [drawing.data[name]])
        return self.case(msgspec.structs.replace(drawing, names=names, views={}, data=data, most_data=_LARGE_CALL))

    def _vast_case(self, choices: Choices, number: int) -> Case:
        """A case with so many rows of an output that the regimes leave out, in one row of dtypes after the other.

        Indices are at the ends of the table.
        """
        rows = [row for row in self.dtype_rows if not _NARROW & set(row.values())] or self.dtype_rows
        drawing = self.draw(choices, budget=_TINY)
        name, beside = self._vast[number % len(self._vast)]
        change = CaseChange(text="", assign=dict.fromkeys(beside, 1) | {name: _VAST_ROWS})
        ends = {
            item.name: template
            for item in self._inputs
            for template in self.templates(item.name, "other")
            if template.recipe == "end_indices"
        }
        drawing = msgspec.structs.replace(
            drawing,
            dtypes=rows[number * len(rows) // _VAST],
            names=self.names.reassign(drawing, change),
            data={**drawing.data, **ends},
        )
        return self.case(drawing)

    def case(
        self,
        drawing: Drawing,
        *,
        change: CaseChange | None = None,
        origin: Origin = _VALID,
        names: Mapping[str, Any] | None = None,
    ) -> Case:
        """The case of a drawing, with a change applied; raises one of UNDEFINED where that has no meaning.

        `names`: what `reassign` gives of both, where the caller knows it.
        """
        names = names or (drawing.names if change is None else self.names.reassign(drawing, change))
        # In the order of the prototype, which the case keeps; sizes and attributes stand under the same names.
        environment: dict[str, Any] = dict(names)
        arguments: dict[str, Any] = {}
        for item in self.spec.parameters:
            arguments[item.name] = None if item.holds_tensors else self._plain(item, environment, drawing, change)
            environment[item.name] = arguments[item.name]
        if self._sometimes:
            drawing = msgspec.structs.replace(drawing, nulls=self._left_out(drawing, environment))
        call = CallOptions()
        if not self._tensors_of(drawing, change, environment, arguments):
            arguments = {name: _without_data(value) for name, value in arguments.items()}
            call = _ONE_PHASE
        given = drawing.given if change is None or change.given is None else (*drawing.given, change.given)
        arguments |= {name: None for name in drawing.nulls if name not in given}
        for item in self.spec.conditional:
            if item.name in self._settled or item.name in given:
                continue
            if self.spec.leaves_out(item, arguments, drawing.target):
                arguments[item.name] = None
        if change is not None:
            if change.null is not None:
                arguments[change.null] = None
            if change.call_null:
                call = CallOptions(phases=call.phases, null=change.call_null)
        return Case(self.spec.operator, arguments, drawing.target, call, origin)

    def _left_out(self, drawing: Drawing, environment: Mapping[str, Any]) -> tuple[str, ...]:
        """Which of the drawn null pointers the call may have, by attributes and by the tensors before each.

        And those that it must have. The shapes are those drawn: where a change is to them, an input stays as it was.
        """
        seen, nulls = dict(environment), []
        for item in self.spec.parameters:
            drawn = item.name in drawing.nulls or (
                item.name in self._settled and not item.is_computed(seen, drawing.target)
            )
            if drawn and item.may_be_left_out(seen, drawing.target):
                nulls.append(item.name)
            elif item.holds_tensors:
                seen[item.name] = self._outlined(item, drawing, seen) if item.name in self._in_conditions else _GIVEN
        return tuple(nulls)

    def _outlined(self, item: Parameter, drawing: Drawing, seen: Mapping[str, Any]) -> object:
        """An input tensor with the shape that it is drawn with."""
        try:
            return Tensor(self._shape(item, item.name, drawing, None, seen), drawing.dtypes[item.name])
        except UNDEFINED:
            return _GIVEN

    def _plain(
        self, item: Parameter, environment: Mapping[str, Any], drawing: Drawing, change: CaseChange | None
    ) -> Any:  # noqa: ANN401
        """An attribute, a scalar, a text or an array."""
        name, kind = item.name, item.kind
        if change is not None and name in change.values:
            return change.values[name]
        if kind == "scalar":
            dtype = drawing.scalars[name] if change is None else change.dtypes.get(name, drawing.scalars[name])
            return scalar_of(dtype, environment[name])
        if name not in self._shapes:
            return _number(item, environment[name])
        values = self._shapes[name](environment, drawing.target)
        if change is not None:
            values = _with_axes(values, name, change)
        if kind == "bool_array":
            return BoolArray(tuple(map(bool, values)))
        return FloatArray(tuple(map(float, values))) if kind == "float_array" else values

    def _tensors_of(
        self, drawing: Drawing, change: CaseChange | None, environment: dict[str, Any], arguments: dict[str, Any]
    ) -> bool:
        """Put the tensors into the arguments; False where they are descriptors alone, too large or strange for data."""
        dtypes: dict[str, str] = {}
        formats: dict[str, str] = {}
        have_data = True
        for number, item in enumerate(self._tensors):
            name = item.name
            rank = len(self._shape(item, name, drawing, change, {**environment, INDEX: 0})) if item.layouts else 0
            if change is None:
                source = _source(item, drawing.nulls) if item.dtype_else else None
                dtypes[name] = drawing.dtypes[source or name]
                formats[name] = self._format(item, environment, drawing, formats, rank)
            else:
                dtypes[name] = _followed(name, _source(item, drawing.nulls), change.dtypes, drawing.dtypes, dtypes)
                drawn = {**drawing.formats, name: self._format(item, environment, drawing, formats, rank)}
                formats[name] = _followed(name, item.format_as, change.formats, drawn, formats)
            looks = dtypes[name], formats[name]
            value: Tensor | TensorList
            if item.length is None:
                value, has_data = self._tensor(item, name, looks, drawing, change, environment, number)
                have_data = have_data and has_data
            else:
                length = int(item.length(environment, drawing.target))
                if length > _MAX_ENTRIES:
                    raise UsageError(f"{name}: a list of {length} tensors; expected at most {_MAX_ENTRIES}")
                tensors = []
                for place in range(length if change is None else change.lengths.get(name, length)):
                    environment[INDEX] = place
                    seed = number + place * len(self._tensors)
                    own = f"{name}[{place}]"
                    tensor, has_data = self._tensor(item, own, looks, drawing, change, environment, seed)
                    tensors.append(tensor)
                    have_data = have_data and has_data
                environment.pop(INDEX, None)
                value = TensorList(tuple(tensors))
            arguments[name] = environment[name] = value
        return have_data

    def _shape(
        self, item: Parameter, name: str, drawing: Drawing, change: CaseChange | None, environment: Mapping[str, Any]
    ) -> tuple[int, ...]:
        """The shape of a parameter's tensor, or of one of a list: `name` is its own.

        A condition sees which others are null pointers. A size that is read from one of these is the one it would have.
        """
        make = self._shapes[item.name]
        try:
            nulls = drawing.nulls if item.name in self._of_nulls else ()
            shape = make({**environment, **dict.fromkeys(nulls)} if nulls else environment, drawing.target)
        except UNDEFINED:
            shape = make(environment, drawing.target)
        return shape if change is None else _with_axes(_with_rank(shape, change.ranks.get(name)), name, change)

    def _tensor(
        self,
        item: Parameter,
        name: str,
        looks: tuple[str, str],
        drawing: Drawing,
        change: CaseChange | None,
        environment: Mapping[str, Any],
        number: int,
    ) -> tuple[Tensor, bool]:
        """The tensor of a parameter, or one of a list, and whether an input has data and an output could.

        `name` is the tensor's own, `looks` are dtype and format.
        """
        shape = self._shape(item, name, drawing, change, environment)
        view = drawing.views.get(item.name, 0)
        dtype, form = looks
        if change is not None:
            dtype, form = change.dtypes.get(name, dtype), change.formats.get(name, form)
            view = _STEPPED if change.strided == name else view
        is_input, smallest = item.is_input, min(shape, default=1)
        most = drawing.most_data if is_input else _MAX_OUTPUT_ELEMENTS
        has_data = smallest >= 0 and math.prod(shape) <= most and dtype not in self._without_data
        data = None
        if is_input and has_data:
            # A recipe may read the shape that it fills.
            seen = {**environment, item.name: Tensor(shape, dtype, form)}
            data = self._data(item, name, drawing, seen, number, change)
        if view in EXPANDED and not self._is_expanded(item, dtype, data):
            view = 0
        layout = lay_out(shape, view) if view and smallest > 0 else None
        strides, offset, storage = layout if layout is not None else (None, 0, None)
        return Tensor(shape, dtype, form, strides, offset, storage, data), has_data

    def _format(
        self,
        item: Parameter,
        environment: Mapping[str, Any],
        drawing: Drawing,
        settled: Mapping[str, str],
        rank: int,
    ) -> str:
        """What follows from drawn names or the rank, or is that of a tensor whose format does; else as drawn."""
        if item.format_by is not None:
            form: str = item.format_by(environment, drawing.target)
            return form
        if item.name in self._following:
            return settled[str(item.format_as)]
        drawn = drawing.formats[item.name]
        if not item.layouts:
            return drawn
        listed = item.formats[self.target.product]
        fitting = [name for name in item.layouts.get(rank, ()) if name in listed] or [drawn]
        return drawn if drawn in fitting else fitting[listed.index(drawn) % len(fitting)]

    def _data(
        self,
        item: Parameter,
        name: str,
        drawing: Drawing,
        environment: Mapping[str, Any],
        number: int,
        change: CaseChange | None,
    ) -> Data:
        if change is not None and name in change.data:
            return change.data[name]
        template = drawing.data[item.name]
        if not template.fits(environment, drawing.target):
            # A change is to the attribute, or a configuration wants contents of other calls.
            family = "float" if drawing.dtypes[item.name] in INEXACT else "other"
            template = self._fitting(self.templates(item.name, family), environment)[0]
        seed = (drawing.seed + number) & _SEEDS
        if not template.computed:
            return Data(recipe=template.recipe, seed=seed, **template.fixed)
        values = {
            key: data_value(key, compute(environment, drawing.target)) for key, compute in template.computed.items()
        }
        return Data(recipe=template.recipe, seed=seed, **template.fixed, **values)


def _of_outputs_alone(spec: Spec) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Drawn sizes that no input and no array has, with those beside them in an output."""
    of_inputs = {
        name
        for item in spec.parameters
        if item.shape is not None and not (item.holds_tensors and not item.is_input)
        for name in item.shape.names()
    }
    found = {}
    for item in spec.parameters:
        names = item.shape.names() if item.shape is not None and item.holds_tensors else ()
        for draw in spec.draws:
            if draw.kind == "integer" and draw.name in names and draw.name not in of_inputs:
                found[draw.name] = tuple(
                    other.name for other in spec.draws if other.name in names and other.name != draw.name
                )
    return tuple(found.items())


def _regime(thousandth: int, *, heavy: bool) -> Regime | None:
    """The regime that a thousandth belongs to; None for mixed sizes."""
    for regime, share in SHARES.items():
        if thousandth < share:
            return regime if heavy or regime is not Regime.HEAVY else None
        thousandth -= share
    return None


def data_value(key: str, value: Any) -> Any:  # noqa: ANN401 - what an expression gave, and what the field takes
    """What an expression of a template gave, as the field of `Data` takes it."""
    if isinstance(value, tuple):
        return tuple(map(int, value))
    return float(value) if key in ("mean", "std", "epsilon") else int(value)


def _number(item: Parameter, value: Any) -> int | bool | float:  # noqa: ANN401 - what a draw gave
    if item.kind == "double":
        return float(value)
    if item.kind == "bool":
        return bool(value)
    return int(value) if isinstance(value, Fraction) else value


def _without_data(value: Any) -> Any:  # noqa: ANN401 - any argument
    if isinstance(value, TensorList):
        return TensorList(tuple(map(_without_data, value.items)))
    if not isinstance(value, Tensor):
        return value
    return Tensor(value.shape, value.dtype, value.format, value.strides, value.offset, value.storage_shape)


def _source(item: Parameter, nulls: Sequence[str]) -> str | None:
    """The parameter whose dtype a tensor has: the first that is given of those that it follows; None for its own."""
    return next((name for name in (item.dtype_as, *item.dtype_else) if name not in nulls), item.dtype_as)


def _followed(
    name: str,
    source: str | None,
    changed: Mapping[str, str],
    drawn: Mapping[str, str],
    settled: Mapping[str, str],
) -> str:
    """A dtype or format: changed outright, or that of the parameter it follows, or the one drawn."""
    if name in changed:
        return changed[name]
    return drawn[name] if source is None else settled[source]


def _with_axes(sizes: tuple[int, ...], name: str, change: CaseChange) -> tuple[int, ...]:
    for (owner, axis), value in change.axes.items():
        if owner == name:
            changed = list(sizes)
            changed[axis] = value
            sizes = tuple(changed)
    return sizes


def _with_rank(shape: tuple[int, ...], rank: int | None) -> tuple[int, ...]:
    """A shape of another rank and as many elements: ones appended, or trailing dimensions folded into one."""
    if rank is None or rank == len(shape):
        return shape
    if rank > len(shape):
        return shape + (1,) * (rank - len(shape))
    return (*shape[: rank - 1], math.prod(shape[rank - 1 :])) if rank > 0 else ()


def dtype_rows(spec: Spec, target: Target) -> tuple[Mapping[str, str], ...]:
    """Every assignment of dtypes that the tables allow; where inputs promote, some that have every two of them."""
    product = target.product
    tied = [item.rule for item in spec.constraints_for(product) if isinstance(item.rule, SameDtypeRule)]
    rules = (*relations(spec, product), *tied)
    tensors = [item for item in spec.parameters if item.holds_tensors]
    listed = [()] if spec.rows is None else spec.rows.get(product, ())
    fixed = [dict(zip(spec.row_parameters, row, strict=True)) for row in listed]
    free = [item for item in tensors if item.dtype_as is None and item.name not in spec.row_parameters]
    rows: list[Mapping[str, str]] = []
    # What no valid call gives has some dtype, and none of interest.
    columns = [item.dtypes.get(product, ())[: 1 if item.is_never_given(target) else None] for item in free]
    for base in fixed:
        for combination in itertools.product(*columns):
            row = {**base, **{item.name: dtype for item, dtype in zip(free, combination, strict=True)}}
            for item in tensors:
                if item.name not in row:
                    row[item.name] = row[item.dtype_as or ""]
            if not are_dtypes_allowed(rules, row, target):
                continue
            if spec.modes is None or spec.modes.supported(product, spec.modes.dtype_of(row)):
                rows.append(row)
    if len(spec.promoting) < 2:
        return tuple(rows)
    return tuple(_pairwise(rows, [item.name for item in free], spec.promoting))


def _pairwise(
    rows: Sequence[Mapping[str, str]], names: Sequence[str], promoting: Sequence[str]
) -> Sequence[Mapping[str, str]]:
    """Of the rows, those of one dtype, and so many others that every two dtypes of two tensors meet.

    The dtype that inputs promote to meets every other one too: results are converted from it.
    """

    def pairs(row: Mapping[str, str]) -> set[tuple[object, ...]]:
        whole = {**{name: row[name] for name in names}, "": promoted_dtype([row[name] for name in promoting])}
        return set(itertools.combinations(whole.items(), 2))

    found = [(row, pairs(row)) for row in rows]
    missing = set().union(*(met for _, met in found))
    chosen = []
    for row, met in found:
        if len({row[name] for name in names}) == 1:
            chosen.append(row)
            missing -= met
    while missing:
        best, met = max(found, key=lambda item: len(item[1] & missing))
        chosen.append(best)
        missing -= met
    return sorted(chosen, key=rows.index)


def _format_rows(spec: Spec, product: str) -> tuple[Mapping[str, str], ...]:
    free = [item for item in spec.parameters if item.holds_tensors and item.format_as is None]
    follow = [item for item in spec.parameters if item.holds_tensors and item.format_as is not None]
    rows: list[Mapping[str, str]] = []
    listed = (item.formats.get(product, ("ND",)) for item in free)
    drawn = (names[:1] if item.format_by is not None else names for item, names in zip(free, listed, strict=True))
    for combination in itertools.product(*drawn):
        row = {item.name: name for item, name in zip(free, combination, strict=True)}
        for item in follow:
            row[item.name] = row[item.format_as or ""]
        rows.append(row)
    return tuple(rows)


def _templates(item: Parameter, family: str, *, infinite: bool | None) -> Mapping[str, Sequence[RecipeTemplate]]:
    """The contents to choose from by kind of data; `infinite`: of one that must be finite, whether it may hold inf."""
    templates: dict[str, Sequence[RecipeTemplate]] = {}
    is_number = family == "other" and any(INEXACT.intersection(listed) for listed in item.dtypes.values())
    default = DEFAULT_DATA["number" if is_number else family]
    for kind in DATA_KINDS:
        written = item.data.get(kind) or (item.data.get("realistic") if family == "other" else None)
        made = [_template(entry) for entry in written or default[kind]]
        if infinite is not None:
            finite = [template for template in made if template.recipe != "special"]
            made = finite + [RecipeTemplate("infinite", {}, {})] * (infinite and len(finite) < len(made))
        templates[kind] = made
    return templates


def _template(entry: Mapping[str, Any]) -> RecipeTemplate:
    parameters = {key: value for key, value in entry.items() if key not in ("recipe", "when")}
    return RecipeTemplate(
        str(entry["recipe"]),
        {key: value for key, value in parameters.items() if not callable(value)},
        {key: value for key, value in parameters.items() if callable(value)},
        entry.get("when"),
    )
