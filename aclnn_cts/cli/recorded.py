"""`aclnn-cts run --recorded`: the calls of a watched training, checked."""

from __future__ import annotations

from pathlib import Path

from aclnn_cts.cli.given import given_options
from aclnn_cts.cli.output import begin, console, emit
from aclnn_cts.core.errors import UsageError
from aclnn_cts.store.run_verdict import exit_code
from aclnn_cts.training.calls import read_calls
from aclnn_cts.training.tally import CallTally, CheckedCall


def check_recorded(folder: Path, *, as_json: bool) -> int:
    """Check the calls of a folder; the exit code of their verdict. Raises UsageError for what is no such folder.

    No other word of `run` may stand beside it.
    """
    if beside := sorted(given_options() - {"--recorded", "--json"}):
        raise UsageError(
            f"--recorded {folder}: checks every call that it holds, by the operator's own document; leave out "
            f"{', '.join(beside).replace('operators', 'OPERATORS')}"
        )
    begin(f"calls of {folder}")
    tally = CallTally()
    for made in read_calls(folder):
        tally.add(CheckedCall(made.call, made.check()))
    if as_json:
        emit(tally.to_json())
    else:
        for line in tally.lines():
            console().print(line, markup=False, highlight=False, soft_wrap=True)
    return exit_code(tally.verdict)
