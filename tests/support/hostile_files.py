"""Valid files of every kind, and mutations of them: what readers must refuse with a documented error or read.

`Random` decides: Hypothesis has one that it shrinks, and `make soak-hostile` has those of the standard library.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from rich.console import Console

from aclnn_cts.authoring.import_atk import import_atk
from aclnn_cts.bundle.signature import Signer, Verifier
from aclnn_cts.bundle.verify import verify_bundle
from aclnn_cts.bundle.write import write_bundle
from aclnn_cts.cli.screen import show_run_verdict
from aclnn_cts.core.case import Case, case_text
from aclnn_cts.core.case_json import case_id, case_to_json
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.trial import EarlierCall, Trial, trial_to_json
from aclnn_cts.findings.finding_text import finding_texts
from aclnn_cts.findings.waivers.draft import draft_waiver
from aclnn_cts.findings.waivers.file import read_waivers
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.repro.write import Programs
from aclnn_cts.selftest.kill_matrix import read_matrix, shipped_matrix
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import Specs, lint_files, load_specs
from aclnn_cts.store.case_files import read_case_file
from aclnn_cts.store.output_file import OutputFile
from aclnn_cts.store.programs import SUFFIXES
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.triage.compare import compare_runs
from aclnn_cts.trials.checks.registry import fitted_trial
from tests.reports.synthetic import record, softmax_case, synthetic_run
from tests.support.bundles import rebuilt

FIXTURES = Path(__file__).parents[1] / "fixtures"
SHOWN = "\x1b[2J\u202e\x00\u2066"

NUMBERS = (0, 1, 2, 3, -1, -2, 7, 64, 2**20, 2**31, 2**62, 2**63 - 1, -(2**63), 10**30, 0.5, 1e308)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3, 7, 63, 64, 255, 2**31 - 1, 2**31, 2**62, 2**63 - 1, 2**63, -(2**63), 2**64),
    *(10**30, 10**399, -(10**399), 0.0, -0.0, 0.5, 1e308, -1e308, 1e-320, "", "x", "inf", "-inf", "nan", "1", "FLOAT"),
    *("BF16", "ND", "../..", "a/b", "/dev/zero", "null", SHOWN, "x" * 5000, "\ud7ff\U0010ffff", [], {}, [[]], [None]),
    *([0], [-1], [1, 1], [2**62] * 3, [2**62] * 400, [0] * 17, [1] * 5000, ["x"] * 3, [{}] * 50, {"x": 1}, {"": ""}),
    *({"tensor": {}}, {SHOWN: SHOWN}, {"int": 10**399}, {"double": "inf"}, {"int_array": [2**63]}),
    {"format": "aclnn-cts/case/1"},
)
"""What a place of a document becomes."""

DOCUMENTED = (UsageError, HarnessError)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What all examples share."""

    folder: Path
    specs: Specs
    programs: Programs
    case: Case
    run: Path
    bundle: Path


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of file: how a mutated one is written, and how it is read."""

    name: str
    write: Callable[[Random, Prepared, Path], Path]
    read: Callable[[Path, Prepared], object]


def prepared(folder: Path) -> Prepared:
    """A case, a run with two findings, and its bundle, in `folder`."""
    case = softmax_case()
    run = synthetic_run(
        folder / "run",
        [
            record(case),
            record(softmax_case(1), result="failed", kind="value", output="out", error_ratio=2.0),
            record(softmax_case(2), result="failed", kind="crash", waiver="known"),
        ],
    )
    specs = load_specs()
    (folder / "case.json").write_bytes(json.dumps(case_to_json(case)).encode())
    (folder / "b").mkdir()
    bundle = folder / "b" / "run.zip"
    write_bundle(RunDirectory(run), OutputFile(bundle, written_by_us=lambda file: True, command="test"))
    return Prepared(folder, specs, Programs(specs=specs), case, run, bundle)


def read_mutated(kind: Kind, random: Random, shared: Prepared, folder: Path) -> str:
    """Write a mutated file and read it: the documented error in words, empty where it was read. All else comes out."""
    folder.mkdir(parents=True, exist_ok=True)
    path = kind.write(random, shared, folder)
    try:
        kind.read(path, shared)
    except DOCUMENTED as error:
        return str(error)
    finally:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return ""


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a document but the whole."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def _at(document: Any, path: list[str | int]) -> Any:
    for step in path:
        document = document[step]
    return document


def mutated(random: Random, document: Any) -> Any:
    """The document with one to three places replaced, removed, doubled or renamed."""
    changed = json.loads(json.dumps(document, default=str))
    for _ in range(random.choice([1, 1, 2, 3])):
        known = list(places(changed))
        if not known:
            return copy.deepcopy(random.choice(VALUES))
        *above, last = random.choice(known)
        parent = _at(changed, above)
        deed = random.randrange(9)
        if deed == 0:
            del parent[last]
        elif deed == 1 and isinstance(last, int):
            parent.append(json.loads(json.dumps(parent[last])))
        elif deed == 2 and isinstance(parent, dict):
            parent[random.choice(["x", SHOWN, "", "data", "shape", "format"])] = parent.pop(last)
        elif deed < 6 and type(parent[last]) in (int, float):
            parent[last] = random.choice([parent[last] - 1, parent[last] + 1, *NUMBERS])
        elif deed < 6 and isinstance(parent[last], list) and all(type(item) is int for item in parent[last]):
            parent[last] = [random.choice(NUMBERS[:8]) for _ in range(random.randint(0, 4))]
        else:
            parent[last] = copy.deepcopy(random.choice(VALUES))
    return changed


def noisy(random: Random, content: bytes) -> bytes:
    """Now and then bytes flipped, cut or put in."""
    if not content or random.randrange(4):
        return content
    changed = bytearray(content)
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(changed)) if changed else 0
        deed = random.randrange(4)
        if deed == 0 and changed:
            changed[place] ^= 1 << random.randrange(8)
        elif deed == 1:
            del changed[place : place + random.randint(1, 40)]
        elif deed == 2:
            changed[place:place] = random.choice(
                [b"\0", b"[" * 2000, b'"', b"\n\n", b"9" * 5000, b"\xff\xfe", b"{", b"- "]
            )
        else:
            del changed[place:]
    return bytes(changed)


def as_json(random: Random, document: Any) -> bytes:
    return noisy(random, json.dumps(mutated(random, document)).encode())


def as_yaml(random: Random, text: str) -> bytes:
    document = mutated(random, yaml.safe_load(text))
    return noisy(
        random, yaml.dump(document, allow_unicode=True, Dumper=_Plain, sort_keys=False).encode("utf-8", "replace")
    )


WAIVER = """
subject: a device
waivers:
  - id: device.softmax
    scope:
      adapter: torch:device=cpu
      version: ">=2.13,<2.16"
      operator: aclnnSoftmaxBackward
      output: out
      dtype: [FLOAT16, BF16]
      kind: [value, crash]
      got: [nan]
      when: not contiguous(out) and numel(out) > 4
    reason: known
    owner: a person
    expiry: 2099-01-31
    cases: [{case}]
  - id: device.other
    scope: {{adapter: torch, check: status, kind: status}}
    reason: known
    reason_zh: 已知
    owner: a person
    expiry: 2099-01-31
    link: https://example.org
"""


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _file(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def _trial(shared: Prepared) -> dict[str, Any]:
    return trial_to_json(Trial("values", shared.case, after=(EarlierCall(shared.case, 2),)))


def _read_cases(path: Path, shared: Prepared) -> None:
    """As validate, run, replay and repro do before anything is called."""
    for entry in read_case_file(path):
        case = entry.content.case if isinstance(entry.content, Trial) else entry.content
        spec = fitted_trial(shared.specs, entry.content, where=entry.where)
        case_id(case)
        case_text(case)
        if case.product not in spec.products:
            continue
        evaluate(spec, case)
        shared.programs.texts(entry.content, SUFFIXES)


def _read_spec(path: Path, shared: Prepared) -> None:
    _, messages = lint_files([path])
    if messages:
        raise UsageError("\n".join(messages))


def _write_run(random: Random, shared: Prepared, folder: Path) -> Path:
    path = folder / "mutated-run"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(shared.run, path)
    chosen = random.choice(["manifest.json", "summary.json", "results.sqlite", "results.sqlite", "failures", "specs"])
    file = path / chosen
    if chosen in ("failures", "specs"):
        file = random.choice(sorted(file.iterdir()))
    if chosen == "results.sqlite":
        _mutate_store(random, file)
    elif file.suffix == ".json":
        file.write_bytes(as_json(random, json.loads(file.read_bytes())))
    else:
        file.write_bytes(noisy(random, file.read_bytes()))
    return path


JUNK: tuple[Any, ...] = (
    None,
    "",
    "x",
    SHOWN,
    0,
    -1,
    2**63 - 1,
    0.5,
    float("inf"),
    b"",
    b"\x90",
    b"\0" * 40,
    "x" * 3000,
)


def _mutate_store(random: Random, file: Path) -> None:
    deed = random.randrange(4)
    if deed == 0:
        content = bytearray(file.read_bytes())
        for _ in range(random.randint(1, 20)):
            content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        file.write_bytes(content)
        return
    if deed == 1:
        file.write_bytes(file.read_bytes()[: random.randrange(file.stat().st_size)])
        return
    with contextlib.closing(sqlite3.connect(file)) as connection, contextlib.suppress(sqlite3.Error):
        if deed == 2:
            columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(records)")]
            column = random.choice(columns)
            sql = f"UPDATE records SET {column} = ? WHERE sequence = 2"  # noqa: S608 - a column's name
            connection.execute(sql, (random.choice(JUNK),))
        else:
            rows = connection.execute("SELECT sequence, record FROM records").fetchall()
            sequence, content = random.choice(rows)
            document = mutated(random, _plain(msgspec.msgpack.decode(zlib.decompress(content))))
            changed = zlib.compress(msgspec.msgpack.encode(_within(document)))
            connection.execute("UPDATE records SET record = ? WHERE sequence = ?", (changed, sequence))
        connection.commit()


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


def _within(value: Any) -> Any:
    """MessagePack has no integer of more than 64 bits."""
    if isinstance(value, dict):
        return {key: _within(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_within(item) for item in value]
    return value if not isinstance(value, int) or -(2**63) <= value < 2**64 else float("inf")


def _read_run(path: Path, shared: Prepared) -> None:
    """As the end of a run, compare, replay and waive do."""
    run = RunDirectory(path)
    show_run_verdict(Console(file=io.StringIO()), run.summary(), run)
    finding_texts(run, shared.specs)
    with run.results() as results:
        list(results.records())
    compare_runs(path, shared.run)
    for file in run.failures()[:1]:
        draft_waiver(file, pinned="x")


def _read_evidence(path: Path, shared: Prepared) -> None:
    """As report and bundle do."""
    run = RunDirectory(path)
    acceptance((path,))
    out = OutputFile(path.parent / "mutated.zip", written_by_us=lambda file: True, command="test", force=True)
    write_bundle(run, out)
    out.path.unlink()


def _write_bundle(random: Random, shared: Prepared, folder: Path) -> Path:
    def change(entries: dict[str, bytes]) -> None:
        name = random.choice(sorted(entries))
        if name.endswith(".json"):
            entries[name] = as_json(random, json.loads(entries[name]))
        elif name.endswith(".jsonl"):
            first, *rest = entries[name].splitlines(keepends=True)
            entries[name] = b"".join([as_json(random, json.loads(first)) + b"\n", *rest])
        else:
            entries[name] = noisy(random, entries[name])

    with contextlib.suppress(HarnessError, msgspec.MsgspecError):
        return _file(folder, "mutated.zip", noisy(random, rebuilt(shared.bundle, change)))
    return _file(folder, "mutated.zip", noisy(random, shared.bundle.read_bytes()))


def _key(random: Random, shared: Prepared, folder: Path) -> Path:
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    forms: Mapping[int, Callable[[], bytes]] = {
        0: lambda: private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        1: lambda: private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        ),
        2: lambda: private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ),
        3: lambda: private.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        ),
    }
    content = forms[random.randrange(4)]()
    for _ in range(random.randint(1, 4)):
        content = noisy(random, content)
    return _file(folder, "key", content)


def _read_key(path: Path, shared: Prepared) -> None:
    for kind in (Verifier, Signer):
        with contextlib.suppress(UsageError):
            kind(path)


KINDS: tuple[Kind, ...] = (
    Kind("case", lambda r, s, f: _file(f, "case.json", as_json(r, case_to_json(s.case))), _read_cases),
    Kind("trial", lambda r, s, f: _file(f, "trial.json", as_json(r, _trial(s))), _read_cases),
    Kind(
        "waiver",
        lambda r, s, f: _file(f, "w.yaml", as_yaml(r, WAIVER.format(case=s.folder / "case.json"))),
        lambda path, shared: read_waivers([path]),
    ),
    Kind(
        "spec",
        lambda r, s, f: _file(
            f, "logistic_backward.yaml", as_yaml(r, (FIXTURES / "specs/logistic_backward.yaml").read_text())
        ),
        _read_spec,
    ),
    Kind(
        "atk",
        lambda r, s, f: _file(f, "atk.json", as_json(r, json.loads((FIXTURES / "atk/softmax.json").read_bytes()))),
        lambda path, shared: list(import_atk(path, shared.specs, product_of=lambda spec: spec.products[0])),
    ),
    Kind(
        "matrix",
        lambda r, s, f: _file(f, "matrix.json", as_json(r, json.loads(shipped_matrix().read_bytes()))),
        lambda path, shared: read_matrix(path),
    ),
    Kind("key", _key, _read_key),
    Kind("bundle", _write_bundle, lambda path, shared: verify_bundle(path, recompute=3, seed=0)),
    Kind("run", _write_run, _read_run),
    Kind("evidence", _write_run, _read_evidence),
)
