"""The calls of `specs/real/`, of a folder of recorded calls and of networks: `python -m tools.real_calls FOLDER`.

A file `FUNCTION.jsonl` has one distinct call of ATen's FUNCTION a line, most widespread first: `args`, in how many of
the recorded training runs it occurs (`models`), and one of them (`example`).
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from aclnn_cts.core.case import Case, Origin, with_arguments
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.real_calls import STANDARD_ELEMENTS, real_case
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.package import package_folder
from aclnn_cts.training.dumped import DumpedCall, bound_case, named_calls
from tools.networks import network_calls

RUNS = 155
"""Recorded training runs."""
MOST = 24
"""Calls of an operator; of convolutions, which differ most, all."""
_ALL = "aclnnConvolutionBackward"

_CONVOLUTION = (
    *("gradOutput", "input", "weight", "biasSizes", "stride", "padding"),
    *("dilation", "transposed", "outputPadding", "groups", "outputMask"),
)


def calls_of(function: str, args: Sequence[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each operator that a recorded call is one of, with its arguments: as bound, or as written here."""
    name, _, overload = function.partition(".")
    if name == "convolution_backward":
        given = dict(zip(_CONVOLUTION, args, strict=True))
        # Without a bias torch says [0]; the operator takes the channels.
        yield _ALL, {**given, "biasSizes": [args[0]["tensor"]["shape"][1]], "cubeMathType": 0}
    elif name == "_adaptive_avg_pool2d_backward":
        yield "aclnnAdaptiveAvgPool2dBackward", {"gradOutput": args[0], "self": args[1]}
    elif name == "unfold_backward":
        yield "aclnnUnfoldGrad", dict(zip(("gradOut", "inputSizes", "dim", "size", "step"), args, strict=True))
    elif name == "nll_loss_backward":
        # The operator has no call without weights, and a total of one dimension.
        weight, total = (
            {"tensor": {**args[0]["tensor"], "shape": shape}} for shape in (args[1]["tensor"]["shape"][-1:], [1])
        )
        yield from named_calls(DumpedCall(function=name, args=[*args[:3], args[3] or weight, *args[4:6], total]))
    elif overload == "vec":
        # This overload has one argument for both scales, or none, and leaves the sizes out where scales are given.
        scales = args[-1] or (0.0, 0.0)
        sizes = args[1] or args[0]["tensor"]["shape"][2:]
        yield from named_calls(DumpedCall(function=name, args=[args[0], sizes, *args[2:-1], *scales]))
    else:
        yield from named_calls(DumpedCall(function=name, args=list(args)))


def recorded(folder: Path) -> dict[str, list[Case]]:
    """The calls of each operator that some product can have, without data."""
    found: dict[str, list[Case]] = defaultdict(list)
    for path in sorted(folder.glob("*.jsonl")):
        left: Counter[str] = Counter()
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            runs = "run" if entry["models"] == 1 else "runs"
            source = f"{entry['example']}; in {entry['models']} of {RUNS} training {runs}"
            try:
                for operator, arguments in calls_of(path.stem, entry["args"]):
                    left[_kept(found[operator], operator, arguments, source)] += 1
            except UsageError as error:
                left[str(error)] += 1
        for reason, number in left.items():
            if reason:
                print(f"{path.stem}: {number} left out: {reason}")
    return found


def _kept(cases: list[Case], operator: str, arguments: Mapping[str, Any], source: str) -> str:
    """Keep a call of an operator; why it is left out, or an empty text."""
    if operator not in load_specs():
        return "no spec"
    if len(cases) >= MOST and operator != _ALL:
        return f"more than {MOST}"
    case = bound_case(operator, arguments, source=source)
    if not _is_possible(case):
        return "no product can have it"
    cases.append(_bare(case))
    return ""


def _is_possible(case: Case) -> bool:
    spec = load_specs()[case.operator]
    samplers = (Sampler(spec, Target(product)) for product in spec.products)
    return any(real_case(sampler, case, StreamChoices(0, "real", 0), most=STANDARD_ELEMENTS) for sampler in samplers)


def _bare(case: Case) -> Case:
    """The case without data."""
    bare = {name: msgspec.structs.replace(tensor, data=None) for name, tensor in case.tensors()}
    return msgspec.structs.replace(
        with_arguments(case, bare), target=Target(case.product), origin=Origin(kind="real", source=case.origin.source)
    )


_LATER = {"im2col_backward": "aclnnIm2colBackward", "grid_sampler_2d_backward": "aclnnGridSampler2DBackward"}
"""Operators of recorded functions that have a document and no spec yet."""
_ROW = re.compile(r"\| ([a-z0-9_.]+) \| ([0-9]+) \| [0-9]+ \|")


def functions_of(folder: Path) -> dict[str, dict[str, object]]:
    """By recorded function, its operator, and in how many training runs it occurs, as the folder's page counts them."""
    found: dict[str, dict[str, object]] = {}
    for name, models in _ROW.findall((folder / "README.md").read_text(encoding="utf-8")):
        path = folder / f"{name}.jsonl"
        if path.exists():
            args = json.loads(path.read_text(encoding="utf-8").partition("\n")[0])["args"]
            operator = _LATER.get(name) or next(calls_of(name, args))[0]
            found[name] = {"operator": operator, "runs": int(models)}
    return found


def main() -> None:
    """Write the files of all operators that the folder has calls of."""
    stems = {spec.operator: spec.stem for spec in load_specs().values()}
    folder = Path(sys.argv[1])
    found = recorded(folder)
    for operator, arguments, source in network_calls():
        if reason := _kept(found[operator], operator, arguments, source):
            print(f"{operator}, {source}: left out: {reason}")
    for operator, cases in found.items():
        if cases:
            lines = (json.dumps(case_to_json(case), separators=(",", ":")) for case in cases)
            path = package_folder() / "real" / f"{stems[operator]}.jsonl"
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            print(f"{path.stem}: {len(cases)} calls")
    text = json.dumps(functions_of(folder), indent=1)
    (package_folder() / "real" / "functions.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
