"""`make docs`: the pages that are made from specs, registries and stored figures (`python -m tools.generate`).

A page, or the part of one between its marks, is a pure function of what it is made from, so that a test can hold the
committed pages against it. What is said of one operator is on its page alone: operators are added in parallel.
`python -m tools.generate STEM...` makes the pages of some operators.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from aclnn_cts.adapters.bindings import Binding, BindingForm, shipped_bindings
from aclnn_cts.authoring.catalogue import family_of
from aclnn_cts.cli.ops import completeness_of
from aclnn_cts.cli.screen import short_name
from aclnn_cts.cli.spec_show import conforming
from aclnn_cts.core.case import argument_text
from aclnn_cts.core.regime import Regime
from aclnn_cts.core.standard import STANDARDS, Distribution, SizeChoice
from aclnn_cts.findings.waivers.file import Waiver, read_waivers, shipped_waivers
from aclnn_cts.findings.waivers.matching import admits_version, ignored_line, names_adapter
from aclnn_cts.generate.sizes import LARGE_SHARES, SHARES
from aclnn_cts.selftest.generated_power import GeneratedMatrix, read_generated
from aclnn_cts.speclang.families import family_names
from aclnn_cts.speclang.kinds_number import PredicateRule
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Constraint, Parameter, Spec
from aclnn_cts.speclang.package import package_folder, recorded_lines
from aclnn_cts.trials.checks.registry import CHECKS
from aclnn_cts.trials.plan import PROFILES
from tools.document_errors import document_errors, document_errors_page
from tools.markdown import between, head, table
from tools.measured import SECTIONS, with_figures
from tools.openness import open_section
from tools.oracle_helpers import oracle_helpers_page
from tools.packages import packages_page
from tools.pictures import drawings, with_picture
from tools.power import POWER, power_page
from tools.reference import commands_page, json_schemas, schemas_page

FOLDER = Path(__file__).resolve().parent.parent / "docs"
_OPERATORS = "operators"


def pages(specs: Specs) -> Mapping[str, str]:
    """The text of every page by its path below this folder."""
    return operator_pages(specs.values()) | shared_pages(specs)


def shared_pages(specs: Specs) -> dict[str, str]:
    """The text of every page that is of no one operator, by its path below this folder."""
    made = {
        "checks.md": _checks(),
        "regimes.md": _regimes(),
        "power.md": power_page(specs),
        "document-errors.md": document_errors_page(specs),
        "oracle-helpers.md": oracle_helpers_page(),
        "commands.md": commands_page(),
        "packages.md": packages_page(),
        "schemas.md": schemas_page(),
        "families.md": _families(),
    }
    texts = {name: "\n".join(lines) + "\n" for name, lines in made.items()}
    measured = {section.page: (FOLDER / section.page).read_text(encoding="utf-8") for section in SECTIONS}
    texts |= {"vendor-standards.md": _standards((FOLDER / "vendor-standards.md").read_text(encoding="utf-8"))}
    measured["profiles.md"] = _profiles(measured["profiles.md"])
    texts |= {"real-calls.md": _real((FOLDER / "real-calls.md").read_text(encoding="utf-8"), specs)}
    texts |= {"ci.md": _ignored((FOLDER / "ci.md").read_text(encoding="utf-8"))}
    texts |= {
        f"../specs/{name}.schema.json": json.dumps(item, indent=1) + "\n" for name, item in json_schemas().items()
    }
    texts |= {name: with_figures(name, text) for name, text in measured.items()}
    for name, drawing in drawings(specs).items():
        page = f"{name}.md"
        texts[page] = with_picture(texts.get(page) or (FOLDER / page).read_text(encoding="utf-8"), name, drawing)
        texts[f"images/{name}.svg"] = drawing.svg()
    return texts


def operator_pages(specs: Iterable[Spec]) -> dict[str, str]:
    """The pages of operators."""
    return {f"{_OPERATORS}/{spec.stem}.md": "\n".join(_page(spec)) + "\n" for spec in specs}


_PLANS = ("<!-- profiles: made from the plans by `make docs`; type nothing here -->", "<!-- profiles: end -->")


def _profiles(page: str) -> str:
    """The page on profiles with the calls that each plans for one operator."""
    titles = (
        "profile",
        "calls at [corners](corners.md)",
        "[real calls](real-calls.md), at most",
        "random valid calls",
        "for each rule, calls that break it",
        "calls with guarded memory",
        "equal calls",
    )
    rows = [
        (
            f"`{chosen.name}`",
            *map(
                "{:,}".format,
                (chosen.corners, chosen.real, chosen.random, chosen.breaks, chosen.memory, chosen.equal_calls),
            ),
        )
        for chosen in PROFILES.values()
    ]
    return between(page, *_PLANS, "\n".join([_PLANS[0], *table(titles, rows), _PLANS[1]]))


_STANDARDS = (
    "<!-- standards: made from aclnn_cts/core/standard.py by `make docs`; type nothing here -->",
    "<!-- standards: end -->",
)


def _standards(page: str) -> str:
    """The page on vendors' standards with what each asks of one operator."""
    titles = ("profile", "cases", "of each dtype", "repeats", "sizes of dimensions", "values", "criterion")
    sizes = {
        SizeChoice.POWERS: "powers of two and one less, 1 to 2^20",
        SizeChoice.STEPS: "steps of 15 and 16",
        SizeChoice.RANDOM: "random",
    }
    rows = [
        (
            f"`{entry.name}`",
            f"{entry.cases:,}" if entry.cases else "combinations",
            f"{entry.cases_by_dtype:,}" if entry.cases_by_dtype else "—",
            f"{entry.repeats:,}",
            sizes[entry.sizes],
            "; ".join(map(_values, entry.values)),
            f"`{entry.tolerance}`",
        )
        for entry in STANDARDS.values()
    ]
    return between(page, *_STANDARDS, "\n".join([_STANDARDS[0], *table(titles, rows), _STANDARDS[1]]))


def _values(entry: Distribution) -> str:
    if entry.recipe == "uniform":
        return f"{entry.percent}% uniform in [-{entry.bound:g}, {entry.bound:g}]"
    low, high = entry.deviation
    if entry.name == "outliers":
        return f"{entry.percent}% the same with outliers"
    return f"{entry.percent}% {entry.name}, mean in [-{entry.mean:g}, {entry.mean:g}], deviation in [{low:g}, {high:g}]"


_REAL = ("<!-- real: made from specs/real/ by `make docs`; type nothing here -->", "<!-- real: end -->")


def _real(page: str, specs: Specs) -> str:
    """The page on real calls with how many each operator has, and which pairs of run and function are covered."""
    functions = json.loads((package_folder() / "real" / "functions.json").read_bytes())
    pairs = [(entry["operator"], entry["runs"]) for entry in functions.values()]
    covered, every = sum(runs for operator, runs in pairs if operator in specs), sum(runs for _, runs in pairs)
    missing = ", ".join(sorted({operator for operator, _ in pairs if operator not in specs})) or "none"
    sentence = f"{covered} of {every} pairs of training run and function ({covered / every:.1%}) have an operator here."
    rows = [
        (
            short_name(spec.operator),
            str(logged := sum(b"training run" in line for line in lines)),
            str(len(lines) - logged),
        )
        for spec in specs.values()
        if (lines := recorded_lines(spec.stem))
    ]
    columns = ("operator", "calls of training runs", "calls of transformers")
    text = [_REAL[0], f"{sentence} Missing: {missing}.", "", *table(columns, rows), _REAL[1]]
    return between(page, *_REAL, "\n".join(text))


def _families() -> Iterator[str]:
    """What the first sentence of each family's file says."""
    texts = {name: (package_folder() / "families" / f"{name}.yaml").read_text("utf-8") for name in family_names()}
    yield from head("specs/families/")
    yield "# Families"
    yield ""
    yield "A spec includes a [family](spec-properties.md#families), and so all that operators of a kind have in common."
    yield ""
    yield from table(("family", "holds"), [(f"`{name}`", _first_sentence(text)) for name, text in texts.items()])


def _first_sentence(text: str) -> str:
    """The first sentence of the comment that a YAML file begins with."""
    comment = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    return " ".join(line[1:].strip() for line in comment).partition(". ")[0].rstrip(".")


_IGNORED = ("<!-- ignored: made from waivers/ by `make docs`; type nothing here -->", "<!-- ignored: end -->")
_LATER = "3.0.0"
"""A torch that no waiver was tried on."""
_TORCH = {"device": "cpu", "outputs": "direct"}
"""What the adapter says of itself without options."""


def _ignored(page: str) -> str:
    """The page on the gate in CI with what the gate says of waivers that it ignores."""
    left = [item for item in _torch_waivers() if not admits_version(item, _LATER)]
    lines = (_IGNORED[0], "```text", ignored_line(left, "torch", _LATER), "```", _IGNORED[1])
    return between(page, *_IGNORED, "\n".join(lines))


def _checks() -> Iterator[str]:
    yield from head("aclnn_cts/trials/checks/registry.py")
    yield "# The checks"
    yield ""
    yield "What an implementation is held to, in the order of a run."
    yield ""
    yield from table(("check", "passes when"), [(f"`{item.id}`", item.sentence) for item in CHECKS.values()])


_REGIMES = {
    Regime.TINY: "no tensor has more than 64 elements",
    Regime.ODD: "every dimension above 3 is odd, most of them prime, or a power of two times an odd one of the call",
    Regime.ALIGNED: "a dimension is a multiple of 8: one, several or all are multiples of 8 to 256",
    Regime.EDGE: "a dimension is a multiple of 8, of a tile or of a block for each core, plus or minus 1",
    Regime.LONG: "a dimension has 2^10 to 2^17",
    Regime.WIDE: "2^10 rows or more",
    Regime.REAL: "a dimension is one of published networks: hidden sizes, vocabularies, frames, detection anchors",
    Regime.HEAVY: "2^18 to 2^22 elements; not in the quick profile",
}


def _regimes() -> Iterator[str]:
    yield from head("aclnn_cts/generate/sizes.py")
    yield "# Size regimes"
    yield ""
    yield "Kernels have one path for full tiles, one for tails, and one for what exceeds a core's memory. A regime is a"
    yield "class of sizes that leads to such a path. A case may be in several."
    yield ""
    yield "A plan begins with cases at [corners](corners.md). Those without a corner of sizes keep a regime. The"
    yield "random cases after them have these shares; the rest mixes sizes."
    yield ""
    shares = [(f"`{regime.value}`", text, f"{SHARES[regime] / 10:.3g} %") for regime, text in _REGIMES.items()]
    yield from table(("regime", "sizes", "share"), shares)
    yield ""
    yield "In the quick profile a tensor has at most 2^16 elements. The longer profiles have up to 2^18 in `long` and"
    yield "`real`. An operator whose last dimensions are all even multiples, such as `2*H`, has no calls in `odd`."
    yield ""
    quick, longer = (f"{LARGE_SHARES[heavy] / 10:.3g} %" for heavy in (False, True))
    yield "Sizes that training has large together are marked `large` in a [spec](spec-format.md#draw), as lengths and"
    yield f"head sizes of attention. Of the random calls, {quick} of `quick` and {longer} of the longer profiles have"
    yield "all of them at 64 or above, where the limit on elements has room. The table is of the other calls."
    yield "The longer profiles also make the `large_calls` of a spec, whatever its tensors have."


_FORMS = {
    BindingForm.DIRECT: "calls",
    BindingForm.AUTOGRAD: "a differentiated forward pass",
    BindingForm.FUNCTION: "a Python function",
}


def _standing(spec: Spec) -> Iterator[str]:
    """How far the operator is, and what was found with it."""
    state = completeness_of(spec)
    missing = ", ".join(demand.value for demand in state.missing)
    rows = [
        ("state", "complete" if state.is_complete else f"partial; missing: {missing}"),
        ("family", family_of(spec.operator)),
        *((f"in {library}", _bound(spec, library)) for library in _LIBRARIES),
        ("[mutants found](../power.md#generated-mutants)", _mutants_found(spec.operator)),
        ("failures of torch that a waiver accepts", ", ".join(_waived(spec.operator)) or "none"),
    ]
    yield from table(("what", "value"), rows)
    yield ""


_LIBRARIES = ("torch", "jax")
_bound_in: Callable[[str], Mapping[str, Binding]] = functools.cache(shipped_bindings)


def _bound(spec: Spec, library: str) -> str:
    """By which form of a binding a library computes the operator."""
    binding = _bound_in(library).get(spec.operator)
    return "not offered" if binding is None else f"by {_FORMS[binding.form]}"


@functools.cache
def _torch_waivers() -> Sequence[Waiver]:
    """Those on torch's kernels for the CPU."""
    return [
        item for item in read_waivers(shipped_waivers(), pinned=False) if names_adapter(item.scope, "torch", _TORCH)
    ]


def _waived(operator: str) -> Iterator[str]:
    """Links to findings that a waiver accepts."""
    accepted = [item for item in _torch_waivers() if operator in (item.scope.operator or ())]
    found = dict.fromkeys(item.link.removeprefix("docs/") for item in accepted)
    yield from (f"[{number}](../{link})" for number, link in enumerate(found, 1))


@functools.cache
def _matrices() -> Sequence[GeneratedMatrix]:
    """What generated mutants showed, the longest profile last."""
    found = [read_generated(path) for path in POWER.glob("generated_*.json")]
    return sorted(found, key=lambda matrix: list(PROFILES).index(matrix.profile))


def _mutants_found(operator: str) -> str:
    """On the longest profile that an operator was measured on; calls that are rare do not count."""
    for matrix in reversed(_matrices()):
        found, number = matrix.found_and_judged(rare=False, operator=operator)
        if number:
            return f"{found} of {number} ({matrix.profile})"
    return "not measured"


def _page(spec: Spec) -> Iterator[str]:
    yield from head(spec.path)
    yield f"# {spec.operator}"
    yield ""
    yield (
        f"[`{spec.path}`](../../{spec.path}) encodes the document *{spec.document}* in {len(spec.constraints)} "
        f"constraints and {len(spec.clauses)} clauses, for {', '.join(spec.products)}. "
        f"`aclnn-cts clauses {spec.stem}` lists every clause; [verdicts](../verdicts.md) says what strength means."
    )
    yield ""
    yield from _standing(spec)
    yield from _parameters(spec)
    if spec.modes is not None:
        yield from _modes(spec)
    if spec.rows is not None:
        yield from _rows(spec)
    yield from _constraints(spec)
    yield from document_errors(spec)
    yield from _examples(spec)
    yield from open_section(spec)


def _parameters(spec: Spec) -> Iterator[str]:
    yield "## Parameters"
    yield ""
    rows = (
        (
            f"`{item.name}`",
            f"`{item.type}`",
            item.role,
            "" if item.shape is None else f"`{item.shape.text}`",
            _by_product(spec, item, Spec.dtypes_of) if item.kind == "tensor" else "",
            _by_product(spec, item, _formats) if item.kind == "tensor" else "",
            ("any" if item.strided else "contiguous") if item.kind == "tensor" else "",
        )
        for item in spec.parameters
    )
    yield from table(("parameter", "C type", "role", "shape or items", "dtypes", "formats", "layout"), rows)
    yield ""
    yield "Dtypes, formats and layouts are those that generation draws valid calls from."
    yield ""


def _formats(spec: Spec, item: Parameter, product: str) -> tuple[str, ...]:
    while item.format_as is not None:
        item = spec.parameter(item.format_as)
    return item.formats.get(product, ())


def _by_product(spec: Spec, item: Parameter, values: Callable[[Spec, Parameter, str], tuple[str, ...]]) -> str:
    texts = {product: ", ".join(values(spec, item, product)) or "none" for product in spec.products}
    followed = f" (as `{item.dtype_as}`)" if item.dtype_as is not None and values is Spec.dtypes_of else ""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values())) + followed
    return "<br>".join(f"{product}: {text}" for product, text in texts.items()) + followed


def _modes(spec: Spec) -> Iterator[str]:
    modes = spec.modes
    if modes is None:
        return
    yield "## Modes"
    yield ""
    yield f"The format to which operands are rounded, by `{modes.attribute}`, product and the dtype of `{modes.by}`."
    yield ""
    columns = [(product, dtype) for product, rows in modes.operand.items() for dtype in rows]
    rows = (
        (f"{value} {name}", *(modes.operand[product][dtype][value] or "error" for product, dtype in columns))
        for value, name in modes.names.items()
    )
    yield from table((modes.attribute, *(f"{product} {dtype}" for product, dtype in columns)), rows)
    yield ""


def _rows(spec: Spec) -> Iterator[str]:
    yield "## Dtypes that go together"
    yield ""
    rows = ((product, *row) for product, entries in (spec.rows or {}).items() for row in entries)
    yield from table(("product", *spec.row_parameters), rows)
    yield ""


def _constraints(spec: Spec) -> Iterator[str]:
    yield "## Constraints"
    yield ""
    rows = (
        (f"`{item.id}`", _rule(spec, item), item.strength, " or ".join(conforming(item)), ", ".join(item.clauses))
        for item in spec.constraints
    )
    yield from table(("id", "rule", "strength", "conforming status when broken", "clauses"), rows)
    yield ""


def _rule(spec: Spec, item: Constraint) -> str:
    stated = [product for product in spec.products if item.applies_to(product)]
    texts = {product: _rule_text(item, product) for product in stated}
    if len(set(texts.values())) == 1:
        text = next(iter(texts.values()))
        text += f" ({', '.join(stated)})" if len(stated) < len(spec.products) else ""
    else:
        text = "<br>".join(f"{product}: {rule}" for product, rule in texts.items())
    return f"{text}; never put to a real device" if item.unsafe is not None else text


_SHAPE = re.compile(r"(\[.*\])$")
"""The shape expression at the end of a rule."""


def _rule_text(item: Constraint, product: str) -> str:
    """The rule with its condition, expressions as code."""
    text = item.rule.describe(product).en
    rule = f"`{text}`" if isinstance(item.rule, PredicateRule) else _SHAPE.sub(r"`\1`", text)
    return f"{rule} (when `{item.when_text}`)" if item.when_text is not None else rule


def _examples(spec: Spec) -> Iterator[str]:
    yield "## Examples"
    for example in spec.examples:
        yield ""
        where = "" if example.product is None else f", {example.product}"
        yield f"`{example.name}` (clause {example.at}{where}):"
        yield ""
        yield from table(
            ("argument", "value"), ((f"`{name}`", argument_text(value)) for name, value in example.arguments.items())
        )


def main(stems: Sequence[str]) -> int:
    """Write the pages, of some operators alone where they are named; and remove those of operators that are gone."""
    specs = load_specs()
    made = operator_pages(specs.select(stems)) if stems else pages(specs)
    for name, text in made.items():
        path = FOLDER / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if stems:
        return 0
    for path in (FOLDER / _OPERATORS).glob("*_*.md"):
        if f"{_OPERATORS}/{path.name}" not in made:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
