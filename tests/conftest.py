"""For all tests: examples are not timed, since the machine does other things too, and text is held by snapshots.

A snapshot is a file `__snapshots__/<module>/<test>.txt`. `pytest --snapshot-update` writes those that changed.
"""

from __future__ import annotations

import gc
from collections import defaultdict

import pytest
from hypothesis import settings

from aclnn_cts.speclang.load import load_specs
from aclnn_cts.speclang.model import Spec
from tests.support.ran import make_key, ran
from tests.support.targets import products_proven_by_another, proven_by_another

__all__ = ["make_key", "ran"]
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    """Thousands of collected tests live to the end: the cyclic collector need not look through them each time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark `catalogue` tests of every operator for those operators that another of their family proves.

    That goes for slow tests and for those marked `mechanism`; of these also for products that another operator has.
    """
    chosen = [
        item
        for item in items
        if isinstance(item, pytest.Function)
        and hasattr(item, "callspec")
        and (item.get_closest_marker("slow") or item.get_closest_marker("mechanism"))
    ]
    if not chosen:
        return
    operators, proven, products = load_specs().names, proven_by_another(), products_proven_by_another()
    named: defaultdict[str, list[tuple[pytest.Function, str]]] = defaultdict(list)
    for item in chosen:
        for value in item.callspec.params.values():
            name = value.operator if isinstance(value, Spec) else value if isinstance(value, str) else ""
            if name in operators:
                named[item.nodeid.partition("[")[0]].append((item, operators[name]))
    for of_test in named.values():
        # A test of a few operators is about these.
        if 2 * len({operator for _, operator in of_test}) > len(set(operators.values())):
            for item, operator in of_test:
                product = item.callspec.params.get("product") if item.get_closest_marker("mechanism") else None
                if operator in proven or (operator, product) in products:
                    item.add_marker("catalogue")


TOGETHER = (
    "tests/cli/test_cli_screens.py",
    "tests/docs/test_ci_snippets.py",
    "tests/findings/waivers/test_draft.py",
    "tests/reports/test_",
    "tests/triage/test_shrink_run.py",
)
"""Files and folders whose tests share a process: a run, a build or a browser takes longer to make than to use."""


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """A test at a time for each process, but for those in `TOGETHER`.

    xdist has marks for this, which do not reach it with pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        return next((begin for begin in TOGETHER if nodeid.startswith(begin)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Called by xdist where there is more than one process."""
    return Scheduling(config, log)


class TextSnapshot(SingleFileSnapshotExtension):
    """The text of whatever is compared, one file a test."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


@pytest.fixture(name="snapshot")
def text_snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Compares with the test's own file: `assert text == snapshot`."""
    return snapshot.use_extension(TextSnapshot)
