"""A spec small enough to be changed line by line, for tests of what its builder says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.build import build_spec
from aclnn_cts.speclang.model import Spec
from aclnn_cts.speclang.yaml_file import YamlFile, parse_yaml
from tests.support.spec_text import interface, spec_from_text

SMALL = """\
operator: aclnnSmall
document: {title: aclnnSmall, language: en}
products: [atlas-training, atlas-a2]
defaults: {null: none, strided: none, empty: none, formats: none}
tables: {floats: {atlas-training: [FLOAT], atlas-a2: [FLOAT, BF16]}}
parameters:
  - {name: x, type: "const aclTensor *", role: input, shape: "[*A, D]", dtypes: floats, formats: [ND], strided: true}
  - {name: sizes, type: "const aclIntArray *", role: attribute, items: "[D, 2]"}
  - {name: pad, type: int8_t, role: attribute}
  - {name: flag, type: bool, role: attribute}
  - {name: scale, type: double, role: attribute}
  - {name: out, type: "aclTensor *", role: output, shape: "[*x]", dtype: "as x", formats: [ND]}
draws:
  - {run: A, length: [0, 3], sizes: [1, 9]}
  - {name: D, in: [1, 9]}
  - {name: pad, in: [0, 7]}
  - {name: flag, one_of: [false, true]}
  - {name: scale, one_of: [0.0, "D / 3"]}
constraints:
  - {id: x.null, kind: present, of: x, strength: listed, status: ACLNN_ERR_PARAM_NULLPTR}
  - {id: pad.range, kind: range, of: pad, in: [0, 7], strength: limit}
  - {id: out.shape, kind: shape, of: out, is: "[*x]", strength: open}
clauses:
  params.x: [{en: "x.", zh: "x。", constraints: [x.null]}, dtype]
  params.pad: [{en: "pad.", zh: "pad。", constraints: [pad.range]}]
  params.out: [{en: "out.", zh: "out。", constraints: [out.shape]}]
"""


_JUNK: tuple[Any, ...] = (None, 3, "x", {}, [["x"]], {"is": {}})


def messages(text: str) -> list[str]:
    """What building a file says is wrong with it."""
    _, problems = build_spec(parse_yaml(text, name="small.yaml"), stem="small", interface=interface())
    return list(problems.sorted())


def built(text: str) -> Spec:
    """The spec of a text whose form is right, whatever else is wrong with it."""
    spec, _ = build_spec(parse_yaml(text, name="small.yaml"), stem="small", interface=interface())
    assert spec is not None
    return spec


def stated(spec: Spec, identifier: str) -> dict[str, Any]:
    """What a constraint promises, as it is written: fields that say nothing are left out."""
    item = spec.constraint(identifier)
    found = {
        "strength": item.strength,
        "status": item.statuses,
        "requires": item.requires,
        "group": item.group,
        "products": item.products,
        "when": item.when_text,
        "breaks": tuple({name: value.text for name, value in entry.items()} for entry in item.breaks),
    }
    return {key: value for key, value in found.items() if value}


def junk_is_a_message(text: str) -> None:
    """Builds a file with each value in turn, at any depth, replaced by junk: none of them raises."""
    content = parse_yaml(text, name="small.yaml").content
    for holder, key in list(_places(content)):
        kept = holder[key]
        for junk in _JUNK:
            holder[key] = junk
            file = YamlFile(name="small.yaml", text=text, content=content, lines={})
            build_spec(file, stem="small", interface=interface())
        holder[key] = kept


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key of a document."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _places(value[key])


def changed(old: str, new: str, *, text: str = SMALL) -> str:
    """The small spec with one place changed, which must be there."""
    assert text.count(old) == 1, (old, text.count(old))
    return text.replace(old, new)


def with_constraint(fields: str, *, text: str = SMALL) -> str:
    """The small spec with one more constraint, called `it`, and its clause."""
    text = changed("clauses:\n", f"  - {{id: it, {fields}}}\nclauses:\n", text=text)
    return text + '  limits: [{en: "it.", zh: "it。", constraints: [it]}]\n'


def spec_with(fields: str) -> Spec:
    """The small spec with one more constraint, built."""
    return spec_from_text(with_constraint(fields), stem="small")


def small_case(product: str = "atlas-a2", **arguments: object) -> Case:
    """A valid call of the small operator, with arguments changed."""
    valid: dict[str, object] = {
        "x": Tensor((2, 3), "FLOAT", data=Data(values=(1, 2, 3, 4, 5, 6))),
        "sizes": (3, 2),
        "pad": 1,
        "flag": False,
        "scale": 0.0,
        "out": Tensor((2, 3), "FLOAT"),
    }
    assert arguments.keys() <= valid.keys()
    return Case("aclnnSmall", {**valid, **arguments}, Target(product=product))  # type: ignore[dict-item]  # any argument
