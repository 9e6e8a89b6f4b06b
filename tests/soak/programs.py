"""`make soak-programs`: does the program of every failure show it, and does it fall silent once the fault is gone?

Runs the quick profile on the software device with one seeded fault after another, writes a program for each finding,
and runs it with the fault (it must not end with 0 or 2) and without (it must end with 0). What a program does not show,
`replay` is asked for in a process of its own: where that conforms too, the failure needs calls before it that the run
did not find, and is counted apart. Prints all others, and exits with 1 where there are any. `--every N --first M` takes
every Nth fault.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from aclnn_cts.adapters.loopback_build import build
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.trial import Trial
from aclnn_cts.repro.write import Programs
from aclnn_cts.selftest.fault_catalogue import SeededFault, read_catalogue
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.case_files import read_case_file

VARIABLE = "ACLNN_LOOPBACK_FAULT"
RUN_SECONDS = 300
PROGRAM_SECONDS = 60
"""After which a program counts as hanging, which shows a fault too."""
SHOWN, SILENT, ALONE = "shown", "not shown", "conforms alone, in the harness too"
FINE = {SHOWN, ALONE}


def main() -> int:
    """Take the faults in turn, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("faults", nargs="*")
    words = parser.parse_args()
    os.environ.pop(VARIABLE, None)
    specs = load_specs()
    catalogue = [
        fault
        for fault in read_catalogue(specs).faults.values()
        if not fault.mutants and (not words.faults or fault.id in words.faults)
    ]
    programs = Programs(specs=specs)
    library = build().lib64 / "libascendcl.so"
    counts: Counter[str] = Counter()
    for fault in catalogue[words.first :: words.every]:
        with tempfile.TemporaryDirectory() as folder:
            for file, trial in findings(fault, Path(folder) / "run"):
                answer = shown(trial, programs, fault.id, Path(folder) / "repro.py", library)
                if answer == SILENT and conforms_alone(file, fault.id):
                    answer = ALONE
                counts[answer] += 1
                if answer not in FINE:
                    sys.stdout.write(f"{fault.id}: {trial.check} {trial.id[:12]}: {answer}\n")
        sys.stdout.flush()
    sys.stdout.write(", ".join(f"{number} {answer}" for answer, number in sorted(counts.items())) + "\n")
    return 0 if counts and set(counts) <= FINE else 1


def findings(fault: SeededFault, run: Path) -> Iterator[tuple[Path, Trial]]:
    """The trials that a run with the fault wrote down."""
    words = [sys.executable, "-m", "aclnn_cts", "run", fault.operator, "--adapter", "loopback", "-o", str(run)]
    environment = {**os.environ, VARIABLE: fault.id}
    try:
        subprocess.run(words, env=environment, timeout=RUN_SECONDS, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        sys.stdout.write(f"{fault.id}: the run took more than {RUN_SECONDS} s; what it had written is taken\n")
    for file in sorted((run / "failures").glob("*.json")):
        for entry in read_case_file(file):
            if isinstance(entry.content, Trial):
                yield file, entry.content


def conforms_alone(file: Path, fault: str) -> bool:
    """Whether the harness itself sees nothing when the trial is made by itself, with the fault."""
    words = [sys.executable, "-m", "aclnn_cts", "replay", str(file), "--adapter", "loopback"]
    environment = {**os.environ, VARIABLE: fault}
    done = subprocess.run(words, env=environment, timeout=RUN_SECONDS, capture_output=True, check=False)
    return done.returncode == 0


def shown(trial: Trial, programs: Programs, fault: str, script: Path, library: Path) -> str:
    """`SHOWN`, or what is wrong with the trial's program."""
    try:
        script.write_text(programs.texts(trial, ["python"])["python"])
    except UsageError as error:
        return f"no program: {error}"
    with_fault, without = (_code(script, library, injected) for injected in (fault, ""))
    if with_fault == 0:
        return SILENT
    if with_fault == 2:
        return "could not run"
    return SHOWN if without == 0 else f"there without the fault, exit code {without}"


def _code(script: Path, library: Path, fault: str) -> int | None:
    """The exit code of the program, None where it hangs."""
    words = [sys.executable, str(script), str(library)]
    try:
        done = subprocess.run(
            words, env={**os.environ, VARIABLE: fault}, timeout=PROGRAM_SECONDS, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
