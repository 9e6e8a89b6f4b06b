from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.generate.buffers import CallBuffers, block_layout, prepare
from aclnn_cts.sandbox.host import InProcessHost, SessionHost
from aclnn_cts.sandbox.limits import RunnerLimits
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.sandbox.process import ProcessHost
from aclnn_cts.sandbox.process_tree import children

HERE = Path(__file__).parents[1] / "support"
ADAPTER = "troublesome_adapter:Troublesome"
OUTPUTS = frozenset({"out"})
PATIENT = RunnerLimits(call_seconds=60.0, memory_bytes=200 << 20)
QUICK = RunnerLimits(call_seconds=1.5, memory_bytes=200 << 20)
"""For what hangs alone: a machine under load may take a second for anything else."""


@pytest.fixture(autouse=True)
def adapters_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)


@pytest.fixture(scope="module")
def shared() -> Iterator[ProcessHost]:
    sys.path.insert(0, str(HERE))
    try:
        with ProcessHost(ADAPTER, target=Target(), limits=PATIENT) as host:
            yield host
    finally:
        sys.path.remove(str(HERE))


def case(size: int = 3) -> Case:
    tensor = Tensor((size,), "FLOAT")
    return Case("aclnnDouble", {"x": tensor, "out": tensor, "dim": -1, "scale": float("nan")})


def call(host: SessionHost, do: str = "double", *, size: int = 3, group: int | None = None) -> Call:
    it = case(size)
    block = host.memory(block_layout(it, OUTPUTS).size)
    arrays = {"x": np.arange(size, dtype=np.float32)}
    buffers = prepare(it, outputs=OUTPUTS, arrays=arrays, memory=block)
    return Call(it, buffers, call_mode={"do": do}, group=group)


def doubled(item: Call) -> bool:
    buffers = item.buffers
    assert isinstance(buffers, CallBuffers)
    states = buffers.inspect()
    untouched = not any(state.guard_before or state.guard_after or state.changed for state in states.values())
    view = buffers.outputs["out"].view
    return untouched and bool((view == 2 * np.arange(view.size, dtype=np.float32)).all())


def pids(outcomes: Sequence[Outcome]) -> list[object]:
    return [outcome.facts.get("pid") for outcome in outcomes]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def runners(parent: int) -> list[int]:
    """Runners of ours, and whatever has died and was not waited for."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            command = (entry / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(stat[1]) == parent and (b"aclnn_cts.sandbox.keeper" in command or stat[0] == "Z"):
            found.append(int(entry.name))
    return sorted(found)


def test_arrays_are_shared_and_outcomes_come_in_order(shared: ProcessHost) -> None:
    calls = [call(shared, size=size) for size in range(1, 60)]
    outcomes = shared.run(calls)
    assert {outcome.ended for outcome in outcomes} == {CallEnd.RETURNED}
    assert all(doubled(item) for item in calls)
    assert len(set(pids(outcomes))) == 1
    assert pids(outcomes)[0] != os.getpid()
    assert all(outcome.seconds > 0 for outcome in outcomes)
    shared.recycle()


def test_a_call_without_buffers_is_descriptors_alone(shared: ProcessHost) -> None:
    huge = Tensor((2147483646, 8), "FLOAT", data=Data(recipe="normal"))
    (outcome,) = shared.run([Call(Case("aclnnDouble", {"x": huge}))])
    assert outcome.facts["buffers"] is False


def test_what_no_64_bits_hold_is_inexpressible(shared: ProcessHost) -> None:
    first, second, third = shared.run(
        [Call(case()), Call(Case("aclnnDouble", {"x": Tensor((2**64,), "FLOAT")})), Call(case())]
    )
    assert (first.ended, second.ended, third.ended) == (CallEnd.RETURNED, CallEnd.INEXPRESSIBLE, CallEnd.RETURNED)


@pytest.mark.parametrize(
    ("do", "ended", "number", "words"),
    [
        ("read null", CallEnd.SIGNAL, signal.SIGSEGV, "SIGSEGV"),
        ("abort", CallEnd.SIGNAL, signal.SIGABRT, "check failed: everything is lost"),
        ("exit", CallEnd.EXIT, None, "exited with code 7"),
        ("sys.exit", CallEnd.EXIT, None, "exited with code 4"),
        ("swallow", CallEnd.MEMORY_LIMIT, None, "the limit is 209715200"),
        ("leave a child", CallEnd.EXIT, None, "exited with code 3"),
        ("close the pipe", CallEnd.EXIT, None, "exited with code"),
    ],
)
def test_what_kills_the_runner_costs_one_case(
    shared: ProcessHost, do: str, ended: str, number: int | None, words: str
) -> None:
    calls = [call(shared), call(shared), call(shared, do), call(shared), call(shared)]
    outcomes = shared.run(calls)
    assert [outcome.ended for outcome in outcomes] == [
        CallEnd.RETURNED,
        CallEnd.RETURNED,
        ended,
        CallEnd.RETURNED,
        CallEnd.RETURNED,
    ]
    assert outcomes[2].signal == number
    assert words in outcomes[2].message
    assert all(doubled(item) for item in calls[:2] + calls[3:])
    before, after = pids(outcomes)[1], pids(outcomes)[3]
    assert isinstance(before, int)
    assert before != after
    assert not alive(before)
    shared.recycle()


def test_what_hangs_costs_one_case() -> None:
    with ProcessHost(ADAPTER, target=Target(), limits=QUICK) as host:
        before, hanging, after = host.run([call(host), call(host, "hang"), call(host)])
    assert (before.ended, hanging.ended, after.ended) == (CallEnd.RETURNED, CallEnd.TIME_LIMIT, CallEnd.RETURNED)
    assert "waiting for the device" in hanging.message


@pytest.mark.parametrize(
    ("do", "ended", "message"),
    [
        ("refuse", CallEnd.RAISED, "ValueError: dim is out of range"),
        ("speechless", CallEnd.INEXPRESSIBLE, "no word for it"),
        ("lose", CallEnd.NOT_RUN, "gave 0 results for 1 calls"),
    ],
)
@pytest.mark.parametrize("isolate", [True, False])
def test_what_an_adapter_raises_is_an_outcome(
    shared: ProcessHost, do: str, ended: str, message: str, *, isolate: bool
) -> None:
    host: SessionHost = shared
    if not isolate:
        host = open_host(ADAPTER, target=Target(), specs={}, isolate=False)
    first, second = host.run([call(host, do), call(host)])
    assert first.ended == ended
    assert message in first.message
    assert second.ended == CallEnd.RETURNED
    if isolate:
        assert second.facts["pid"] == shared.run([call(shared)])[0].facts["pid"]


def test_many_crashes_in_one_batch_lose_no_result(shared: ProcessHost) -> None:
    calls = [call(shared, "abort" if index % 3 == 1 else "double") for index in range(15)]
    outcomes = shared.run(calls)
    expected = [CallEnd.SIGNAL if index % 3 == 1 else CallEnd.RETURNED for index in range(15)]
    assert [outcome.ended for outcome in outcomes] == expected
    assert all(doubled(item) for index, item in enumerate(calls) if index % 3 != 1)


def test_last_words_are_those_of_the_call_in_flight(shared: ProcessHost) -> None:
    _, outcome = shared.run([call(shared, "talk"), call(shared, "abort")])
    assert outcome.message.endswith("its last words: check failed: everything is lost")
    _, outcome = shared.run([call(shared), call(shared, "talk and abort")])
    assert outcome.message.endswith("xxx\ncheck failed: everything is lost")
    assert len(outcome.message) < 2200


def test_a_leak_over_many_quick_calls_is_seen(shared: ProcessHost) -> None:
    calls = [call(shared, "leak") for _ in range(150)]
    outcomes = shared.run(calls)
    ends = [outcome.ended for outcome in outcomes]
    assert len(ends) == 150
    assert set(ends) <= {CallEnd.RETURNED, CallEnd.MEMORY_LIMIT}
    assert len(set(pids(outcomes)) - {None}) > 1
    assert ends.count(CallEnd.MEMORY_LIMIT) <= len(set(pids(outcomes)))
    assert all(doubled(item) for item, end in zip(calls, ends, strict=True) if end == CallEnd.RETURNED)


def test_a_device_fault_retires_the_runner(shared: ProcessHost) -> None:
    outcomes = shared.run([call(shared), call(shared, "fault"), call(shared)])
    assert [outcome.ended for outcome in outcomes] == [CallEnd.RETURNED, CallEnd.DEVICE_FAULT, CallEnd.RETURNED]
    assert outcomes[1].message == "507015"
    assert outcomes[0].facts["pid"] != outcomes[2].facts["pid"]


def test_a_group_reaches_the_adapter_together_and_shares_its_end(shared: ProcessHost) -> None:
    outcomes = shared.run([call(shared), call(shared, group=1), call(shared, group=1), call(shared, group=2)])
    assert [outcome.facts["together"] for outcome in outcomes] == [1, 2, 2, 1]
    outcomes = shared.run([call(shared, group=1), call(shared, "exit", group=1), call(shared, group=2)])
    assert [outcome.ended for outcome in outcomes] == [CallEnd.EXIT, CallEnd.EXIT, CallEnd.RETURNED]


def test_a_runner_that_dies_between_batches_costs_nothing(shared: ProcessHost) -> None:
    (first,) = shared.run([call(shared, "die later")])
    assert first.ended == CallEnd.RETURNED
    deadline = time.monotonic() + 5
    while alive(int(str(first.facts["pid"]))) and time.monotonic() < deadline:
        time.sleep(0.01)
    (second,) = shared.run([call(shared)])
    assert second.ended == CallEnd.RETURNED
    assert second.facts["pid"] != first.facts["pid"]


def test_one_batch_of_calls_starts_no_spare() -> None:
    with ProcessHost(ADAPTER, target=Target(), limits=PATIENT) as host:
        host.run([call(host)])
        assert len(host._runners.children) == 1
        host.run([call(host)])
        assert len(host._runners.children) == 2


def test_a_spare_waits_and_takes_over(shared: ProcessHost) -> None:
    for _ in range(2):
        shared.run([call(shared)])
    while not (started := children(shared._runners.children[1]._process.pid)):
        time.sleep(0.01)
    outcomes = shared.run([call(shared, "exit"), call(shared)])
    assert outcomes[1].facts["pid"] in started


def test_a_spare_that_died_while_waiting_is_replaced(shared: ProcessHost) -> None:
    for _ in range(2):
        shared.run([call(shared)])
    os.kill(shared._runners.children[1]._process.pid, signal.SIGKILL)
    outcomes = shared.run([call(shared, "exit"), call(shared)])
    assert [outcome.ended for outcome in outcomes] == [CallEnd.EXIT, CallEnd.RETURNED]


def test_refresh_meets_an_adapter_without_a_past(shared: ProcessHost) -> None:
    shared.run([call(shared), call(shared)])
    shared.refresh()
    (outcome,) = shared.run([call(shared)])
    assert outcome.facts["calls"] == 1


def test_memory_grows_while_it_is_lent_and_is_lent_again(shared: ProcessHost) -> None:
    shared.recycle()
    first = call(shared, size=10)
    large = call(shared, size=20_000_000)
    assert [outcome.ended for outcome in shared.run([first, large])] == [CallEnd.RETURNED] * 2
    assert doubled(first)
    assert doubled(large)
    start = shared._arena.locate(first.buffers.memory) if first.buffers is not None else -1
    shared.recycle()
    again = shared.memory(64)
    assert shared._arena.locate(again) == start


def test_memory_of_others_is_refused(shared: ProcessHost) -> None:
    it = case()
    buffers = prepare(it, outputs=OUTPUTS, arrays={})
    with pytest.raises(HarnessError, match="host lent"):
        shared.run([Call(it, buffers)])


@pytest.mark.parametrize(
    ("word", "kind", "message"),
    [
        (f"{ADAPTER},opening=fail", HarnessError, "RuntimeError: no such device"),
        (f"{ADAPTER},opening=crash", HarnessError, "(?s)SIGABRT.*everything is lost"),
        (f"{ADAPTER},speed=9", UsageError, "unknown option 'speed'; expected opening"),
        ("nothing_of_this_name:Factory", UsageError, "no module 'nothing_of_this_name'"),
        ("torhc", UsageError, "did you mean 'torch'"),
    ],
)
def test_an_adapter_that_does_not_open_says_why(word: str, kind: type[Exception], message: str) -> None:
    before = runners(os.getpid())
    with pytest.raises(kind, match=message):
        open_host(word, target=Target(), specs={}, limits=QUICK)
    assert runners(os.getpid()) == before


def test_specs_are_loaded_in_the_runner_when_read() -> None:
    with ProcessHost(f"{ADAPTER},opening=specs", target=Target(), spec_folders=[], limits=QUICK, spare=False) as host:
        assert host.capabilities.description == "trouble"


@pytest.mark.slow
def test_nothing_is_left_behind() -> None:
    gc.collect()
    before = descriptors(), runners(os.getpid())
    for _ in range(3):
        with ProcessHost(ADAPTER, target=Target(), limits=QUICK) as host:
            host.run([call(host), call(host, "exit"), call(host)])
        del host
    gc.collect()
    assert (descriptors(), runners(os.getpid())) == before


def test_a_forgotten_host_ends_its_runners() -> None:
    host = ProcessHost(ADAPTER, target=Target(), limits=QUICK)
    pid = int(host.environment["pid"])
    del host
    gc.collect()
    assert not alive(pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_runners_end_with_the_parent(number: int) -> None:
    program = textwrap.dedent(
        f"""
        import os, signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may have it ignored
        sys.path.insert(0, {str(HERE)!r})
        from aclnn_cts.adapters.protocol import Call
        from aclnn_cts.core.case import Case
        from aclnn_cts.core.target import Target
        from aclnn_cts.sandbox.process import ProcessHost
        host = ProcessHost({ADAPTER!r}, target=Target())
        for _ in range(2):
            host.run([Call(Case("aclnnDouble", {{}}))])
        import time
        from aclnn_cts.sandbox.process_tree import descendants
        while len(descendants(os.getpid())) < 4:
            time.sleep(0.01)
        print(*descendants(os.getpid()), flush=True)
        host.run([Call(Case("aclnnDouble", {{}}), call_mode={{"do": "hang"}})])
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=HERE.parents[1],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as parent:
        assert parent.stdout is not None
        # A runner and a spare, each with its keeper.
        below = [int(word) for word in parent.stdout.readline().split()]
        assert len(below) == 4
        assert all(alive(process) for process in below)
        time.sleep(0.1)
        parent.send_signal(number)
        _, errors = parent.communicate(timeout=20)
    assert parent.returncode != 0
    assert ("KeyboardInterrupt" in errors) == (number == signal.SIGINT)
    deadline = time.monotonic() + 5
    while any(alive(process) for process in below) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(alive(process) for process in below)


def test_in_process_has_the_same_face() -> None:
    with open_host(ADAPTER, target=Target(), specs={}, isolate=False) as host:
        assert isinstance(host, InProcessHost)
        calls = [call(host), call(host, "sys.exit"), call(host, group=3), call(host, group=3)]
        outcomes = host.run(calls)
        assert [outcome.ended for outcome in outcomes] == [
            CallEnd.RETURNED,
            CallEnd.EXIT,
            CallEnd.RETURNED,
            CallEnd.RETURNED,
        ]
        assert [outcome.facts.get("together") for outcome in outcomes] == [1, None, 2, 2]
        assert outcomes[0].facts["pid"] == os.getpid()
        assert doubled(calls[0])
        assert host.memory(100).__array_interface__["data"][0] % 64 == 0
        host.refresh()
        host.recycle()


def test_a_cloned_parent_leaves_the_runners_alone(shared: ProcessHost) -> None:
    shared.run([call(shared)])
    child = shared._runners.children[0]
    child._parent += 1
    child.kill()
    child._parent -= 1
    assert alive(child._process.pid)
