"""What failing calls share and passing calls do not: a condition on the arguments, found by a small decision list.

The features are expressions of the spec language: every size and its residues modulo 2 to 256, ranks, element counts,
attributes, dtypes, formats, layouts, offsets and recipes of data. A rule is a conjunction of up to three tests of them,
a condition up to two rules. A test is added where it saves more bits than it costs to write down (minimum description
length: J. Rissanen, Modeling by shortest data description, 1978), so that a few failures name no condition by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.verdict import Result, Signature
from aclnn_cts.speclang.expression import UNDEFINED, compile_node
from aclnn_cts.speclang.expression_parser import parse
from aclnn_cts.speclang.predicate import compile_predicate
from aclnn_cts.store.store_reader import Query, ResultReader

__all__ = ["CASES", "SharedCondition", "condition_in_run", "shared_condition"]

CASES = 1500
"""Calls of either sort that are looked at: more take time and change little."""

_RULES, _TESTS = 2, 3
_HIGHEST_MODULUS = 256
_MODULI = np.arange(2, _HIGHEST_MODULUS + 1)
_VALUES = 64
"""Values of an integer that are tried as thresholds."""
_LEAST_GAIN = 4.0
"""Bits that a condition must save beyond its own length."""
_SURPRISE, _NO_SURPRISE = -math.log2(0.01), -math.log2(0.99)
"""Bits of a failing and of a passing call that does not meet a condition, where one in a hundred may fail."""
_KEPT = 0.97
"""Share of its failures that a rule keeps when a test is added; else the test belongs to a rule of its own."""
_LEFT = 0.05
"""Share of all failures below which those that no rule covers are left alone."""
_UNEXPLAINED = 0.5
"""Share of the failures that a condition may leave out: else it is nothing that they share."""
_OUTSIDE = 0.1
"""Share of failures among the calls that do not meet a condition: above it, it says where a fault hides, and not what
sets it off."""
_RANKS = 8
_ORDINARY_DATA = frozenset(
    {"values", "integers", "normal", "uniform", "softmax", "rstd", "positive", "indices", "ramp"}
)
"""Recipes of data that hold nothing special."""

_Mask: TypeAlias = NDArray[np.bool_]
_Counts: TypeAlias = NDArray[np.int64]
_Column: TypeAlias = NDArray[Any]


class SharedCondition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on the arguments that tells failing calls from passing ones, with its counts."""

    when: str
    """In the expression language of specs: it may stand in a waiver as it is."""
    failing: int
    """Failing calls that meet it."""
    of_failing: int
    passing: int
    """Passing calls that meet it."""
    of_passing: int

    @property
    def en(self) -> str:
        """One sentence in English."""
        who = f"all {self.failing}" if self.failing == self.of_failing else f"{self.failing} of {self.of_failing}"
        calls = "failing call has" if self.failing == self.of_failing == 1 else "failing calls have"
        others = f"{self.passing} of {self.of_passing} passing calls have it"
        if not self.passing:
            others = f"none of {self.of_passing} passing calls has it"
        return f"{'the' if calls.endswith('has') else who} {calls} `{self.when}`; {others}"

    @property
    def zh(self) -> str:
        """The same in Chinese."""
        who = (
            f"全部 {self.failing} 个"
            if self.failing == self.of_failing
            else f"{self.of_failing} 个中的 {self.failing} 个"
        )
        others = f"{self.of_passing} 个通过的调用中有 {self.passing} 个满足"
        if not self.passing:
            others = f"{self.of_passing} 个通过的调用均不满足"
        return f"{who}失败的调用满足 `{self.when}`；{others}"


@dataclass(frozen=True, slots=True)
class _Feature:
    text: str
    values: _Column
    """Integers (with `known` False: 0), or codes of words."""
    known: _Mask
    words: tuple[str, ...] = ()
    """What the codes stand for; empty for integers."""


@dataclass(frozen=True, slots=True)
class _Test:
    text: str
    mask: _Mask
    gain: float
    """Bits saved, less the test's own length."""


def shared_condition(failing: Sequence[Case], passing: Sequence[Case]) -> SharedCondition | None:
    """The condition that failing calls of one operator share; None where nothing tells them from passing ones.

    At most `CASES` of either sort are looked at, evenly spread.
    """
    some, others = _spread(failing), _spread(passing)
    if not some or not others:
        return None
    cases = [*some, *others]
    fails = np.arange(len(cases)) < len(some)
    features = list(_features(cases))
    rules: list[str] = []
    left = np.ones(len(cases), np.bool_)
    while len(rules) < _RULES and np.count_nonzero(fails & left) > _LEFT * len(some):
        found = _rule(features, fails, left)
        if found is None:
            break
        text, mask = found
        rules.append(text)
        left &= ~mask
    outside = np.count_nonzero(fails & left)
    if not rules or outside > min(_UNEXPLAINED * len(some), _OUTSIDE * np.count_nonzero(left)):
        return None
    when = rules[0] if len(rules) == 1 else " or ".join(f"({rule})" for rule in rules)
    holds = compile_predicate(when)
    return SharedCondition(
        when=when,
        failing=sum(map(holds, failing)),
        of_failing=len(failing),
        passing=sum(map(holds, passing)),
        of_passing=len(passing),
    )


def condition_in_run(results: ResultReader, signatures: Iterable[Signature]) -> SharedCondition | None:
    """The condition that the failures of these findings of a run share, against comparable calls that passed.

    Comparable are trials of the same operator and check, and of broken calls those that break the same constraints.
    Failures of plain calls are looked at alone where there are any: a law or a life cycle makes several calls.
    """
    found = (results.records(Query(signature=signature), limit=CASES) for signature in signatures)
    records = list(chain.from_iterable(found))
    plain = [record for record in records if record.trial.promise in _PLAIN]
    if not records:
        return None
    records = plain or records
    sorts = {(record.trial.case.operator, record.trial.promise, record.signature.constraint) for record in records}
    queries = (
        Query(operator=operator, promise=promise, constraint_id=constraint or None, result=Result.PASSED)
        for operator, promise, constraint in sorted(sorts)
    )
    passed = chain.from_iterable(results.records(query, limit=CASES) for query in queries)
    broken = any(constraint for _, _, constraint in sorts)
    passing = [record.trial.case for record in passed if broken or record.trial.case.origin.kind != "invalid"]
    return shared_condition([record.trial.case for record in records], passing)


_PLAIN = frozenset({"values", "status", "example", "boundary", "memory", "precision"})
"""Checks whose trials are about one call."""


def _spread(cases: Sequence[Case]) -> Sequence[Case]:
    return cases[:: -(-len(cases) // CASES)] if cases else cases


def _rule(features: Sequence[_Feature], fails: _Mask, left: _Mask) -> tuple[str, _Mask] | None:
    """A conjunction of tests, and where it holds; None where no test is worth its length."""
    texts: list[str] = []
    inside = left
    while len(texts) < _TESTS:
        here = [_within(feature, inside) for feature in features]
        best = _best(here, fails[inside], _KEPT if texts else 0.0)
        if best is None or (not texts and best.gain < _LEAST_GAIN):
            break
        texts.append(best.text)
        narrowed = np.zeros_like(inside)
        narrowed[np.flatnonzero(inside)[best.mask]] = True
        inside = narrowed
        if not np.any(inside & ~fails):
            break
    return (" and ".join(texts), inside) if texts else None


def _within(feature: _Feature, mask: _Mask) -> _Feature:
    return _Feature(feature.text, feature.values[mask], feature.known[mask], feature.words)


def _features(cases: Sequence[Case]) -> Iterator[_Feature]:
    """The features of cases that are not the same in all of them, each set of values once."""
    seen: set[bytes] = set()
    for text in _texts(cases):
        feature = _feature(text, cases)
        if feature is None:
            continue
        key = feature.values.tobytes() + feature.known.tobytes()
        if key not in seen:
            seen.add(key)
            yield feature


def _texts(cases: Sequence[Case]) -> Iterator[str]:
    """Expressions over the arguments; those of which a person thinks first come first."""
    arguments: dict[str, list[Any]] = {}
    for case in cases:
        for name, value in case.arguments.items():
            arguments.setdefault(name, []).append(value)
    tensors = [name for name, values in arguments.items() if any(isinstance(value, Tensor) for value in values)]
    plain = [name for name in arguments if name not in tensors]
    yield from (f"{word}({name})" for word in ("dtype", "format") for name in tensors)
    for name in plain:
        longest = max((len(value) for value in arguments[name] if isinstance(value, tuple)), default=None)
        if longest is None:
            yield name
        else:
            yield f"len({name})"
            yield from (f"item({name}, {place})" for place in range(min(longest, _RANKS)))
    for name in tensors:
        yield f"rank({name})"
        yield from (f"dim({name}, {axis})" for axis in _axes(arguments[name]))
        for axis in plain:
            if _is_axis(arguments[axis], arguments[name]):
                yield f"dim({name}, {axis})"
                yield f"numel({name}) // dim({name}, {axis})"
        yield f"numel({name})"
    yield from (f"numel({name}) // numel({other})" for name in tensors for other in tensors if name != other)
    yield from (f"{word}({name})" for word in ("contiguous", "offset", "recipe") for name in tensors)


def _axes(tensors: Iterable[object]) -> Iterable[int]:
    """Places from the front where the rank is always the same, and from the back as well where it is not."""
    ranks = {len(value.shape) for value in tensors if isinstance(value, Tensor)}
    highest = min(max(ranks, default=0), _RANKS)
    return range(highest) if len(ranks) == 1 else (*range(-1, -min(highest, 3) - 1, -1), *range(highest))


def _is_axis(values: Sequence[object], tensors: Sequence[object]) -> bool:
    """Whether an attribute names a dimension of a tensor in every call."""
    return all(
        isinstance(value, int)
        and not isinstance(value, bool)
        and (not isinstance(tensor, Tensor) or -len(tensor.shape) <= value < len(tensor.shape))
        for value, tensor in zip(values, tensors, strict=False)
    )


def _feature(text: str, cases: Sequence[Case]) -> _Feature | None:
    """A feature's values; None where it tells no call from another."""
    evaluate = compile_node(parse(text))
    found = [_value(evaluate, case) for case in cases]
    known = np.array([value is not None for value in found])
    distinct = {value for value in found if value is not None}
    if len(distinct) + (not known.all()) < 2:
        return None
    if all(isinstance(value, int) and not isinstance(value, bool) for value in distinct):
        return _Feature(text, np.array([value or 0 for value in found], np.int64), known)
    if any(isinstance(value, float) for value in distinct):
        return None
    words = sorted({_word(value) for value in distinct})
    codes = {word: code for code, word in enumerate(words)}
    return _Feature(
        text, np.array([codes[_word(value)] if value is not None else -1 for value in found]), known, tuple(words)
    )


def _value(evaluate: Callable[..., object], case: Case) -> object:
    try:
        value = evaluate(case.arguments, case.target)
    except UNDEFINED:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) < 2**62 else None
    return value if isinstance(value, (bool, str, float)) else None


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls that a rule is narrowed on."""

    fails: _Mask
    least: float
    """Share of the failures that a test must keep."""
    name_bits: float
    """Bits that name one of the features."""
    failing: int

    def gains(self, failing: _Counts, passing: _Counts, bits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bits that tests save, which hold of so many failing and passing calls and take `bits` to write down."""
        all_failing, all_passing = self.failing, self.fails.size - self.failing
        whole = _bits(np.array([all_failing]), np.array([all_passing]))[0]
        # Where it holds a fault may hide; where it does not, a failure is a surprise.
        outside = (all_failing - failing) * _SURPRISE + (all_passing - passing) * _NO_SURPRISE
        split = _bits(failing, passing) + outside
        # A test is for what fails more often where it holds than where it does not.
        more = failing * (all_passing - passing) > (all_failing - failing) * passing
        kept = more & (failing >= self.least * all_failing) & (failing > 0)
        return np.where(kept, whole - split - self.name_bits - bits, -np.inf)


def _bits(failing: _Counts, passing: _Counts) -> NDArray[np.float64]:
    """Bits that say which of so many calls fail."""
    total = failing + passing
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [np.where(count > 0, count * np.log2(total / count), 0.0) for count in (failing, passing)]
    return np.asarray(parts[0] + parts[1], np.float64)


def _best(features: Sequence[_Feature], fails: _Mask, least: float) -> _Test | None:
    """The test of any feature that saves most; None where none saves anything."""
    calls = _Calls(fails, least, math.log2(max(len(features), 2)), int(np.count_nonzero(fails)))
    if not 0 < calls.failing < fails.size:
        return None
    found = (test for feature in features for test in (_plain_test(feature, calls), _residue_test(feature, calls)))
    return max(
        (test for test in found if test is not None and test.gain > 0.0), key=lambda test: test.gain, default=None
    )


def _plain_test(feature: _Feature, calls: _Calls) -> _Test | None:
    candidates = list(_of_words(feature) if feature.words else _of_integers(feature))
    if not candidates:
        return None
    masks = np.stack([mask for _, mask, _ in candidates])
    failing = masks.astype(np.int64) @ calls.fails.astype(np.int64)
    gains = calls.gains(
        failing, masks.sum(axis=1, dtype=np.int64) - failing, np.array([item[2] for item in candidates])
    )
    text, mask, _ = candidates[int(np.argmax(gains))]
    return _Test(text, mask, float(gains.max()))


def _of_words(feature: _Feature) -> Iterator[tuple[str, _Mask, float]]:
    """Tests of words: text, where it holds, and the bits that choose it among the feature's tests."""
    text, is_flag = feature.text, set(feature.words) <= {"true", "false"}
    is_recipe = text.startswith("recipe")
    bits = 1.0 if is_flag else 1.0 + math.log2(len(feature.words))
    for code, word in enumerate(feature.words):
        has = feature.values == code
        if is_flag:
            yield (text if word == "true" else f"not {text}"), has & feature.known, bits
        elif is_recipe:
            # Most data show a fault or hide it, and do not set it off: what all others share says nothing.
            if word not in _ORDINARY_DATA:
                yield f'{text} == "{word}"', has & feature.known, bits
        else:
            yield f"{text} == {word}", has & feature.known, bits
            if len(feature.words) > 2:
                yield f"{text} != {word}", ~has & feature.known, bits


def _of_integers(feature: _Feature) -> Iterator[tuple[str, _Mask, float]]:
    values, known, text = feature.values, feature.known, feature.text
    distinct = np.unique(values[known])
    if distinct.size < 2:
        return
    bits = 2.0 + math.log2(distinct.size)
    if distinct[0] == 0:
        yield f"{text} != 0", (values != 0) & known, 2.0
    few = distinct[:: -(-distinct.size // _VALUES)]
    for value in few:
        yield f"{text} == {value}", (values == value) & known, bits
        if value != distinct[0]:
            yield f"{text} >= {value}", (values >= value) & known, bits
        if value != distinct[-1]:
            yield f"{text} <= {value}", (values <= value) & known, bits


def _residue_test(feature: _Feature, calls: _Calls) -> _Test | None:
    """The best residue of an integer that is never negative."""
    values, places = np.unique(feature.values[feature.known], return_inverse=True)
    if feature.words or values.size < 3 or values[0] < 0:
        return None
    moduli = _MODULI[values[-1] >= _MODULI]
    # One row of bins for each modulus; the last one is for all residues but 0.
    bins = np.minimum(values[:, None] % moduli, _HIGHEST_MODULUS) + np.arange(moduli.size) * (_HIGHEST_MODULUS + 1)
    failing, passing = (
        _residue_counts(bins, np.bincount(places[sort], minlength=values.size), moduli.size)
        for sort in (calls.fails[feature.known], ~calls.fails[feature.known])
    )
    gains = calls.gains(failing.ravel(), passing.ravel(), _RESIDUE_BITS[: moduli.size].ravel()).reshape(failing.shape)
    row, residue = (int(place) for place in np.unravel_index(np.argmax(gains), gains.shape))
    modulus, differs = int(moduli[row]), residue == _HIGHEST_MODULUS
    text = f"({feature.text})" if " // " in feature.text else feature.text
    mask = ((feature.values % modulus == (0 if differs else residue)) != differs) & feature.known
    test = f"{text} % {modulus} != 0" if differs else f"{text} % {modulus} == {residue}"
    return _Test(test, mask, float(gains[row, residue]))


def _residue_counts(bins: _Counts, weights: _Counts, rows: int) -> _Counts:
    """Calls by modulus and residue, and in the last column those whose residue is not 0."""
    whole = np.repeat(weights, rows)
    counts = np.bincount(bins.ravel(), weights=whole, minlength=rows * (_HIGHEST_MODULUS + 1)).astype(np.int64)
    table = counts.reshape(rows, _HIGHEST_MODULUS + 1)
    table[:, -1] = weights.sum() - table[:, 0]
    return table


def _residue_bits() -> NDArray[np.float64]:
    """Bits of a test by modulus and residue: fewer for powers of two, as blocks are, and for the ends of a block."""
    modulus = _MODULI[:, None].astype(np.float64)
    residue = np.arange(_HIGHEST_MODULUS + 1)
    first = np.where(_MODULI & (_MODULI - 1) == 0, 6.0, 11.0)[:, None]
    ends = (residue == 1) | (residue == modulus - 1)
    plain = (residue == 0) | (residue == _HIGHEST_MODULUS)
    return np.asarray(first + np.where(plain, 0.0, np.where(ends, 2.0, np.log2(modulus))), np.float64)


_RESIDUE_BITS = _residue_bits()
