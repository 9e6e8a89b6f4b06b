"""A tensor that is input and output, from specs to findings: its contents count, and it is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import Result
from tests.support.ran import Ran

Run = Callable[..., Ran]
FOLDER = str(Path(__file__).parents[1] / "fixtures" / "inout")


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cases") / "cases.jsonl"
    assert main(["cases", "decay_grad", "--specs", FOLDER, "--kind", "valid,invalid", "-n", "12", "-o", str(path)]) == 0
    return path


def _run(ran: Run, fault: str, cases: Path) -> Ran:
    word = f"inout_adapter:Inout,fault={fault}"
    return ran("run", "--adapter", word, "--specs", FOLDER, "--cases", str(cases))


def test_the_reference_conforms(ran: Run, cases: Path) -> None:
    run = _run(ran, "none", cases)
    assert run.code == 0, run.out + run.err
    judged = {deviation.output for record in run.records for deviation in record.verdict.deviations}
    assert judged == {"total"}


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("former", Fault.VALUE),
        ("unwritten", Fault.VALUE),
        ("twice", Fault.VALUE),
        ("beside", Fault.GUARD),
        ("gap", Fault.GUARD),
    ],
)
def test_what_an_implementation_does_to_it_is_found(ran: Run, fault: str, kind: Fault, cases: Path) -> None:
    run = _run(ran, fault, cases)
    assert run.code == 1, run.out + run.err
    kinds = Counter(record.verdict.kind for record in run.records if record.verdict.result == Result.FAILED)
    assert kinds[kind]
    again = ran("replay", str(run.directory.failures()[0]), "--adapter", "reference", "--specs", FOLDER)
    assert (again.code, again.kinds) == (0, ["passed"])


@pytest.mark.parametrize(("decay", "code"), [("decay", 0), ("1", 1)])
def test_torch_reads_and_writes_one_tensor(ran: Run, cases: Path, tmp_path: Path, decay: str, code: int) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    bindings = tmp_path / "torch.yaml"
    bindings.write_text(
        f"""
        bindings:
          aclnnDecayGrad:
            let: {{kept: {{call: mul.Scalar, arguments: {{self: total, other: {decay}}}}}}}
            outputs: {{total: {{call: add.Tensor, arguments: {{self: kept, other: grad}}}}}}
            unused: {{decay: any}}
        """
    )
    words = ("--specs", FOLDER, "--cases", str(cases), "--fail-fast")
    run = ran("run", "--adapter", f"torch:bindings={bindings}", *words)
    assert run.code == code, run.out + run.err
