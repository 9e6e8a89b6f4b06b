"""`make docs`: the pages that are made from specs, registries and stored figures (`python -m docs.generate`).

A page, or the part of one between its marks, is a pure function of what it is made from, so that a test can hold the
committed pages against it.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from aclnn_cts.adapters.bindings import Form, read_bindings
from aclnn_cts.checks.plan import PROFILES
from aclnn_cts.checks.registry import CHECKS
from aclnn_cts.cli.ops import Completeness, completeness_of
from aclnn_cts.cli.spec_show import conforming, dtypes_of
from aclnn_cts.core.case import argument_text
from aclnn_cts.core.case_schema import case_schema
from aclnn_cts.document.catalogue import catalogue, family_of
from aclnn_cts.findings.waivers.file import read_waivers, shipped_waivers
from aclnn_cts.findings.waivers.matching import admits_version, ignored_line, names_adapter
from aclnn_cts.generate.sizes import SHARES, Regime
from aclnn_cts.mutants.generated_power import GeneratedMatrix, read_generated
from aclnn_cts.mutants.kill_matrix import shipped_matrix
from aclnn_cts.speclang.kinds import Constraint
from aclnn_cts.speclang.kinds_number import Holds
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Clause, Parameter, Spec
from docs.markdown import between, head, table
from docs.measured import SECTIONS, with_figures
from docs.packages import packages_page
from docs.power import power_page

FOLDER = Path(__file__).resolve().parent
_OPERATORS = "operators"
_CASE_SCHEMA = "../specs/case.schema.json"


def pages(specs: Specs) -> Mapping[str, str]:
    """The text of every page by its path below this folder."""
    made = {f"{_OPERATORS}/{spec.stem}.md": _page(spec) for spec in specs.values()}
    made |= {
        f"{_OPERATORS}/README.md": _index(specs),
        "checks.md": _checks(),
        "regimes.md": _regimes(),
        "power.md": power_page(specs),
    }
    texts = {name: "\n".join(lines) + "\n" for name, lines in made.items()}
    measured = {section.page: (FOLDER / section.page).read_text(encoding="utf-8") for section in SECTIONS}
    schema = json.dumps(case_schema(), indent=1) + "\n"
    for name, change in (("bindings.md", _bindings), ("ci.md", _ignored)):
        texts[name] = change((FOLDER / name).read_text(encoding="utf-8"))
    return texts | {_CASE_SCHEMA: schema} | {name: with_figures(name, text) for name, text in measured.items()}


_BOUND = ("<!-- bound: made from adapters/*_bindings.yaml by `make docs`; type nothing here -->", "<!-- bound: end -->")
_FORMS = {Form.DIRECT: "calls", Form.AUTOGRAD: "a differentiated forward pass", Form.FUNCTION: "a Python function"}


def _bindings(page: str) -> str:
    """The page on bindings with the operators that are bound."""
    rows = []
    for path in sorted((FOLDER.parent / "adapters").glob("*_bindings.yaml")):
        found = read_bindings(path)
        for form, words in _FORMS.items():
            names = sorted(name.removeprefix("aclnn") for name, item in found.items() if item.form is form)
            rows.append((path.stem.removesuffix("_bindings"), words, str(len(names)), f"`{', '.join(names)}`"))
    columns = ("library", "by", "count", "operators")
    return between(page, *_BOUND, "\n".join([_BOUND[0], *table(columns, rows), _BOUND[1]]))


_IGNORED = ("<!-- ignored: made from waivers/ by `make docs`; type nothing here -->", "<!-- ignored: end -->")
_LATER = "3.0.0"
"""A torch that no waiver was tried on."""
_TORCH = {"device": "cpu", "outputs": "direct"}
"""What the adapter says of itself without options."""


def _ignored(page: str) -> str:
    """The page on the gate in CI with what the gate says of waivers that it ignores."""
    left = [
        item
        for item in read_waivers(shipped_waivers(), pinned=False)
        if names_adapter(item.scope, "torch", _TORCH) and not admits_version(item, _LATER)
    ]
    lines = (_IGNORED[0], "```text", ignored_line(left, "torch", _LATER), "```", _IGNORED[1])
    return between(page, *_IGNORED, "\n".join(lines))


def _checks() -> Iterator[str]:
    yield from head("aclnn_cts/checks/registry.py")
    yield "# The checks"
    yield ""
    yield "What an implementation is held to, in the order of a run. Each [law](laws.md) is for some of the operators."
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
    yield "The first random cases of a plan are a covering array: every two of regime, dtypes, layout, kind of data and"
    yield "precision mode meet in one of them. All further random cases have these shares; the rest mixes sizes."
    yield ""
    shares = [(f"`{regime.value}`", text, f"{SHARES[regime] / 10:.3g} %") for regime, text in _REGIMES.items()]
    yield from table(("regime", "sizes", "share"), shares)
    yield ""
    yield "In the quick profile a tensor has at most 2^16 elements. The longer profiles have up to 2^18 in `long` and"
    yield "`real`. An operator whose last dimensions are all even multiples, such as `2*H`, has no calls in `odd`."


def _index(specs: Specs) -> Iterator[str]:
    yield from head("specs/, specs/checked.json, waivers/ and reports/generated_*.json")
    yield "# The operators"
    yield ""
    states = {name: completeness_of(spec) for name, spec in specs.items()}
    yield (
        f"{sum(state.is_complete for state in states.values())} of {len(specs)} operators are complete: the document "
        "is audited to 100 %, the oracle states a formula, and `aclnn-cts oracle check` finds no fault in it. "
        "`aclnn-cts ops --all` lists the documents without a spec too."
    )
    yield ""
    yield (
        "*Mutants found* is the share of [generated mutants](../power.md) that show in calls that are not rare. "
        "*Lines* are those of the spec above its clauses, and of the oracle. "
        "*torch* names the [findings](../findings-torch-cpu.md) on torch's CPU kernels that a waiver accepts."
    )
    matrices = [read_generated(path) for path in shipped_matrix().parent.glob("generated_*.json")]
    # The longest profile that was measured.
    matrices.sort(key=lambda matrix: list(PROFILES).index(matrix.profile))
    waivers = [
        item for item in read_waivers(shipped_waivers(), pinned=False) if names_adapter(item.scope, "torch", _TORCH)
    ]
    bound = read_bindings(FOLDER.parent / "adapters" / "torch_bindings.yaml")
    for family in sorted({family_of(name) for name in specs}):
        yield ""
        yield f"## {family.capitalize()}"
        yield ""
        rows = []
        for name, spec in specs.items():
            if family_of(name) == family:
                links = {item.link.rpartition("/")[2]: None for item in waivers if name in (item.scope.operator or ())}
                found = ", ".join(f"[{number}](../{link})" for number, link in enumerate(links, 1))
                rows.append(
                    (
                        f"[{name}]({spec.stem}.md)",
                        _state(states[name]),
                        ", ".join(spec.products),
                        str(len(spec.constraints)),
                        str(len(spec.clauses)),
                        _lines(spec),
                        _mutants_found(name, matrices),
                        (found or "no waiver") if name in bound else "not offered",
                    )
                )
        columns = ("operator", "state", "products", "constraints", "clauses", "lines", "mutants found", "torch")
        yield from table(columns, rows)
    yield from _drawn(states)


def _lines(spec: Spec) -> str:
    """The lines of a spec above its clauses, and of its oracle."""
    text = (FOLDER.parent / "specs" / f"{spec.stem}.yaml").read_text(encoding="utf-8")
    above = re.split(r"\n(?:clauses|claims):", text, maxsplit=1)[0]
    oracle = (FOLDER.parent / "oracles" / f"{spec.stem}.py").read_text(encoding="utf-8")
    return f"{above.count(chr(10)) + 1} + {oracle.count(chr(10))}"


_DRAWN_BY, _DRAWN = "68a196a197a8f9a76868cd97ad469d2b5f429cb8", 11
"""The commit that drew documents, and how many."""


def _drawn(states: Mapping[str, Completeness]) -> Iterator[str]:
    """Whether the documents that a commit drew became operators."""
    yield ""
    yield "## Drawn operators"
    yield ""
    yield (
        f"A commit drew these: they are the first {_DRAWN} public documents by the SHA-256 of the commit, "
        f"`{_DRAWN_BY}`, and the name behind it. LeakyRelu alone had a spec before."
    )
    yield ""
    names = sorted(catalogue(), key=lambda name: hashlib.sha256(f"{_DRAWN_BY}{name}".encode()).digest())
    rows = [(name, _state(states.get(name))) for name in names[:_DRAWN]]
    yield from table(("operator", "state"), rows)


def _state(found: Completeness | None) -> str:
    return "draft" if found is None else "complete" if found.is_complete else "partial"


def _mutants_found(operator: str, matrices: Sequence[GeneratedMatrix]) -> str:
    """On the longest profile that an operator was measured on."""
    for matrix in reversed(matrices):
        found, number = matrix.rate(rare=False, operator=operator)
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
    yield from _parameters(spec)
    if spec.modes is not None:
        yield from _modes(spec)
    if spec.rows is not None:
        yield from _rows(spec)
    yield from _constraints(spec)
    yield from _uncertain(spec)
    yield from _examples(spec)


def _parameters(spec: Spec) -> Iterator[str]:
    yield "## Parameters"
    yield ""
    rows = (
        (
            f"`{item.name}`",
            f"`{item.type}`",
            item.role,
            "" if item.shape is None else f"`{item.shape.text}`",
            _by_product(spec, item, dtypes_of) if item.kind == "tensor" else "",
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
    followed = f" (as `{item.dtype_as}`)" if item.dtype_as is not None and values is dtypes_of else ""
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
    rule = f"`{text}`" if isinstance(item.rule, Holds) else _SHAPE.sub(r"`\1`", text)
    return f"{rule} (when `{item.when_text}`)" if item.when_text is not None else rule


def _uncertain(spec: Spec) -> Iterator[str]:
    clauses = [clause for clause in spec.clauses if clause.certainty != "stated"]
    if not clauses:
        return
    yield "## What the document leaves open or contradicts"
    yield ""
    yield from table(
        ("clause", "certainty", "statement", "encoded by"),
        ((clause.at, clause.certainty, clause.en, _encoding(clause)) for clause in clauses),
    )
    yield ""


def _encoding(clause: Clause) -> str:
    if clause.constraints:
        return ", ".join(f"`{identifier}`" for identifier in clause.constraints)
    if clause.untestable is not None:
        return f"nothing: {clause.untestable[0]}"
    for what, value in (("check", clause.check), ("interface", clause.interface), ("example", clause.example)):
        if value is not None:
            return f"{what} {value}"
    return ""


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


def main() -> int:
    """Write the pages, and remove those of operators that are gone."""
    made = pages(load_specs())
    for name, text in made.items():
        path = FOLDER / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    page = FOLDER / "architecture.md"
    page.write_text(packages_page(page.read_text(encoding="utf-8")), encoding="utf-8")
    for path in (FOLDER / _OPERATORS).glob("*.md"):
        if f"{_OPERATORS}/{path.name}" not in made:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
