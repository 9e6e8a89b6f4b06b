"""Nothing that an isolated implementation does harms its judge: it costs the call that does it, and a runner."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.sandbox import child
from aclnn_cts.sandbox.batch_outcomes import BatchOutcomes
from aclnn_cts.sandbox.child import ChildEnd
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.sandbox.process import ProcessHost
from aclnn_cts.sandbox.wire import ChannelError, FrameReader, frame, outcome_of_message
from tests.soak.hostile_adapters import ADAPTER, DEEDS, LIMITS, SUPPORT, Deed, mistakes_of, open_mistakes
from tests.support.hostile_adapter import DECLARATIONS, LEAVES, OUTCOMES, TROUBLE

DECODER = msgspec.msgpack.Decoder(Outcome)
QUICK = [deed for deed in DEEDS if deed.quick]


@pytest.fixture(scope="module")
def shared() -> Iterator[ProcessHost]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SUPPORT)
        with ProcessHost(ADAPTER, target=Target(), limits=LIMITS) as host:
            yield host


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SUPPORT)
    monkeypatch.setattr(child, "_MESSAGE_SECONDS", 0.3)
    monkeypatch.setattr(child, "_END_SECONDS", 0.5)


@pytest.mark.parametrize("deed", QUICK, ids=[deed.do for deed in QUICK])
def test_a_hostile_call_costs_nothing_but_itself(shared: ProcessHost, tmp_path: Path, deed: Deed) -> None:
    assert mistakes_of(deed, shared, tmp_path) == []


def test_every_deed_has_an_expectation() -> None:
    assert sorted(deed.do for deed in DEEDS) == sorted((*TROUBLE, *LEAVES, *OUTCOMES))


@pytest.mark.parametrize("declares", ["announce", "forged"])
def test_a_declaration_from_a_runner_is_held_to_its_schema(declares: str) -> None:
    assert open_mistakes(declares) == []


@pytest.mark.parametrize("declares", sorted(set(DECLARATIONS) - {"announce", "flood", "forged", "nested"}))
def test_a_declaration_names_the_field_that_is_wrong(declares: str) -> None:
    word = f"{ADAPTER},declares={declares}"
    with pytest.raises(HarnessError, match=f"^--adapter {word}: {DECLARATIONS[declares][2]}") as caught:
        open_host(word, target=Target(), specs={}, isolate=False)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("in_flight", [10**6, -5, 2**63 - 1, -(2**63), 3, 1])
def test_a_word_that_the_answers_contradict_leaves_the_blame_to_the_next_call(in_flight: int) -> None:
    outcomes = BatchOutcomes([Call(Case("aclnnDouble", {})) for _ in range(4)])
    answers = [Outcome(), Outcome()]
    outcomes.known += answers
    ending = ChildEnd(ended=CallEnd.SIGNAL, message="the runner died", signal=6, in_flight=in_flight)
    assert outcomes.runner_ended(answers, ending) == (None if in_flight == 1 else ending.outcome())
    assert len(outcomes.known) == (2 if in_flight == 1 else 3)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"junk!" + frame(b"\x80", 0), r"b'junk!.*' is in its pipe where a message must begin"),
        (frame(b"\x80", 1), "message 1 is in its pipe where message 0 must come"),
        (frame(b"", 0)[:8] + b"\xff" * 8, "its message has 18446744073709551615 bytes; the limit is 100"),
        (frame(bytes(101), 0), "its message has 101 bytes; the limit is 100"),
    ],
)
def test_what_is_no_frame_is_found_by_its_header(sent: bytes, message: str) -> None:
    frames = FrameReader(limit=100)
    for byte in sent[:15]:
        frames.feed(bytes([byte]))
        assert frames.take() is None
    frames.feed(sent[15:16])
    with pytest.raises(ChannelError, match=message):
        frames.take()


def test_frames_come_out_in_whatever_pieces_they_arrive() -> None:
    bodies = [b"", b"a", bytes(100)]
    sent = b"".join(frame(body, number) for number, body in enumerate(bodies))
    for size in (1, 7, len(sent)):
        frames, found = FrameReader(limit=100), []
        for start in range(0, len(sent), size):
            frames.feed(sent[start : start + size])
            while (body := frames.take()) is not None:
                found.append(body)
        assert found == bodies
        assert frames.waiting == 0


WRONG = [deed for deed in DEEDS if deed.do in OUTCOMES and not deed.quick]


@pytest.mark.parametrize("deed", WRONG, ids=[deed.do for deed in WRONG])
def test_an_outcome_out_of_range_is_none(deed: Deed) -> None:
    with pytest.raises(ChannelError) as caught:
        outcome_of_message(DECODER, msgspec.msgpack.encode(OUTCOMES[deed.do]()))
    assert re.match(deed.words, f"the runner broke the rules of its pipe: {caught.value}")


@pytest.mark.parametrize("body", [b"\x91" * 500_000, b"\xc1", b"", b"\x81\xa5ended\xa2\xff\xff", b"\x81\xa5ended\x01"])
def test_a_body_that_is_no_outcome_is_no_message(body: bytes) -> None:
    with pytest.raises(ChannelError, match="its message cannot be read"):
        outcome_of_message(DECODER, body)
