"""The pytest plugin: `pytest -p aclnn_cts.plugin --pyargs aclnn_cts.suites --aclnn-adapter A` is a gate for CI.

A suite module names its check; the plugin makes one test of it for each operator.
May import `runs` and what it needs of `checks` and `findings.waivers`. Start reading at `report`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pytest

from aclnn_cts.core.byte_size import bytes_of
from aclnn_cts.core.printable import quote
from aclnn_cts.plugin.report import EMPTY, Conformance, Refusal, Report, tell
from aclnn_cts.sandbox.limits import DEFAULT_MAX_BYTES, one_blas_thread

if TYPE_CHECKING:
    from aclnn_cts.runs.gate import Gate, GateOptions
    from aclnn_cts.speclang.model import Spec

__all__ = ["Conformance"]

NO_VERDICT = 3
"""The exit code where the implementation cannot be opened, as on the command line."""
NEEDS_ADAPTER = (
    "the conformance suites need --aclnn-adapter: reference, torch or package.module:factory (the harness's own tests "
    "run without: pytest tests)"
)
_NOTHING = ("", "nothing")
_OPTIONS = pytest.StashKey["GateOptions"]()
N = TypeVar("N", int, float)


class _Option(NamedTuple):
    """An option `--aclnn-NAME` and its ini key `aclnn_NAME`, which counts where the option is left out."""

    name: str
    help: str
    metavar: str = ""
    sort: str = "word"
    """Of `_SORTS`."""
    default: str = ""

    @property
    def key(self) -> str:
        """The ini key, which is the option's name within pytest too."""
        return f"aclnn_{self.name.replace('-', '_')}"


_SORTS: dict[str, tuple[str, Any, Any]] = {
    "word": ("store", "string", ""),
    "many": ("append", "linelist", []),
    "flag": ("store_true", "bool", False),
}
"""By sort of option: what the parser does with it, its type in an ini file, and its default."""

_TABLE = (
    _Option("adapter", "what is tested: reference, torch, package.module:factory, ...", "A"),
    _Option(
        "product",
        "the product, such as atlas-a2 (default: the product of the device, or atlas-a2 where an operator supports it)",
        "P",
    ),
    _Option("op", "an operator; several times, or with commas between", "OP", "many"),
    _Option("profile", "quick (default), standard or thorough", "NAME", default="quick"),
    _Option("seed", "the same seed makes the same plan (default 0)", "S", default="0"),
    _Option("waivers", "a further waiver file; may be given several times", "FILE", "many"),
    _Option("specs", "a folder with your spec files; may be given several times", "DIR", "many"),
    _Option("edition", "the edition of the documents, such as public (default: each spec's own)", "NAME"),
    _Option(
        "max-bytes",
        "maximum size of one call's arguments, such as 64MiB; a number alone is in bytes",
        "SIZE",
        default=str(DEFAULT_MAX_BYTES),
    ),
    _Option("min-judged", "share of a test's trials that must be judged, in percent (default 90)", "N", default="90"),
    _Option("max-findings", "skip the other tests after N findings that no waiver accepts (default: no limit)", "N"),
    _Option("call-timeout", "time after which a call counts as a hang (default 60 s, or the adapter's)", "SECONDS"),
    _Option("phases", "one or both (default); one: only the first phase, for statuses", "NAME", default="both"),
    _Option(
        "strict-limits",
        "count observations as failures: a limit that is not enforced, a status other than 161xxx, a write to an "
        "executor after an error, a write to an excluded output",
        sort="flag",
    ),
    _Option("baseline", "a run, or a folder of --aclnn-failures, whose findings fail no test", "RUN"),
    _Option(
        "changed",
        "only operators whose stem or C name is in the path of a file that differs from this commit",
        "COMMIT",
    ),
    _Option("shard", "the K-th of N parts of the tests, such as 2/8", "K/N"),
    _Option("sarif", "write the findings to this file as SARIF", "FILE"),
    _Option("failures", "the folder for the trial file of each finding (default: pytest's cache)", "DIR"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the gate; they mean what they mean to `aclnn-cts run`."""
    one_blas_thread()
    group = parser.getgroup("aclnn-cts", "conformance of aclnn operators")
    for option in _TABLE:
        action, kind, default = _SORTS[option.sort]
        takes = {} if option.sort == "flag" else {"metavar": option.metavar}
        group.addoption(
            f"--aclnn-{option.name}",
            dest=option.key,
            action=action,
            default=None,
            help=f"{option.help}; ini key {option.key}",
            **takes,
        )
        parser.addini(option.key, f"as --aclnn-{option.name}", type=kind, default=option.default or default)


def _given(config: pytest.Config, name: str) -> Any:  # noqa: ANN401 - pytest's own
    """An option's value: of the command line, else of the ini file, else its default."""
    key = f"aclnn_{name.replace('-', '_')}"
    value = config.getoption(key)
    return config.getini(key) if value is None else value


def _number(config: pytest.Config, name: str, kind: type[N]) -> N:
    word = _given(config, name)
    try:
        return kind(word)
    except ValueError:
        raise pytest.UsageError(f"--aclnn-{name}: {quote(word)}; expected {kind.__name__}") from None


def _size(config: pytest.Config, name: str) -> int:
    try:
        return bytes_of(_given(config, name))
    except ValueError as error:
        raise pytest.UsageError(f"--aclnn-{name}: {error}") from None


def _is_worker(config: pytest.Config) -> bool:
    """Whether this is a process of xdist that runs tests and reports to another."""
    return hasattr(config, "workerinput")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """A wrong word of the command line is told once: before anything is collected, and before xdist has workers."""
    config = session.config
    if _given(config, "adapter"):
        _narrow(config)
        if not _is_worker(config):
            options = _options(config)
            failures = _given(config, "failures")
            report = Report(
                options.settings.adapter,
                waivers=options.waivers,
                unnamed=options.unnamed,
                sarif=_sarif(config),
                failures=Path(failures) if failures else None,
            )
            if not options.operators:
                report.empty = f"no file that differs from {quote(_given(config, 'changed'))} names an operator"
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
    """Where `testpaths` names the suites beside other tests, `--aclnn-adapter` asks for the suites."""
    if config.args_source == pytest.Config.ArgsSource.TESTPATHS:
        config.args = [word for word in config.args if _within_suites(config, word)] or config.args


def _options(config: pytest.Config) -> GateOptions:
    """The options, read once a process; pytest's UsageError for the first that is wrong."""
    from aclnn_cts.core.errors import HarnessError, UsageError
    from aclnn_cts.runs.gate import gate_options

    if _OPTIONS not in config.stash:
        try:
            options = gate_options(
                adapter=_given(config, "adapter"),
                product=_given(config, "product") or None,
                operators=[word for option in _given(config, "op") for word in option.split(",")],
                profile_name=_given(config, "profile"),
                seed=_number(config, "seed", int),
                waivers=[Path(file) for file in _given(config, "waivers")],
                spec_folders=[Path(folder) for folder in _given(config, "specs")],
                edition=_given(config, "edition"),
                max_bytes=_size(config, "max-bytes"),
                phases=_phases(config),
                call_seconds=_number(config, "call-timeout", float) if _given(config, "call-timeout") else None,
                strict_limits=_given(config, "strict-limits"),
                min_judged=_number(config, "min-judged", int),
                max_findings=_number(config, "max-findings", int) if _given(config, "max-findings") else None,
                baseline=Path(_given(config, "baseline")) if _given(config, "baseline") else None,
                changed=_given(config, "changed"),
            )
        except (UsageError, HarnessError) as error:
            # `run` has the same options without the prefix.
            raise pytest.UsageError(re.sub("^--", "--aclnn-", str(error))) from None
        _shard(config)
        if failures := _given(config, "failures"):
            _make(Path(failures))
        config.stash[_OPTIONS] = options
    return config.stash[_OPTIONS]


def _phases(config: pytest.Config) -> int:
    word = _given(config, "phases")
    if word not in {"one", "both"}:
        raise pytest.UsageError(f"--aclnn-phases: {quote(word)}; expected one or both")
    return 1 if word == "one" else 2


def _shard(config: pytest.Config) -> tuple[int, int]:
    """Which part of the tests is asked for, of how many."""
    word = _given(config, "shard") or "1/1"
    found = re.fullmatch(r"([1-9]\d{0,3})/([1-9]\d{0,3})", word)
    if found is None or int(found[1]) > int(found[2]):
        raise pytest.UsageError(f"--aclnn-shard: {quote(word)}; expected K/N with K from 1 to N, such as 2/8")
    return int(found[1]), int(found[2])


def _sarif(config: pytest.Config) -> Path | None:
    """The file for SARIF, where one is asked for; pytest's UsageError where nothing can write it."""
    if not _given(config, "sarif"):
        return None
    if importlib.util.find_spec("markupsafe") is None:
        raise pytest.UsageError("--aclnn-sarif: needs the report's libraries; pip install 'aclnn-cts[report]'")
    path = Path(_given(config, "sarif"))
    if not path.absolute().parent.is_dir():
        raise pytest.UsageError(f"--aclnn-sarif {path}: expected a file in a folder that exists")
    return path


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise pytest.UsageError(
            f"--aclnn-failures {folder}: {error.strerror}; expected a folder that can be written"
        ) from None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each operator, for each life-cycle check of it, or for each case that a waiver pins."""
    if "conformance" not in metafunc.fixturenames:
        return
    check = metafunc.module.CHECK
    if not _given(metafunc.config, "adapter"):
        metafunc.parametrize("conformance", [("", check)], ids=["no-adapter"], indirect=True)
        return
    options = _options(metafunc.config)
    cases = [
        pytest.param((spec.operator, identifier), id=_test_id(spec, identifier, check))
        for spec in options.operators
        for identifier in _identifiers(options, spec, check)
    ]
    if not cases:
        # Without a case pytest would make a test that is skipped; this one is left out of the collection.
        cases = [pytest.param(_NOTHING, id="none")]
    metafunc.parametrize("conformance", cases, indirect=True, scope="function")


def _identifiers(options: GateOptions, spec: Spec, check: str) -> tuple[str, ...]:
    if not check.endswith("/"):
        return (check,)
    from aclnn_cts.runs.gate import PINNED

    if check == PINNED:
        return options.pinned(spec)
    from aclnn_cts.trials.plan import LIFE_CYCLE

    return tuple(identifier for identifier in LIFE_CYCLE if identifier.startswith(check))


def _test_id(spec: Spec, identifier: str, check: str) -> str:
    name = spec.operator.removeprefix("aclnn")
    return f"{name}-{identifier.removeprefix(check)}" if check.endswith("/") else name


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Suites that a folder above them brought along need `--aclnn-adapter` too; in a worker, their tests say so."""
    suites = any("conformance" in getattr(item, "fixturenames", ()) for item in items)
    if suites and not _given(config, "adapter") and not _is_worker(config):
        raise pytest.UsageError(NEEDS_ADAPTER)
    part, parts = _shard(config)
    ours = [item for item in items if "conformance" in getattr(item, "fixturenames", ()) and _param(item) != _NOTHING]
    # One of each kind in turn, so that no part has all long tests. Other tests belong to every part.
    left_out = {id(item) for place, item in enumerate(ours) if place % parts != part - 1}
    if ours and len(ours) == len(left_out):
        reason = f"part {part} of {parts} has none of the {len(ours)} tests"
        if _is_worker(config):
            config.workeroutput[EMPTY] = reason  # type: ignore[attr-defined]  # xdist's
        elif (report := config.pluginmanager.get_plugin("aclnn-cts-report")) is not None:
            report.empty = reason
    left_out |= {id(item) for item in items if _param(item) == _NOTHING}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
    items[:] = [item for item in items if id(item) not in left_out]
    # Stable: pinned cases, whose waivers may be mended, come before what they excuse.
    items.sort(key=lambda item: not _param(item)[1].startswith("pinned/"))


def _param(item: pytest.Item) -> tuple[str, str]:
    """Operator and check of a test of the suites."""
    callspec = getattr(item, "callspec", None)
    found: tuple[str, str] = ("", "") if callspec is None else callspec.params.get("conformance", ("", ""))
    return found


@pytest.fixture(scope="session")
def _gate(request: pytest.FixtureRequest) -> Iterator[Gate | Refusal]:
    """The implementation, opened once in each process that runs tests."""
    if not _given(request.config, "adapter"):
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
    if failures := _given(request.config, "failures"):
        return Path(failures)
    cache = getattr(request.config, "cache", None)
    if cache is not None:
        with contextlib.suppress(OSError):
            return Path(cache.mkdir("aclnn-cts"))
    factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    return factory.mktemp("aclnn-cts")


@pytest.fixture
def conformance(request: pytest.FixtureRequest, _gate: Gate | Refusal) -> Conformance:
    """The check that the suite's module names, of one operator."""
    if isinstance(_gate, Refusal):
        request.session.shouldstop = "see above: every further test would say the same"
        tell(request.node, refusal=int(_gate.code))
        pytest.fail(_gate.message, pytrace=False)
    operator, check = request.param
    return Conformance(_gate, _gate.options.specs[operator], check, request)
