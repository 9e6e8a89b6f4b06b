"""`aclnn-cts spec corners`: which corners of a document the calls of a profile are at, and which none is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from aclnn_cts.cli.options import checked_product, command, edition_option, json_option, product_option, specs_option
from aclnn_cts.cli.output import note
from aclnn_cts.cli.render import RepeatedView, TextLine, View, show
from aclnn_cts.core.target import Target
from aclnn_cts.generate.corner_list import corner_list_text, corners_path
from aclnn_cts.generate.corner_recording import listed_corners
from aclnn_cts.generate.corner_walk import CornerWalk
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.package import folder_of
from aclnn_cts.store.output_file import write_atomically
from aclnn_cts.trials.plan import PROFILES, corner_calls, profile


@command(example="aclnn-cts spec corners softmax_backward --profile standard")
@click.argument("operator", metavar="OP")
@product_option
@click.option(
    "--profile",
    "profile_name",
    metavar="P",
    default="quick",
    show_default=True,
    help=f"Whose calls: {', '.join(PROFILES)}.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The seed of the plan.")
@click.option("--record", is_flag=True, help="Write the corners of all products to corners/ beside the spec.")
@specs_option
@edition_option
@json_option
def corners(
    *,
    operator: str,
    product: str | None,
    profile_name: str,
    seed: int,
    record: bool,
    folders: tuple[Path, ...],
    edition: str,
    as_json: bool,
) -> None:
    """List the corners of what OP's document allows: how many planned calls are at each, and what refuses the others.

    A corner is a value or a cell of values of one factor: dtypes, sizes and how they relate, attributes, windows,
    ranks, views, null pointers, contents of indices. Calls are made for every two of them that one call can have.
    """
    spec = load_specs(folders, edition=edition).find(operator, where="OP")
    chosen, target = profile(profile_name), Target(checked_product(product, spec))
    walk = CornerWalk(Sampler(spec, target), seed=seed, heavy=chosen.heavy)
    met: Counter[tuple[str, str]] = Counter()
    calls = corner_calls(spec, target.product, chosen)
    for _ in range(calls):
        met.update(walk.next_call().corners)
    missed = {(factor, label): reason for factor, label, reason in walk.missed_corners()}
    factors = [
        {
            "factor": factor.name,
            "corners": list(_corners(factor.name, [item.label for item in factor.corners], met, missed)),
        }
        for factor in walk.factors
    ]
    document = {
        "operator": spec.operator,
        "product": target.product,
        "profile": chosen.name,
        "calls": calls,
        "corners": sum(len(factor.corners) for factor in walk.factors),
        "visited": sum(len(factor.corners) for factor in walk.factors) - len(missed),
        "factors": factors,
    }
    words = {"factors": [{**item, **_words(item["corners"])} for item in factors]}
    show(document, _VIEW, words, as_json=as_json)
    if record:
        path = corners_path(folder_of(spec.path, folders), spec.stem)
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, corner_list_text(listed_corners(spec)))
        note(f"written: {path}")


def _corners(
    factor: str, labels: list[str], met: Counter[tuple[str, str]], missed: dict[tuple[str, str], str]
) -> Iterator[dict[str, Any]]:
    for label in labels:
        key = factor, label
        yield {"corner": label, "calls": met[key]} | ({"refused": missed[key]} if key in missed else {})


def _words(corners: Any) -> dict[str, str]:  # noqa: ANN401 - what `_corners` gives
    """A factor's corners as running text: those with calls, then the others by what refuses them."""
    refused: dict[str, list[str]] = {}
    for item in corners:
        if "refused" in item:
            refused.setdefault(item["refused"], []).append(item["corner"])
    return {
        "called": ", ".join(f"{item['corner']} ({item['calls']})" for item in corners if "refused" not in item),
        "others": "; ".join(f"{reason}: {', '.join(labels)}" for reason, labels in refused.items()),
    }


_VIEW: View = (
    TextLine("{operator} on {product}", style="bold"),
    "{visited} of {corners:corner} visited by {calls:call} of the profile {profile}; the calls of each in brackets.",
    RepeatedView(
        "factors",
        (
            "",
            TextLine("{factor}", style="bold"),
            TextLine("{called}", indent=2),
            TextLine("refused by {others}", indent=2),
        ),
    ),
)
