"""From a valid case back to the decisions that make it, so that a case from anywhere can be varied like one of ours."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from aclnn_cts.core.case import Case, Scalar, Tensor, number, real_view, replace_arguments, scalar_of, tensors_in
from aclnn_cts.core.dtypes import INEXACT
from aclnn_cts.core.target import Target
from aclnn_cts.generate.configuration import VIEWS, Drawing, RecipeTemplate, lay_out
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluator import Evaluator
from aclnn_cts.speclang.expression import UNDEFINED, ExpressionNode, compile_node
from aclnn_cts.speclang.model import Draw, Spec
from aclnn_cts.speclang.shape import INDEX, ShapeExpression, ShapeItem

_MOST_HIDDEN = 512
"""Combinations of hidden choices that are tried, and ways in which conditions of shapes may hold."""
_ZEROS = RecipeTemplate("zeros", {}, {})


def recover_drawing(sampler: Sampler, case: Case) -> Drawing | None:
    """The drawing of which the sampler makes this case, or all of it but the data; None where no drawing does.

    Names are read off shapes and attributes. An explicit array has no recipe and is taken for zeros:
    `recovered_case` puts contents back. Attributes and ranks may be ones that no draw gives, as at corners.
    """
    spec = sampler.spec
    solutions = tuple(itertools.islice(_solutions(spec, case, {}, {}), _MOST_HIDDEN))
    found = (
        _recovered(sampler, case, known, hidden, is_drawn=is_drawn)
        for is_drawn in (True, False)
        # Few hidden choices differ from the first ones: of every solution these come first.
        for row in itertools.zip_longest(*[_hidden(spec, known) for known in solutions])
        for known, hidden in zip(solutions, row, strict=True)
        if hidden is not None
    )
    return next((drawing for drawing in found if drawing is not None), None)


def _hidden(spec: Spec, known: Mapping[str, Any]) -> Iterator[Mapping[str, int]]:
    """Picks of the choices that no argument shows, such as those of formats and of null scalars: all combinations."""
    choices = [draw for draw in spec.draws if draw.kind == "choice" and known.get(draw.name) is None]
    yield from itertools.islice(_picked(choices), _MOST_HIDDEN)


def _picked(choices: Sequence[Draw]) -> Iterator[Mapping[str, int]]:
    """First entries alone, then another one of one choice, of two, and so on."""
    for count in range(len(choices) + 1):
        for some in itertools.combinations(choices, count):
            for numbers in itertools.product(*[range(1, len(draw.choices)) for draw in some]):
                others = {draw.name: number for draw, number in zip(some, numbers, strict=True)}
                yield {draw.name: others.get(draw.name, 0) for draw in choices}


def _recovered(
    sampler: Sampler, case: Case, known: Mapping[str, Any], hidden: Mapping[str, int], *, is_drawn: bool
) -> Drawing | None:
    names, picks = _names(sampler, case, known, hidden)
    if names is None or (is_drawn and not _fit(sampler, names, picks)):
        return None
    tensors = dict(_firsts(case))
    views = {name: _view(tensor) for name, tensor in tensors.items()}
    # A dtype that follows the first tensor that is given is made anew; a row has that of the calls that give all.
    follow = {item.name for item in sampler.spec.parameters if item.dtype_else}
    dtypes = _completed(
        {name: tensor.dtype for name, tensor in tensors.items() if name not in follow}, sampler.dtype_rows
    )
    formats = _completed({name: tensor.format for name, tensor in tensors.items()}, sampler.format_rows)
    if dtypes is None or formats is None or None in views.values():
        return None
    drawing = Drawing(
        target=sampler.target,
        dtypes=dtypes,
        formats=formats,
        names=names,
        picks=picks,
        views={name: view for name, view in views.items() if view},
        data={
            name: _template(sampler, name, tensors[name], {**case.arguments, **names}) if name in tensors else _ZEROS
            for name in sampler.spec.inputs
        },
        seed=0,
        scalars={
            item.name: value.dtype if isinstance(value, Scalar) else sampler.dtypes_of(item, dtypes)[0]
            for item in sampler.spec.parameters
            if item.kind == "scalar"
            for value in [case.arguments.get(item.name)]
        },
        nulls=tuple(
            item.name for item in sampler.spec.parameters if item.optional and case.arguments.get(item.name) is None
        ),
        given=tuple(
            item.name
            for item in sampler.spec.conditional
            if item.is_output and case.arguments.get(item.name) is not None
        ),
    )
    try:
        made = recovered_case(sampler, drawing, case)
    except (*UNDEFINED, LookupError):
        return None
    return drawing if made is not None and made.arguments == case.arguments else None


def _firsts(case: Case) -> Iterator[tuple[str, Tensor]]:
    """Each tensor by its parameter; of a list the first, whose layout and recipe all of them have in a drawing."""
    for name, value in case.arguments.items():
        yield from ((name, tensor) for tensor in tensors_in(value)[:1])


def _fit(sampler: Sampler, names: Mapping[str, Any], picks: Mapping[str, int]) -> bool:
    """Whether every run is as long as the names before it allow, and every choice one of its alternatives."""
    if any(draw.kind == "choice" and draw.name not in picks for draw in sampler.spec.draws):
        return False
    runs = [draw for draw in sampler.spec.draws if draw.kind in ("run", "partition")]
    return all(
        low <= len(names[draw.name]) <= high for draw in runs for low, high in [draw.bounds(names, sampler.target)]
    )


def _completed(known: Mapping[str, str], rows: Sequence[Mapping[str, str]]) -> Mapping[str, str] | None:
    """Dtypes or formats with those of null pointers after the first row that has all others; None without one."""
    if not rows or len(known) == len(rows[0]):
        return known
    row = next((row for row in rows if all(row[name] == value for name, value in known.items())), None)
    return None if row is None else {**row, **known}


def recovered_case(sampler: Sampler, drawing: Drawing, like: Case) -> Case | None:
    """The case of a drawing with the data of another of its kind: same recipes and seeds, explicit values cut to size.

    None where explicit values are too few.
    """
    made = sampler.case(drawing, origin=like.origin)
    changes: dict[str, Tensor] = {}
    for name in sampler.spec.given_inputs(made):
        tensor, old = made.tensor(name), like.tensor(name)
        if tensor is None or old is None:
            continue
        data = tensor.data
        if old.data is None:
            data = None
        elif old.data.values is not None:
            count = real_view(tensor).numel
            if count > len(old.data.values):
                return None
            data = msgspec.structs.replace(old.data, values=old.data.values[:count])
        elif data is not None:
            data = msgspec.structs.replace(data, seed=old.data.seed)
        changes[name] = msgspec.structs.replace(tensor, data=data)
    arguments = replace_arguments(made.arguments, changes)
    return msgspec.structs.replace(made, arguments=arguments, target=like.target, call=like.call)


def _names(
    sampler: Sampler, case: Case, known: Mapping[str, Any], hidden: Mapping[str, int]
) -> tuple[dict[str, Any] | None, dict[str, int]]:
    """The values of all draws, and of those that are one of their alternatives, which one."""
    spec, target = sampler.spec, sampler.target
    names: dict[str, Any] = {}
    picks: dict[str, int] = {}
    try:
        for draw in spec.draws:
            if draw.kind == "derived":
                names[draw.name] = draw.given(names, target)
            elif draw.kind == "choice":
                names[draw.name], pick = _alternative(draw, names, known, hidden, target)
                if pick is not None:
                    picks[draw.name] = pick
            elif draw.kind == "dtype":
                tensor = case.tensor(draw.of)
                if tensor is None:
                    return None, {}
                names[draw.name] = tensor.dtype
            elif draw.name in known:
                names[draw.name] = known[draw.name]
            else:
                names[draw.name] = _unseen(draw, names, {**case.arguments, **known}, sampler)
    except UNDEFINED:
        return None, {}
    if spec.modes is not None:
        names[spec.modes.attribute] = case.arguments.get(spec.modes.attribute)
    return names, picks


def _alternative(
    draw: Draw, names: Mapping[str, Any], known: Mapping[str, Any], hidden: Mapping[str, int], target: Target
) -> tuple[Any, int | None]:
    """The value of a draw of alternatives, and which of them it is; None for another value of the argument."""
    values = [choice(names, target) for choice in draw.choices]
    value = values[hidden[draw.name]] if draw.name in hidden else known[draw.name]
    pick = next((place for place, one in enumerate(values) if _is_passed(one, value)), None)
    if pick is not None:
        return values[pick], pick
    return number(value) if isinstance(value, Scalar) else value, None


def _is_passed(drawn: Any, value: object) -> bool:  # noqa: ANN401 - what an expression gave
    """Whether an argument is what a drawn value becomes: an exact fraction is passed as a double."""
    if isinstance(value, Scalar):
        return not isinstance(drawn, (str, tuple)) and scalar_of(value.dtype, drawn) == value
    return value in (drawn, float(drawn) if isinstance(drawn, Fraction) else drawn)


def _unseen(draw: Draw, names: Mapping[str, Any], seen: Mapping[str, Any], sampler: Sampler) -> Any:  # noqa: ANN401 - a size or run
    """A value for a name that stands in no argument itself; another one of those `seen` may have been made of it."""
    low, high = draw.bounds(names, sampler.target)
    plain = low if draw.kind == "integer" else (1,) * low
    if draw.kind == "run" and high > 0:
        low, high = draw.size_bounds(names, sampler.target)
    elif draw.kind != "integer":
        return plain

    def of_size(size: int) -> int | tuple[int, ...]:
        """The size itself, or the run that begins with it."""
        return (size, *plain[1:]) if isinstance(plain, tuple) else size

    start = min(max(low, 1), high)
    for item in sampler.spec.draws:
        value = seen.get(item.name)
        if isinstance(value, bool) or not isinstance(value, int):
            continue
        for expression in item.choices or ([item.value] if item.value is not None else []):
            made = _made_of(expression, {**names, draw.name: of_size(start)}, sampler)
            # An expression that has a value without the name says nothing about it.
            if made is None or _made_of(expression, names, sampler) is not None:
                continue
            # Whatever adds something to a size or multiplies it gives it away; other formulas do not come out here.
            for size in (start + value - made, start * value // made if made else low):
                if low <= size <= high and _made_of(expression, {**names, draw.name: of_size(size)}, sampler) == value:
                    return of_size(size)
    return plain


def _made_of(expression: Evaluator, names: Mapping[str, Any], sampler: Sampler) -> int | None:
    """What an expression gives, where it can be evaluated with these names and gives an integer."""
    try:
        value = expression(names, sampler.target)
    except UNDEFINED:
        return None
    return value if isinstance(value, int) else None


def _solutions(
    spec: Spec, case: Case, assumed: Mapping[ExpressionNode, bool], lengths: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Names that stand in shapes and attributes; where hidden names choose a shape, those of each that they may choose.

    `assumed` says whether conditions hold that cannot be evaluated, `lengths` how long runs are of which a shape has
    several.
    """
    known, condition, beside = _solved(spec, case, assumed, lengths)
    if condition is not None:
        for holds in (True, False):
            yield from _solutions(spec, case, {**assumed, condition: holds}, lengths)
    elif beside is not None:
        run, most = beside
        for length in range(most + 1):
            yield from _solutions(spec, case, assumed, {**lengths, run: length})
    else:
        yield known


def _solved(
    spec: Spec, case: Case, assumed: Mapping[ExpressionNode, bool], lengths: Mapping[str, int]
) -> tuple[dict[str, Any], ExpressionNode | None, tuple[str, int] | None]:
    """The names that stand by themselves in shapes, and attributes; and what these do not decide.

    That is a condition, or a run beside another one with the most dimensions that it may have.
    """
    drawn = {draw.name for draw in spec.draws}
    # A null pointer does not tell what was drawn for it.
    known: dict[str, Any] = {n: value for n, value in case.arguments.items() if n in drawn and value is not None}
    for draw in spec.draws:
        if draw.kind == "choice" and len(draw.choices) == 1 and draw.name not in known:
            with contextlib.suppress(*UNDEFINED):
                known[draw.name] = draw.choices[0](known, case.target)
    before = -1
    undecided: ExpressionNode | None = None
    beside: tuple[str, int] | None = None
    while len(known) != before:
        before, undecided, beside = len(known), None, None
        for item in spec.parameters:
            value = case.arguments.get(item.name)
            tensors = tensors_in(value)
            for place, sizes in enumerate([tensor.shape for tensor in tensors] or [getattr(value, "items", value)]):
                if item.shape is None or not isinstance(sizes, tuple):
                    continue
                chosen = _chosen(item.shape, {**case.arguments, **known, INDEX: place}, case.target, assumed)
                if isinstance(chosen, ExpressionNode):
                    undecided = undecided or chosen
                    continue
                with contextlib.suppress(*UNDEFINED):
                    known.update(_broadcast(chosen, sizes, known, drawn))
                    run = _match(chosen, sizes, known, drawn, case.target, lengths)
                    beside = beside or (None if run is None else (run, len(sizes)))
    for item in spec.parameters:
        value = case.arguments.get(item.name)
        if item.shape is not None and item.shape.condition is None and isinstance(value, Tensor):
            known.update(_broadcast(item.shape.items, value.shape, known, drawn, most=len(drawn)))
    return known, undecided, beside


def _chosen(
    shape: ShapeExpression, environment: Mapping[str, Any], target: Target, assumed: Mapping[ExpressionNode, bool]
) -> tuple[ShapeItem, ...] | ExpressionNode:
    """The items of the list that the conditions of a shape choose; a condition itself where it has no value yet."""
    while shape.condition is not None and shape.otherwise is not None:
        try:
            holds = bool(compile_node(shape.condition)(environment, target))
        except UNDEFINED:
            if shape.condition not in assumed:
                return shape.condition
            holds = assumed[shape.condition]
        if holds:
            break
        shape = shape.otherwise
    return shape.items


def _broadcast(
    items: tuple[ShapeItem, ...], sizes: tuple[int, ...], known: Mapping[str, Any], drawn: set[str], most: int = 1
) -> dict[str, tuple[int, ...]]:
    """The run that a broadcast shape leaves unknown: one that is the whole shape broadcasts to it.

    Several, up to `most`, are those of null pointers, which show nowhere else.
    """
    if [item.node.value for item in items] != ["broadcast"]:
        return {}
    unknown = items[0].node.names().difference(known)
    return dict.fromkeys(unknown, sizes) if len(unknown) <= most and unknown <= drawn else {}


def _widths(
    items: tuple[ShapeItem, ...], known: Mapping[str, Any], drawn: set[str], lengths: Mapping[str, int]
) -> dict[int, int | None] | None:
    """How many dimensions each item of a shape is, None where it is not known; nothing where an item is no run."""
    widths: dict[int, int | None] = {}
    for place, item in enumerate(items):
        name = item.node.operands[0].value if item.node.value == "sums" else item.node.value
        if item.start is not None or item.stop is not None or (item.spliced and name not in drawn):
            return None
        run = len(known[name]) if name in known and item.spliced else lengths.get(str(name))
        widths[place] = run if item.spliced else 1
    return widths


def _match(
    items: tuple[ShapeItem, ...],
    sizes: tuple[int, ...],
    known: dict[str, Any],
    drawn: set[str],
    target: Target,
    lengths: Mapping[str, int],
) -> str | None:
    """Learn names from one shape, where at most one run of it has no length yet; of several, the first."""
    widths = _widths(items, known, drawn, lengths)
    if widths is None:
        return None
    unknown = [place for place, width in widths.items() if width is None]
    if len(unknown) > 1:
        node = items[unknown[0]].node
        return str(node.operands[0].value if node.value == "sums" else node.value)
    fixed = sum(width for width in widths.values() if width is not None)
    if len(sizes) < fixed:
        return None
    at = 0
    for item, width in zip(items, widths.values(), strict=True):
        size = len(sizes) - fixed if width is None else width
        part = sizes[at : at + size]
        at += size
        name = item.node.value if item.node.kind == "name" else None
        if item.node.value == "sums" and len(part) == size:
            name = item.node.operands[0].value
            part = tuple(after - before for before, after in itertools.pairwise((0, *part)))
        if name in drawn and name not in known and len(part) == size:
            known[name] = part if item.spliced else part[0]
        elif name is None and not item.spliced:
            with contextlib.suppress(*UNDEFINED):
                known.update(_solution(item.node, part[0], known, drawn, target))
    return None


def _solution(
    node: ExpressionNode, size: int, known: Mapping[str, Any], drawn: set[str], target: Target
) -> dict[str, int]:
    """The one name that an expression such as `2*H` leaves unknown, where an integer of it gives the size."""
    unknown = node.names().difference(known)
    if len(unknown) != 1 or not unknown <= drawn:
        return {}
    [name], value = unknown, compile_node(node)
    start, after = (value({**known, name: number}, target) for number in (0, 1))
    found = (size - start) // (after - start)
    return {name: found} if value({**known, name: found}, target) == size else {}


def _view(tensor: Tensor) -> int | None:
    """The number of the view that lays a tensor out; None where it is none of ours."""
    looks = tensor.strides, tensor.offset, tensor.storage_shape
    if looks == (None, 0, None):
        return 0
    return next((view for view in range(1, len(VIEWS)) if lay_out(tensor.shape, view) == looks), None)


def _template(sampler: Sampler, name: str, tensor: Tensor, environment: Mapping[str, Any]) -> RecipeTemplate:
    """The spec's own template where it gives the tensor's data; else one that says the same whatever the sizes."""
    data = tensor.data
    if data is None or data.recipe is None:
        return _ZEROS
    given = {
        key: getattr(data, key)
        for key in data.__struct_fields__
        if key not in ("recipe", "seed", "values") and getattr(data, key) is not None
    }
    for template in sampler.templates(name, "float" if tensor.dtype in INEXACT else "other"):
        if template.recipe == data.recipe and template.computed:
            try:
                computed = {key: make(environment, sampler.target) for key, make in template.computed.items()}
            except (*UNDEFINED, LookupError):
                continue
            if {**template.fixed, **computed} == given:
                return template
    return RecipeTemplate(data.recipe, given, {})
