"""The pytest plugin: `pytest -p aclnn_cts.plugin --pyargs aclnn_cts.suites --adapter A` is a gate for CI.

A suite module names its check; the plugin makes one test of it for each operator.
May import `runs` and what it needs of `checks` and `findings.waivers`. Start reading at `conformance`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aclnn_cts.plugin.conformance import Conformance, Refusal
from aclnn_cts.plugin.report import Report, tell
from aclnn_cts.sandbox.limits import DEFAULT_MAX_BYTES

if TYPE_CHECKING:
    from aclnn_cts.runs.gate import Gate, GateOptions
    from aclnn_cts.speclang.model import Spec

__all__ = ["Conformance"]

NO_VERDICT = 3
"""The exit code where the implementation cannot be opened, as on the command line."""
NEEDS_ADAPTER = (
    "the conformance suites need --adapter: reference, torch or package.module:factory (the harness's own tests run "
    "without: pytest tests)"
)
_NOTHING = ("", "nothing")
_OPTIONS = pytest.StashKey["GateOptions"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the gate; they mean what they mean to `aclnn-cts run`."""
    group = parser.getgroup("aclnn-cts", "conformance of aclnn operators")
    group.addoption("--adapter", metavar="A", help="what is tested: reference, torch, package.module:factory, ...")
    group.addoption(
        "--product",
        metavar="P",
        help="the product that documents speak of, such as atlas-a2 (default: the device's own, else atlas-a2)",
    )
    group.addoption(
        "--op", action="append", default=[], metavar="OP", help="an operator; several times, or with commas between"
    )
    group.addoption("--profile", default="quick", metavar="NAME", help="quick (default), standard or thorough")
    group.addoption("--seed", type=int, default=0, metavar="S", help="the same seed makes the same plan")
    group.addoption("--waivers", action="append", default=[], metavar="FILE", help="waivers beside those that ship")
    group.addoption("--specs", action="append", default=[], metavar="DIR", help="a folder with specs of your own")
    group.addoption(
        "--max-bytes", type=int, default=DEFAULT_MAX_BYTES, metavar="N", help="most bytes of one call's arguments"
    )
    group.addoption(
        "--min-judged",
        type=int,
        default=90,
        metavar="PERCENT",
        help="least share of a test's trials that must be judged (default 90)",
    )
    group.addoption(
        "--call-timeout",
        type=float,
        metavar="SECONDS",
        help="how long a call may take before it counts as a hang (default 60, or the adapter's own limit)",
    )
    group.addoption("--phases", choices=["one", "both"], default="both", help="one: statuses alone (default both)")
    group.addoption(
        "--strict-limits",
        action="store_true",
        help="fail a limit not enforced, an executor written after an error, and an error of another class",
    )
    group.addoption("--failures", metavar="DIR", help="where trial files of findings go (default: pytest's cache)")


def _is_worker(config: pytest.Config) -> bool:
    """Whether this is a process of xdist that runs tests and reports to another."""
    return hasattr(config, "workerinput")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """A wrong word of the command line is told once: before anything is collected, and before xdist has workers."""
    config = session.config
    if config.getoption("--adapter"):
        _narrow(config)
        if not _is_worker(config):
            options = _options(config)
            report = Report(options.settings.adapter, waivers=options.waivers)
            config.pluginmanager.register(report, "aclnn-cts-report")
    elif not _is_worker(config) and any(_within_suites(config, word) for word in config.args):
        raise pytest.UsageError(NEEDS_ADAPTER)


def _within_suites(config: pytest.Config, word: str) -> bool:
    """Whether a path or module on the command line is one of the suites, or their folder."""
    place = word.partition("::")[0]
    if config.getoption("pyargs") and place.split(".")[:2] == ["aclnn_cts", "suites"]:
        return True
    suites = Path(__file__).parents[1] / "suites"
    return (config.invocation_params.dir / place).resolve().is_relative_to(suites.resolve())


def _narrow(config: pytest.Config) -> None:
    """Where `testpaths` of the configuration names the suites beside other tests, `--adapter` asks for the suites."""
    if config.args_source == pytest.Config.ArgsSource.TESTPATHS:
        config.args = [word for word in config.args if _within_suites(config, word)] or config.args


def _options(config: pytest.Config) -> GateOptions:
    """The options, read once a process; pytest's UsageError for the first that is wrong."""
    from aclnn_cts.checks.laws import law_ids
    from aclnn_cts.core.errors import HarnessError, UsageError
    from aclnn_cts.runs.gate import gate_options

    if _OPTIONS not in config.stash:
        try:
            options = gate_options(
                adapter=config.getoption("--adapter"),
                product=config.getoption("--product"),
                operators=[word for option in config.getoption("--op") for word in option.split(",")],
                profile_name=config.getoption("--profile"),
                seed=config.getoption("--seed"),
                waivers=[Path(file) for file in config.getoption("--waivers")],
                spec_folders=[Path(folder) for folder in config.getoption("--specs")],
                max_bytes=config.getoption("--max-bytes"),
                phases=1 if config.getoption("--phases") == "one" else 2,
                call_seconds=config.getoption("--call-timeout"),
                strict_limits=config.getoption("--strict-limits"),
                min_judged=config.getoption("--min-judged"),
            )
            for spec in options.operators:
                law_ids(spec)
        except (UsageError, HarnessError) as error:
            raise pytest.UsageError(str(error)) from None
        if failures := config.getoption("--failures"):
            _make(Path(failures))
        config.stash[_OPTIONS] = options
    return config.stash[_OPTIONS]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise pytest.UsageError(
            f"--failures {folder}: {error.strerror}; expected a folder that can be written"
        ) from None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each operator, for each law of each operator, or for each case that a waiver pins."""
    if "conformance" not in metafunc.fixturenames:
        return
    promise = metafunc.module.PROMISE
    if not metafunc.config.getoption("--adapter"):
        metafunc.parametrize("conformance", [("", promise)], ids=["no-adapter"], indirect=True)
        return
    options = _options(metafunc.config)
    cases = [
        pytest.param((spec.operator, identifier), id=_test_id(spec, identifier, promise))
        for spec in options.operators
        for identifier in _identifiers(options, spec, promise)
    ]
    if not cases:
        # Without a case pytest would make a test that is skipped; this one is left out of the collection.
        cases = [pytest.param(_NOTHING, id="none")]
    metafunc.parametrize("conformance", cases, indirect=True, scope="function")


def _identifiers(options: GateOptions, spec: Spec, promise: str) -> tuple[str, ...]:
    if not promise.endswith("/"):
        return (promise,)
    from aclnn_cts.runs.gate import PINNED

    if promise == PINNED:
        return options.pinned(spec)
    from aclnn_cts.checks.laws import law_ids
    from aclnn_cts.checks.plan import LIFE_CYCLE

    return tuple(identifier for identifier in (*LIFE_CYCLE, *law_ids(spec)) if identifier.startswith(promise))


def _test_id(spec: Spec, identifier: str, promise: str) -> str:
    name = spec.operator.removeprefix("aclnn")
    return f"{name}-{identifier.removeprefix(promise)}" if promise.endswith("/") else name


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Suites that a folder above them brought along need `--adapter` too; in a worker, their tests say so."""
    suites = any("conformance" in getattr(item, "fixturenames", ()) for item in items)
    if suites and not config.getoption("--adapter") and not _is_worker(config):
        raise pytest.UsageError(NEEDS_ADAPTER)
    items[:] = [item for item in items if _param(item) != _NOTHING]
    # Stable: pinned cases, whose waivers may be mended, come before what they excuse.
    items.sort(key=lambda item: not _param(item)[1].startswith("pinned/"))


def _param(item: pytest.Item) -> tuple[str, str]:
    """Operator and promise of a test of the suites."""
    callspec = getattr(item, "callspec", None)
    found: tuple[str, str] = ("", "") if callspec is None else callspec.params.get("conformance", ("", ""))
    return found


@pytest.fixture(scope="session")
def _gate(request: pytest.FixtureRequest) -> Iterator[Gate | Refusal]:
    """The implementation, opened once in each process that runs tests."""
    if not request.config.getoption("--adapter"):
        yield Refusal(NEEDS_ADAPTER, pytest.ExitCode.USAGE_ERROR)
        return
    from aclnn_cts.core.errors import HarnessError, UsageError
    from aclnn_cts.runs.gate import open_gate

    try:
        gate = open_gate(_options(request.config), failures=_failures(request))
    except UsageError as error:
        yield Refusal(str(error), pytest.ExitCode.USAGE_ERROR)
    except HarnessError as error:
        yield Refusal(str(error), NO_VERDICT)
    else:
        yield gate
        gate.close()


def _failures(request: pytest.FixtureRequest) -> Path:
    """Where trial files go: where the user says, else where they stay until pytest is called again."""
    if failures := request.config.getoption("--failures"):
        return Path(failures)
    cache = getattr(request.config, "cache", None)
    if cache is not None:
        with contextlib.suppress(OSError):
            return Path(cache.mkdir("aclnn-cts"))
    factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    return factory.mktemp("aclnn-cts")


@pytest.fixture
def conformance(request: pytest.FixtureRequest, _gate: Gate | Refusal) -> Conformance:
    """The promise that the suite's module names, of one operator."""
    if isinstance(_gate, Refusal):
        request.session.shouldstop = "see above: every further test would say the same"
        tell(request.node, refusal=int(_gate.code))
        pytest.fail(_gate.message, pytrace=False)
    operator, promise = request.param
    return Conformance(_gate, _gate.options.specs[operator], promise, request)
