"""What failing calls share and passing calls do not: a condition on the arguments, found by a small decision list.

The features are expressions of the spec language: every size and its residues modulo 2 to 256, ranks, element counts,
attributes, which of two sizes is larger, dtypes, formats, layouts, offsets, recipes of data and the values that tensors
hold. A rule is a conjunction of up to three tests of them, a condition up to four rules. A test is added where it saves
more bits than it costs to write down (minimum description length: J. Rissanen, Modeling by shortest data description,
1978), so that a few failures name no condition by chance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Argument, Case, Scalar, Tensor
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.core.target import Target
from aclnn_cts.generate.predicate import with_contents
from aclnn_cts.speclang.expression import UNDEFINED, VALUE_WORDS, compile_node
from aclnn_cts.speclang.expression_parser import MAX_LENGTH, ExpressionError, parse

CASES = 600
"""Calls of either sort that are looked at: more take time and change little."""

_RULES, _TESTS = 4, 3
_HIGHEST_MODULUS = 256
_MODULI = np.arange(2, _HIGHEST_MODULUS + 1)
_VALUES = 32
"""Values of a number that are tried as thresholds, those that tell failing calls apart best (`_telling`)."""
_LEAST_GAIN = 4.0
"""Bits that a test must save beyond its own length."""
_SURPRISE, _NO_SURPRISE = -math.log2(0.01), -math.log2(0.99)
"""Bits of a failing and of a passing call that does not meet a condition, where one in a hundred may fail."""
_KEPT = 0.97
"""Share of its failures that a rule keeps when a test is added; else the test belongs to a rule of its own."""
_PART = 0.25
"""The same where one rule does not tell all failures from passing calls: each of several faults has its own."""
_LEFT = 0.05
"""Share of all failures below which those that no rule covers are left alone."""
_UNEXPLAINED = 0.5
"""Share of the failures that a condition may leave out: else it is nothing that they share."""
_OUTSIDE = 0.1
"""Share of failures among the calls that do not meet a condition: above it, it says where a fault hides, and not what
sets it off."""
_SAID = 0.9
"""Share of the calls that meet a condition, above which it tells next to none of them apart."""
_RARE = 0.5
"""Share of the calls that hold a value, above which it is nothing special."""
_MOST = 2 / 3
"""Share of failing calls from which on what tensors hold is not looked at: no value is in so many."""
_FEW = 8
"""Values of an integer up to which all others but one are a test too: a mode, and no size."""
_RANKS = 8
_RELATED = 16
"""Sizes that are compared with each other."""
_RELATION_BITS = 3.0
"""Bits that such a comparison costs more than a test of one size, which says more to a person."""
_AXES = 0.9
"""Share of the calls in which an attribute must name a dimension to be an axis, and a tensor have the same rank."""
_CLEAN = 0.9
"""Share of the calls that meet a condition and fail, from which on what tensors hold is not looked at."""
_CONTENT_BITS = 3.0
"""Bits that a test of what a tensor holds costs more: most data hide a fault or show it, and do not set it off."""
_WHOLE = ("signed", "unsigned", "bool")
"""Kinds of dtypes whose values are places and counts; those of floating data are looked at for special ones alone."""
_ORDINARY_DATA = frozenset(
    {"values", "integers", "normal", "uniform", "repeated", "softmax", "rstd", "invstd", "mean", "positive"}
    | {"indices", "ramp"}
)
"""Recipes of data that hold nothing special."""

_Mask: TypeAlias = NDArray[np.bool_]
_Counts: TypeAlias = NDArray[np.int64]
_Column: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Feature:
    text: str
    values: _Column
    """Integers (with `known` False: 0), or codes of words."""
    known: _Mask
    words: tuple[str, ...] = ()
    """What the codes stand for; empty for numbers."""
    bits: float = 0.0
    """That name it among its sort."""


@dataclass(frozen=True, slots=True)
class _Tests:
    """All tests of features but those of residues, one row a test."""

    texts: Sequence[str]
    bits: NDArray[np.float64]
    """That write each down."""
    masks: _Mask
    numbers: Sequence[_Feature]
    """The integers that are never negative, for tests of residues."""


@dataclass(frozen=True, slots=True)
class _Test:
    text: str
    mask: _Mask
    """Where it holds, of all calls."""
    gain: float
    """Bits saved, less the test's own length."""


def shared_condition(failing: Sequence[Case], passing: Sequence[Case]) -> tuple[str, ...]:
    """The condition that failing calls of one operator share: expressions of which one holds; none where there is none.

    At most `CASES` of either sort are looked at, evenly spread.
    """
    some, others = _spread(failing), _spread(passing)
    if not some or not others:
        return ()
    cases = [*some, *others]
    fails = np.arange(len(cases)) < len(some)
    plain = list(_features(cases))
    found = _searched(plain, fails, _KEPT)
    if not _is_clean(found, fails):
        parts = _searched(plain, fails, _PART)
        found = parts if _is_clean(parts, fails) else found
    if not _is_clean(found, fails) and len(some) < _MOST * len(cases):
        found = _searched([*plain, *_content_features(cases)], fails, _KEPT)
    return found[0]


def _is_clean(found: tuple[tuple[str, ...], _Mask], fails: _Mask) -> bool:
    """Whether nearly all calls that meet a condition fail."""
    rules, inside = found
    return bool(rules) and bool(np.count_nonzero(fails & inside) >= _CLEAN * np.count_nonzero(inside))


def _searched(features: Sequence[_Feature], fails: _Mask, kept: float) -> tuple[tuple[str, ...], _Mask]:
    """The condition that tells what fails best, and where it holds; `kept` as of `_KEPT`."""
    tests = _tests(features, fails)
    failing = np.count_nonzero(fails)
    rules: list[str] = []
    left = np.ones(fails.size, np.bool_)
    while len(rules) < _RULES and np.count_nonzero(fails & left) > _LEFT * failing:
        found = _rule(tests, fails, left, kept)
        if found is None or len(alternative([*rules, found[0]])) > MAX_LENGTH:
            break
        text, mask = found
        rules.append(text)
        left &= ~mask
    outside = np.count_nonzero(fails & left)
    if not rules or np.count_nonzero(left) < (1.0 - _SAID) * fails.size:
        return (), ~left
    if outside > min(_UNEXPLAINED * failing, _OUTSIDE * np.count_nonzero(left)):
        return (), ~left
    return tuple(rules), ~left


def alternative(rules: Sequence[str]) -> str:
    """The expression that holds where one of some does."""
    return rules[0] if len(rules) == 1 else " or ".join(f"({rule})" for rule in rules)


def _spread(cases: Sequence[Case]) -> Sequence[Case]:
    return cases[:: -(-len(cases) // CASES)] if cases else cases


def _rule(tests: _Tests, fails: _Mask, left: _Mask, kept: float) -> tuple[str, _Mask] | None:
    """A conjunction of tests, and where it holds; None where no test is worth its length."""
    texts: list[str] = []
    inside = left
    while len(texts) < _TESTS:
        best = _best(tests, fails, inside, kept if texts else 0.0)
        if best is None:
            break
        texts.append(best.text)
        inside = inside & best.mask
        if not np.any(inside & ~fails):
            break
    return (" and ".join(texts), inside) if texts else None


def _tests(features: Sequence[_Feature], fails: _Mask) -> _Tests:
    found = [
        (text, feature.bits + bits, mask)
        for feature in features
        for text, mask, bits in (_of_words(feature) if feature.words else _of_numbers(feature, fails))
    ]
    return _Tests(
        texts=[text for text, _, _ in found],
        bits=np.array([bits for _, bits, _ in found]),
        masks=np.array([mask for _, _, mask in found], np.bool_).reshape(-1, fails.size),
        numbers=[feature for feature in features if _has_residues(feature)],
    )


def _has_residues(feature: _Feature) -> bool:
    """Whether blocks may leave a rest of it: a size, which is never negative, or a product of sizes."""
    values = feature.values[feature.known]
    is_size = not feature.words and not any(word in feature.text for word in ("rank(", "// numel(", "distinct("))
    return is_size and values.dtype == np.int64 and values.size > 0 and bool(values.min() >= 0)


def _features(cases: Sequence[Case]) -> Iterator[_Feature]:
    """The features of arguments that are not the same in all cases, each set of values once."""
    seen: set[bytes] = set()
    arguments = [case.arguments for case in cases]
    found = list(_distinct((_feature(text, arguments, cases) for text in _texts(cases)), seen))
    yield from _named(found)
    sizes = [item for item in found if item.values.dtype == np.int64 and not item.words]
    compared = [item for item in sizes if _is_size(item.text) and item.known.mean() >= _AXES][:_RELATED]
    yield from _named(list(_distinct(_relations(compared), seen)), _RELATION_BITS)


def _content_features(cases: Sequence[Case]) -> Iterator[_Feature]:
    """The features of what tensors hold."""
    arguments = with_contents(cases)
    found = _distinct((_feature(text, arguments, cases) for text in _content_texts(cases)), set())
    yield from _named([item for item in found if not _is_ordinary(item)], _CONTENT_BITS)


def _is_ordinary(feature: _Feature) -> bool:
    """Whether so many calls hold a value that it is nothing special: most data show a fault or hide it."""
    return _is_special(feature.text) and bool(np.count_nonzero(feature.values == 1) > _RARE * feature.values.size)


def _is_special(text: str) -> bool:
    return text.startswith("holds(") and text.endswith('")')


def _named(features: Sequence[_Feature], bits: float = 0.0) -> Iterator[_Feature]:
    """Features with the bits that name one of them; `bits`: those that name their sort."""
    bits += math.log2(max(len(features), 2))
    return (replace(feature, bits=bits) for feature in features)


def _distinct(features: Iterable[_Feature | None], seen: set[bytes]) -> Iterator[_Feature]:
    for feature in features:
        if feature is None:
            continue
        key = feature.values.tobytes() + feature.known.tobytes()
        if key not in seen:
            seen.add(key)
            yield feature


def _is_size(text: str) -> bool:
    """Whether a feature is compared with others: a size or an attribute, and nothing that is computed from them."""
    return not any(word in text for word in ("rank(", "offset(", "len(", "numel("))


def _relations(sizes: Sequence[_Feature]) -> Iterator[_Feature]:
    """Which of two sizes is larger, and whether one is a multiple of the other."""
    for one, other in combinations(sizes, 2):
        known = one.known & other.known
        for word, compare in (("<", np.less), (">", np.greater), ("==", np.equal)):
            yield _flag(f"{one.text} {word} {other.text}", compare(one.values, other.values), known)
        for left, right in ((one, other), (other, one)):
            has = known & (right.values > 0)
            rest = left.values % np.where(has, right.values, 1)
            yield _flag(f"{_operand(left.text)} % {_operand(right.text)} == 0", rest == 0, has)


def _operand(text: str) -> str:
    return f"({text})" if any(f" {word} " in text for word in ("//", "+", "-")) else text


def _flag(text: str, holds: _Mask, known: _Mask) -> _Feature:
    return _Feature(text, np.where(known, holds.astype(np.int64), -1), known, ("false", "true"))


def _texts(cases: Sequence[Case]) -> Iterator[str]:
    """Expressions over the arguments; those of which a person thinks first come first."""
    arguments = _by_name(cases)
    tensors, plain = _tensors(arguments), [name for name in arguments if name not in _tensors(arguments)]
    yield from (f"{word}({name})" for word in ("dtype", "format") for name in tensors)
    for name in plain:
        longest = max((len(value) for value in arguments[name] if isinstance(value, tuple)), default=None)
        if longest is None:
            yield f"value({name})" if any(isinstance(value, Scalar) for value in arguments[name]) else name
        else:
            yield f"len({name})"
            yield from (f"item({name}, {place})" for place in range(min(longest, _RANKS)))
    for name in tensors:
        axes = _axes(arguments[name])
        yield f"rank({name})"
        yield from (f"dim({name}, {axis})" for axis in axes)
        for axis in plain:
            if _is_axis(arguments[axis], arguments[name]):
                yield f"dim({name}, {axis})"
                yield f"numel({name}) // dim({name}, {axis})"
                yield f"{axis} + rank({name})"
                yield f"{axis} - rank({name})"
        yield f"numel({name})"
        if _rank(arguments[name]) is not None:
            yield from (f"numel({name}) // dim({name}, {axis})" for axis in axes)
    yield from (f"numel({name}) // numel({other})" for name in tensors for other in tensors if name != other)
    yield from (f"{word}({name})" for word in ("contiguous", "offset", "recipe") for name in tensors)


def _content_texts(cases: Sequence[Case]) -> Iterator[str]:
    arguments = _by_name(cases)
    tensors = _tensors(arguments)
    numbers = [name for name, values in arguments.items() if name not in tensors and any(map(_is_integer, values))]
    for name in tensors:
        held = [value for value in arguments[name] if isinstance(value, Tensor) and value.data is not None]
        if any(DTYPES[tensor.dtype].kind in _WHOLE for tensor in held):
            yield from (f"{word}({name})" for word in ("distinct", "highest", "lowest"))
            yield f"distinct({name}) < numel({name})"
            for number in numbers:
                yield f"holds({name}, {number})"
                yield f"distinct({name}) < {number}"
                yield f"{number} - highest({name})"
        if held:
            yield from (f'holds({name}, "{word}")' for word in VALUE_WORDS)


def _by_name(cases: Iterable[Case]) -> Mapping[str, list[Any]]:
    arguments: dict[str, list[Any]] = {}
    for case in cases:
        for name, value in case.arguments.items():
            arguments.setdefault(name, []).append(value)
    return arguments


def _tensors(arguments: Mapping[str, list[Any]]) -> list[str]:
    return [name for name, values in arguments.items() if any(isinstance(value, Tensor) for value in values)]


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _axes(tensors: Sequence[object]) -> Iterable[int]:
    """Places from the front where nearly all have one rank, and from the back as well where they have not."""
    rank = _rank(tensors)
    if rank is not None:
        return range(min(rank, _RANKS))
    highest = min(max((len(value.shape) for value in tensors if isinstance(value, Tensor)), default=0), _RANKS)
    return (*range(-1, -min(highest, 3) - 1, -1), *range(highest))


def _rank(tensors: Iterable[object]) -> int | None:
    """The rank that nearly all tensors have; None where they have several."""
    ranks = Counter(len(value.shape) for value in tensors if isinstance(value, Tensor))
    [(rank, number)] = ranks.most_common(1) or [(0, 0)]
    return rank if number and number >= _AXES * ranks.total() else None


def _is_axis(values: Sequence[object], tensors: Sequence[object]) -> bool:
    """Whether an attribute names a dimension of a tensor in nearly every call."""
    pairs = [pair for pair in zip(values, tensors, strict=False) if isinstance(pair[1], Tensor)]
    named = sum(
        isinstance(value, int) and not isinstance(value, bool) and -len(tensor.shape) <= value < len(tensor.shape)
        for value, tensor in pairs
        if isinstance(tensor, Tensor)
    )
    return named > 0 and named >= _AXES * len(pairs)


def _feature(text: str, arguments: Sequence[Mapping[str, Argument]], cases: Sequence[Case]) -> _Feature | None:
    """A feature's values, where `arguments` are those of the cases; None where it tells no call from another."""
    try:
        evaluate = compile_node(parse(text))
    except ExpressionError:
        # In a run that somebody changed an argument has any name.
        return None
    found = [_value(evaluate, read, case.target) for read, case in zip(arguments, cases, strict=True)]
    known = np.array([value is not None for value in found])
    distinct = {value for value in found if value is not None}
    if len(distinct) + (not known.all()) < 2:
        return None
    if all(isinstance(value, float) or _is_integer(value) for value in distinct):
        whole = all(not isinstance(value, float) or value.is_integer() for value in distinct)
        return _Feature(text, np.array([value or 0 for value in found], np.int64 if whole else np.float64), known)
    words = sorted({_word(value) for value in found if value is not None})
    codes = {word: code for code, word in enumerate(words)}
    return _Feature(
        text, np.array([codes[_word(value)] if value is not None else -1 for value in found]), known, tuple(words)
    )


def _value(evaluate: Callable[..., object], arguments: Mapping[str, Argument], target: Target) -> object:
    try:
        value = evaluate(arguments, target)
    except UNDEFINED:
        return None
    if _is_integer(value):
        return value if abs(value) < 2**62 else None  # type: ignore[arg-type]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (bool, str)) else None


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class _Calls:
    """How many calls a rule is narrowed on."""

    failing: int
    passing: int
    least: float
    """Share of the failures that a test must keep."""

    def gains(self, failing: _Counts, passing: _Counts, bits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bits that tests save, which hold of so many failing and passing calls and take `bits` to write down."""
        all_failing, all_passing = self.failing, self.passing
        whole = _bits(np.array([all_failing]), np.array([all_passing]))[0]
        # Where it holds a fault may hide; where it does not, a failure is a surprise.
        outside = (all_failing - failing) * _SURPRISE + (all_passing - passing) * _NO_SURPRISE
        split = _bits(failing, passing) + outside
        # A test is for what fails more often where it holds than where it does not.
        more = failing * (all_passing - passing) > (all_failing - failing) * passing
        kept = more & (failing >= self.least * all_failing) & (failing > 0)
        return np.where(kept, whole - split - bits, -np.inf)


def _bits(failing: _Counts, passing: _Counts) -> NDArray[np.float64]:
    """Bits that say which of so many calls fail."""
    total = failing + passing
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [np.where(count > 0, count * np.log2(total / count), 0.0) for count in (failing, passing)]
    return np.asarray(parts[0] + parts[1], np.float64)


def _best(tests: _Tests, fails: _Mask, inside: _Mask, least: float) -> _Test | None:
    """The test that saves most among the calls inside; None where none saves enough."""
    failing, passing = np.flatnonzero(inside & fails), np.flatnonzero(inside & ~fails)
    if not failing.size or not passing.size:
        return None
    calls = _Calls(failing=failing.size, passing=passing.size, least=least)
    found = [_residue_test(feature, failing, passing, calls) for feature in tests.numbers]
    if tests.texts:
        held, others = (np.count_nonzero(tests.masks[:, places], axis=1) for places in (failing, passing))
        gains = calls.gains(held, others, tests.bits)
        place = int(np.argmax(gains))
        found.insert(0, _Test(tests.texts[place], tests.masks[place], float(gains[place])))
    return max(
        (test for test in found if test is not None and test.gain > _LEAST_GAIN),
        key=lambda test: test.gain,
        default=None,
    )


_BARE = ("dtype(", "format(")
"""What has names for values; the words of a string argument are quoted."""


def _of_words(feature: _Feature) -> Iterator[tuple[str, _Mask, float]]:
    """Tests of words: text, where it holds, and the bits that choose it among the feature's tests."""
    text, is_flag = feature.text, set(feature.words) <= {"true", "false"}
    is_recipe, special = text.startswith("recipe"), _is_special(text)
    is_name = text.startswith(_BARE)
    bits = 1.0 if is_flag else 1.0 + math.log2(len(feature.words))
    for code, word in enumerate(feature.words):
        has = feature.values == code
        if special and word == "false":
            continue
        if is_flag:
            yield (text if word == "true" else _negated(text)), has & feature.known, bits
        elif is_recipe:
            # Most data show a fault or hide it, and do not set it off: what all others share says nothing.
            if word not in _ORDINARY_DATA:
                yield f'{text} == "{word}"', has & feature.known, bits
        elif is_name or _is_plain(word):
            shown = word if is_name else f'"{word}"'
            yield f"{text} == {shown}", has & feature.known, bits
            if len(feature.words) > 2:
                yield f"{text} != {shown}", ~has & feature.known, bits


def _is_plain(word: str) -> bool:
    """Whether a word can stand in quotes."""
    return word.isprintable() and not {'"', "\\"} & set(word)


def _negated(text: str) -> str:
    for word, opposite in ((" < ", " >= "), (" > ", " <= "), (" == ", " != ")):
        if word in text:
            return text.replace(word, opposite)
    return f"not {text}"


def _of_numbers(feature: _Feature, fails: _Mask) -> Iterator[tuple[str, _Mask, float]]:
    values, known, text = feature.values, feature.known, feature.text
    distinct = np.unique(values[known])
    if distinct.size < 2:
        return
    bits = 2.0 + math.log2(distinct.size)
    if distinct[0] == 0:
        yield f"{text} != 0", (values != 0) & known, 2.0
    for value in _telling(distinct, values[known & fails], values[known & ~fails]):
        number = _number(value)
        yield f"{text} == {number}", (values == float(number)) & known, bits
        if 2 < distinct.size <= _FEW:
            yield f"{text} != {number}", (values != float(number)) & known, bits
        if value != distinct[0]:
            yield f"{text} >= {number}", (values >= float(number)) & known, bits
        if value != distinct[-1]:
            yield f"{text} <= {number}", (values <= float(number)) & known, bits


def _telling(distinct: NDArray[Any], failing: NDArray[Any], passing: NDArray[Any]) -> NDArray[Any]:
    """The values before or behind which the shares of failing and passing calls differ most."""
    below = [np.searchsorted(np.sort(calls), distinct) / max(calls.size, 1) for calls in (failing, passing)]
    apart = np.append(abs(below[0] - below[1]), 0.0)
    best = np.argsort(-np.maximum(apart[:-1], apart[1:]), kind="stable")[:_VALUES]
    return np.asarray(distinct[np.sort(best)])


def _number(value: np.generic) -> str:
    """A number as the expression language writes it, a float to four digits."""
    if isinstance(value, np.integer):
        return str(value)
    text = f"{float(value):.4g}"
    if "e" in text:
        return f"{float(value):.3e}"
    return text if "." in text else f"{text}.0"


def _residue_test(
    feature: _Feature, failing: NDArray[np.intp], passing: NDArray[np.intp], calls: _Calls
) -> _Test | None:
    """The best residue of an integer that is never negative."""
    sorts = [feature.values[places[feature.known[places]]] for places in (failing, passing)]
    values, places = np.unique(np.concatenate(sorts), return_inverse=True)
    if values.size < 3:
        return None
    moduli = _MODULI[values[-1] >= _MODULI]
    # One row of bins for each modulus; the last one is for all residues but 0.
    bins = np.minimum(values[:, None] % moduli, _HIGHEST_MODULUS) + np.arange(moduli.size) * (_HIGHEST_MODULUS + 1)
    fewer = sorts[0].size
    counts = [
        _residue_counts(bins, np.bincount(sort, minlength=values.size), moduli.size)
        for sort in (places[:fewer], places[fewer:])
    ]
    bits = (feature.bits + _RESIDUE_BITS[: moduli.size]).ravel()
    flat = [table.ravel() for table in counts]
    places = np.flatnonzero(flat[0] >= max(calls.least * calls.failing, 1))
    if not places.size:
        return None
    gains = calls.gains(flat[0][places], flat[1][places], bits[places])
    best = int(np.argmax(gains))
    row, residue = divmod(int(places[best]), _HIGHEST_MODULUS + 1)
    modulus, differs = int(moduli[row]), residue == _HIGHEST_MODULUS
    text = _operand(feature.text)
    mask = ((feature.values % modulus == (0 if differs else residue)) != differs) & feature.known
    test = f"{text} % {modulus} != 0" if differs else f"{text} % {modulus} == {residue}"
    return _Test(test, mask, float(gains[best]))


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
