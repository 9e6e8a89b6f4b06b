"""`aclnn-cts doctor`: what is installed here, which adapters can be used, and why the others cannot."""

from __future__ import annotations

import click

from aclnn_cts.cli.options import command, json_option
from aclnn_cts.cli.render import Fields, RepeatedView, TableView, TextLine, View, show
from aclnn_cts.runs.doctor import describe_surroundings

_VIEW: View = (
    TextLine("aclnn-cts {aclnn_cts}, Python {python.version} ({python.executable})", style="bold"),
    "{machine.system}, {machine.processors} processors to use",
    "",
    TableView("libraries", {"LIBRARY": "{key}", "VERSION": "{value|not installed}"}),
    "",
    TableView(
        "adapters",
        {
            "ADAPTER": "{name}",
            "USABLE": "{can}",
            "OPERATORS": "{?usable}{operators|any}",
            "WHAT IT IS": "[{problem}][{!problem}{description}]",
        },
    ),
    "",
    RepeatedView(
        "native",
        (
            TextLine("{name}:", style="bold"),
            RepeatedView(
                "first",
                (
                    TextLine("--phases one can judge the statuses of {number} operators: {operators|none}", indent=2),
                    TextLine("not in the library: {missing}", indent=2),
                    TextLine("{?operators}{command} (P: the product that it was built for)", indent=2),
                ),
            ),
            RepeatedView("environment", (TextLine("{key}: {value}", indent=2),)),
            "",
        ),
    ),
    RepeatedView("torch_devices", ("torch device {device}: {name}",)),
    "{!torch_devices}torch devices: none, torch is not installed",
    "operators: {specs.problem}",
    "{!specs.problem}operators: {specs.operators}",
    "runs are written below {store.folder}: [{?store.writable}writable][{store.problem}]",
)


@command(example="aclnn-cts doctor")
@click.argument("adapters", nargs=-1, metavar="[ADAPTER]...")
@json_option
def doctor(*, adapters: tuple[str, ...], as_json: bool) -> None:
    """Say what is installed here: versions, adapters that can be used, devices, and whether runs can be stored.

    ADAPTER is one as --adapter names it, such as cann:library=FILE; without any, those that ship are tried.
    """
    report = describe_surroundings(adapters)
    show(report, _VIEW, _words(report), as_json=as_json)


def _words(report: Fields) -> Fields:
    """Adapters as the text shows them: which can be used, and more of those that call native code."""
    adapters = [
        {**item, "can": "yes" if item["usable"] else "--phases one" if item["phases_one"] else "no"}
        for item in report["adapters"]
    ]
    native = [
        {**item, "first": [] if item["usable"] else [{**first, "number": len(first["operators"])}]}
        for item in adapters
        if item["name"].partition(":")[0] in ("cann", "loopback") and ((first := item["phases_one"]) or item["usable"])
    ]
    return {"adapters": adapters, "native": native}
