"""`aclnn-cts doctor`: what is installed here, which adapters can be used, and why the others cannot."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console

from aclnn_cts.cli.options import command, json_option
from aclnn_cts.cli.output import console, emit, show_rows, wrap
from aclnn_cts.runs.doctor import describe_surroundings


@command(example="aclnn-cts doctor")
@click.argument("adapters", nargs=-1, metavar="[ADAPTER]...")
@json_option
def doctor(*, adapters: tuple[str, ...], as_json: bool) -> None:
    """Say what is installed here: versions, adapters that can be used, devices, and whether runs can be stored.

    ADAPTER is one as --adapter names it, such as cann:library=FILE; without any, those that ship are tried.
    """
    report = describe_surroundings(adapters)
    if as_json:
        emit(report)
    else:
        _show(console(), report)


def _show(out: Console, report: dict[str, Any]) -> None:
    python, machine = report["python"], report["machine"]
    wrap(out, f"aclnn-cts {report['aclnn_cts']}, Python {python['version']} ({python['executable']})", style="bold")
    wrap(out, f"{machine['system']}, {machine['processors']} processors to use")
    out.print()
    libraries = [(name, version or "not installed") for name, version in report["libraries"].items()]
    show_rows(out, ("LIBRARY", "VERSION"), libraries)
    out.print()
    show_rows(out, ("ADAPTER", "USABLE", "OPERATORS", "WHAT IT IS"), map(_adapter, report["adapters"]))
    out.print()
    for item in report["adapters"]:
        first = item["phases_one"]
        if item["name"].partition(":")[0] in ("cann", "loopback") and (item["usable"] or first):
            wrap(out, f"{item['name']}:", style="bold")
            if first and not item["usable"]:
                _show_first_phases(out, first)
            for name, value in item["environment"].items():
                wrap(out, f"{name}: {value}", indent=2)
            out.print()
    for item in report["torch_devices"]:
        wrap(out, f"torch device {item['device']}: {item['name']}")
    if not report["torch_devices"]:
        wrap(out, "torch devices: none, torch is not installed")
    specs, store = report["specs"], report["store"]
    wrap(out, f"operators: {specs['problem'] or ', '.join(specs['operators'])}")
    wrap(out, f"runs are written below {store['folder']}: {'writable' if store['writable'] else store['problem']}")


def _adapter(item: dict[str, Any]) -> tuple[str, str, str, str]:
    usable = "yes" if item["usable"] else "--phases one" if item["phases_one"] else "no"
    operators = "any" if item["operators"] is None else str(item["operators"])
    return item["name"], usable, operators if item["usable"] else "", item["problem"] or item["description"]


def _show_first_phases(out: Console, first: dict[str, Any]) -> None:
    """What can be judged without a runtime."""
    operators, missing = first["operators"], first["missing"]
    named = ", ".join(operators) or "none"
    wrap(out, f"--phases one can judge the statuses of {len(operators)} operators: {named}", indent=2)
    if missing:
        wrap(out, f"not in the library: {', '.join(missing)}", indent=2)
    if operators:
        wrap(out, f"{first['command']} (P: the product that it was built for)", indent=2)
