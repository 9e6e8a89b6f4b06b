"""A vendor's acceptance standard rule by rule: what it asks, what the records of a run show was done, what is missing.

What was done is counted from records (`standard_tally`); what is asked is from `core.standard`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from aclnn_cts.core.standard import (
    GENERATED,
    LARGEST_SIZE,
    OF_MODELS,
    POWER_SIZES,
    SPECIAL_VALUES,
    STEPS,
    SizeChoice,
    SpecialCases,
)
from aclnn_cts.core.verdict import SkipReason, ToleranceVerdict, ToleranceWhy
from aclnn_cts.reports.model.standard_tally import StandardTally

Text: TypeAlias = "tuple[str, Mapping[str, Any]]"
"""The key of a phrase (the group `standard` of `words/`), and its values: numbers and words."""

_SAVED = frozenset({"softmax", "argmax", "mean", "rstd", "invstd", "softmax_max", "softmax_sum", "attention"})
"""Recipes that compute what a forward pass saves."""
_IN_PART = 0.5
"""The share of a rule that is kept in part, and of which no number says how much."""
_NAMED = 3
"""Options that are named where none of a factor has been had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOutcome:
    """One rule, for one operator."""

    rule: str
    asked: tuple[Text, ...]
    done: tuple[Text, ...]
    share: float
    """Of what is asked; 1: all of it."""
    cut: tuple[Text, ...] = ()
    """What is missing, and why."""
    applies: bool = True
    """Whether the operator and its cases have anything that the rule is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """One rule, for all operators of a run: how many meet it, and of the one that is furthest from it what was done."""

    rule: str
    asked: tuple[Text, ...]
    done: tuple[Text, ...]
    operator: str
    share: float
    """Of what is asked, that this operator has."""
    met: int
    of: int
    cut: tuple[Text, ...]
    applies: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardPart:
    """What a run by a standard shows."""

    run: str
    name: str
    rows: tuple[RuleRow, ...]


def rule_outcomes(tally: StandardTally) -> Iterator[RuleOutcome]:
    """Rule by rule, in the order of the standard."""
    yield _cases(tally)
    if tally.standard.cases_by_dtype:
        yield _by_dtype(tally)
    yield _combined(tally)
    yield _of_sizes(tally)
    yield _of_values(tally)
    if any(entry.recipe == "outliers" for entry in tally.standard.values):
        yield _outliers(tally)
    if tally.standard.generated_of_real is not None:
        yield _real(tally, tally.standard.generated_of_real)
    yield from _special_cases(tally)
    yield _longest(tally)
    if tally.standard.rejects:
        yield _rejected(tally)
    if tally.standard.is_cascade:
        yield _cascade(tally)
    if tally.standard.repeats > 1:
        yield _repeats(tally)
    if tally.standard.output_elements:
        done = tally.elements
        asked = tally.standard.output_elements
        yield RuleOutcome(
            rule="elements",
            asked=(("elements_asked", {"number": asked}),),
            done=(("elements_done", {"number": done}),),
            share=min(done / asked, 1.0),
            cut=_fewer(tally) if done < asked else (),
        )
    yield _tolerance(tally)
    if tally.standard.ratios is not None:
        yield _benchmark(tally)
    yield RuleOutcome(
        rule="memory",
        asked=(("memory_asked", {}),),
        done=(("memory_done", {}),),
        share=_IN_PART if tally.number else 0.0,
        cut=(("memory_cut", {}),),
    )
    if tally.standard.has_bootstrap:
        yield RuleOutcome(
            rule="bootstrap",
            asked=(("bootstrap_asked", {}),),
            done=(("bootstrap_done", {"number": tally.failed}),),
            share=0.0,
            cut=(("bootstrap_cut", {}),),
            applies=tally.failed > 0,
        )


def _fewer(tally: StandardTally, *kinds: str) -> tuple[Text, ...]:
    """Why there are fewer cases of these kinds (default: any) than are asked for."""
    counts: Counter[str] = Counter()
    for (what, reason), number in tally.unjudged.items():
        counts[reason] += number if not kinds or what in kinds else 0
    return (
        *_limited(tally, *kinds),
        *(_reason(tally, reason, number) for reason, number in counts.most_common() if number),
    )


def _reason(tally: StandardTally, reason: str, number: int) -> Text:
    if reason == SkipReason.TOO_LARGE:
        return "too_large", {"number": number, "limit": tally.manifest.settings.get("max_bytes", 0)}
    return "not_judged", {"number": number, "reason": reason}


def _cases(tally: StandardTally) -> RuleOutcome:
    standard, done = tally.standard, len(tally.distinct)
    asked: Text = ("cases_asked", {"number": standard.cases}) if standard.cases else ("cases_any", {})
    share = min(done / standard.cases, 1.0) if standard.cases else float(done > 0)
    return RuleOutcome(
        rule="cases",
        asked=(asked,),
        done=(("cases_done", {"number": done}),),
        share=share,
        cut=_fewer(tally) if share < 1.0 or tally.unjudged else (),
    )


def _by_dtype(tally: StandardTally) -> RuleOutcome:
    asked = tally.standard.cases_by_dtype
    counts = {name: tally.dtypes[name] for name in sorted(tally.listed | tally.dtypes.keys())}
    name, least = min(counts.items(), key=lambda item: item[1], default=("—", 0))
    return RuleOutcome(
        rule="by_dtype",
        asked=(("by_dtype_asked", {"number": asked}),),
        done=(("by_dtype_done", {"number": least, "dtype": name}),),
        share=min(least / asked, 1.0),
        cut=_fewer(tally) if least < asked else (),
    )


def _combined(tally: StandardTally) -> RuleOutcome:
    options = [(name, label, why) for name, labels in tally.options.items() for label, why in labels.items()]
    none = [(name, label) for name, label, why in options if why and (name, label) not in tally.reached]
    listed = {(name, label) for name, label, _ in options} - set(none)
    counts = Counter(name for name, _ in tally.reached)
    pairs = sum(one * other for one, other in itertools.combinations(counts.values(), 2))
    whole = math.prod(counts.values())
    missing = sorted(listed - tally.reached)
    cut: list[Text] = []
    if none:
        cut.append(("options_none", {"number": len(none), "named": _named(none)}))
    if missing:
        cut.extend((("options_cut", {"number": len(missing), "named": _named(missing)}), *_limited(tally, GENERATED)))
    share = len(tally.reached & listed) / len(listed) if listed else 1.0
    done: list[Text] = [
        ("options_done", {"number": len(tally.reached & listed), "all": len(listed)}),
        ("pairs_done", {"number": len(tally.pairs), "all": pairs}),
    ]
    if tally.standard.is_combined:
        done.append(("combinations_done", {"number": len(tally.combinations), "all": whole}))
        # All are tried where there are no more than cases: what is left is what no valid call has.
        tried = tally.number[GENERATED] >= math.prod(len(labels) for labels in tally.options.values())
        if len(tally.combinations) < whole:
            number = whole - len(tally.combinations)
            cut.append(("combinations_none" if tried else "combinations_cut", {"number": number}))
            share = share if tried else min(share, len(tally.combinations) / whole)
    return RuleOutcome(
        rule="combined",
        asked=(("combined_all" if tally.standard.is_combined else "combined_each", {}),),
        done=tuple(done),
        share=share,
        cut=tuple(cut),
    )


def _of_sizes(tally: StandardTally) -> RuleOutcome:
    rule = tally.standard.sizes
    sizes = {size for size in tally.sizes if size > 0}
    if rule is SizeChoice.POWERS:
        had = sizes & set(POWER_SIZES)
        return RuleOutcome(
            rule="sizes",
            asked=(("sizes_powers", {"number": len(POWER_SIZES), "largest": LARGEST_SIZE}),),
            done=(
                (
                    "sizes_powers_done",
                    {"number": len(had), "all": len(POWER_SIZES), "largest": max(had, default=0)},
                ),
                ("largest_done", {"number": tally.largest}),
            ),
            share=len(had) / len(POWER_SIZES),
            cut=(_without_data(tally), *_limited(tally, GENERATED)),
        )
    had = {size for size in sizes if rule is SizeChoice.RANDOM or any(size % step == 0 for step in STEPS)}
    words = {"number": len(had), "all": len(sizes), "least": min(sizes, default=0), "most": max(sizes, default=0)}
    return RuleOutcome(
        rule="sizes",
        asked=((f"sizes_{rule.value}", {}),),
        done=((f"sizes_{rule.value}_done", words),),
        share=len(had) / max(len(sizes), 1),
        cut=(("sizes_cut", {}),) if had < sizes else (),
    )


def _limited(tally: StandardTally, *kinds: str) -> tuple[Text, ...]:
    """That `--max-cases` left out cases of these kinds (default: any): as many as it allows were made."""
    most = tally.manifest.settings.get("max_cases")
    made: Counter[str] = Counter()
    for what, number in (*tally.number.items(), *((what, n) for (what, _), n in tally.unjudged.items())):
        made[_limit_of(what)] += number
    reached = any(made[name] >= most for name in ({_limit_of(what) for what in kinds} or made)) if most else False
    return (("max_cases", {"number": most}),) if reached else ()


def _limit_of(what: str) -> str:
    """The kind that `--max-cases` counts a case by: all special ones are one."""
    return what if what in (GENERATED, OF_MODELS) else ""


def _without_data(tally: StandardTally) -> Text:
    return "data_cut", {"limit": tally.manifest.settings.get("max_bytes", 0)}


def _of_values(tally: StandardTally) -> RuleOutcome:
    number = tally.number[GENERATED]
    asked: tuple[Text, ...] = tuple(
        (
            f"values_{entry.name}",
            {
                "percent": entry.percent,
                "bound": f"{entry.bound:g}",
                "mean": f"{entry.mean:g}",
                "low": f"{entry.deviation[0]:g}",
                "high": f"{entry.deviation[1]:g}",
            },
        )
        for entry in tally.standard.values
    )
    done: tuple[Text, ...] = tuple(
        (f"share_{entry.name}", {"percent": round(100 * tally.values[entry.name] / max(number, 1))})
        for entry in tally.standard.values
    )
    cut: list[Text] = []
    if tally.documented:
        cut.append(("documented_cut", {"names": ", ".join(sorted(tally.documented))}))
    # As many cases of each as its share of all: what one has more, another lacks.
    kept = sum(min(tally.values[entry.name], number * entry.percent / 100) for entry in tally.standard.values)
    if kept < number:
        cut.extend(_fewer(tally, GENERATED))
    return RuleOutcome(rule="values", asked=asked, done=done, share=kept / max(number, 1), cut=tuple(cut))


def _outliers(tally: StandardTally) -> RuleOutcome:
    number = tally.values["outliers"]
    return RuleOutcome(
        rule="outliers",
        asked=(("outliers_asked", {}),),
        done=(("outliers_done", {"number": number}),),
        share=float(number > 0),
        cut=() if number else _limited(tally, GENERATED),
    )


def _real(tally: StandardTally, ratio: tuple[int, int]) -> RuleOutcome:
    generated, real = tally.number[GENERATED], tally.number[OF_MODELS]
    asked = tally.standard.cases * ratio[1] / sum(ratio)
    share = min(real / asked, 1.0)
    return RuleOutcome(
        rule="real",
        asked=(("real_asked", {"generated": ratio[0], "real": ratio[1]}),),
        done=(("real_done", {"generated": generated, "real": real}),),
        share=share,
        cut=(("real_cut", {"number": real}), *_limited(tally, OF_MODELS)) if share < 1.0 else (),
    )


def _special_cases(tally: StandardTally) -> Iterator[RuleOutcome]:
    dtypes = tally.floats
    for special, rule in (
        (SpecialCases.EMPTY, "empty"),
        (SpecialCases.ONE_ELEMENT, "one_element"),
        (SpecialCases.ALL_ONES, "all_ones"),
    ):
        mine = {name.partition(" ")[0] for kind, name in tally.special if kind == special.value}
        number = sum(count for (kind, _), count in tally.special.items() if kind == special.value)
        yield RuleOutcome(
            rule=rule,
            asked=((f"{rule}_asked", {}),),
            done=(("special_done", {"number": number, "dtypes": len(mine & dtypes), "all": len(dtypes)}),),
            share=len(mine & dtypes) / len(dtypes),
            cut=() if mine >= dtypes else _fewer(tally, special.value) or (("special_cut", {}),),
        )
    wanted = [(dtype, value) for dtype in dtypes if dtype for value in SPECIAL_VALUES]
    counts = Counter(
        {
            tuple(name.split(" ", 1)): number
            for (kind, name), number in tally.special.items()
            if kind == SpecialCases.VALUES.value
        }
    )
    each = tally.standard.special_shapes
    had = sum(counts[pair] >= each for pair in wanted)
    yield RuleOutcome(
        rule="special_values",
        asked=(("special_values_asked", {"number": each}),),
        done=(("special_values_done", {"number": had, "all": len(wanted), "cases": sum(counts.values())}),),
        share=had / len(wanted) if wanted else 1.0,
        cut=() if had == len(wanted) else _fewer(tally, SpecialCases.VALUES.value) or (("special_cut", {}),),
    )


def _longest(tally: StandardTally) -> RuleOutcome:
    whole, judged = tally.longest.get(SpecialCases.LONGEST.value, 0), tally.longest.get(SpecialCases.LONG.value, 0)
    is_whole = whole > 0 and whole == judged
    return RuleOutcome(
        rule="longest",
        asked=(("longest_asked", {}),),
        done=(("longest_done", {"number": judged, "whole": whole}),),
        share=1.0 if is_whole else _IN_PART * (judged > 0),
        cut=()
        if is_whole
        else (_without_data(tally), *_fewer(tally, SpecialCases.LONGEST.value, SpecialCases.LONG.value)),
    )


def _rejected(tally: StandardTally) -> RuleOutcome:
    judged, failed = tally.broken["judged"], tally.broken["failed"]
    left = (("rejected_outside", tally.broken["outside"]), ("rejected_cut", tally.broken["open"]))
    return RuleOutcome(
        rule="rejected",
        asked=(("rejected_asked", {}),),
        done=(("rejected_done", {"number": judged, "failed": failed}),),
        share=judged / max(judged + tally.broken["outside"], 1),
        cut=tuple((key, {"number": number}) for key, number in left if number),
    )


def _cascade(tally: StandardTally) -> RuleOutcome:
    number, names = tally.number[GENERATED], list(tally.saved)
    by_recipe = sorted(name for name, used in tally.documented.items() if used in _SAVED and name not in names)
    others = sorted(set(tally.documented) - {*names, *by_recipe})
    done: list[Text] = []
    cut: list[Text] = []
    if names:
        words = {"number": tally.cascaded, "all": number, "names": ", ".join(names)}
        done.append(("cascade_formula", words))
        if tally.cascaded < number:
            cut.append(("cascade_large", {}))
    if by_recipe:
        done.append(("cascade_recipe", {"names": ", ".join(by_recipe)}))
    if others:
        cut.append(("cascade_documented", {"names": ", ".join(others)}))
    if done:
        cut.append(("cascade_cut", {}))
    share = tally.cascaded / number if names and number else float(number > 0 and not others)
    return RuleOutcome(
        rule="cascade",
        asked=(("cascade_asked", {}),),
        done=tuple(done) or (("cascade_none", {}),),
        share=min(share, _IN_PART if done else 1.0),
        cut=tuple(cut),
        applies=bool(done or others or not number),
    )


def _repeats(tally: StandardTally) -> RuleOutcome:
    asked = tally.standard.repeats
    judged = sum(tally.number.values())
    return RuleOutcome(
        rule="repeats",
        asked=(("repeats_asked", {"number": asked}),),
        done=(("repeats_done", {"number": asked, "cases": tally.repeated, "unequal": tally.unequal}),),
        share=tally.repeated / judged if judged else 0.0,
    )


def _tolerance(tally: StandardTally) -> RuleOutcome:
    none = tally.figures[ToleranceVerdict.NOT_APPLICABLE]
    passed, failed = tally.figures[ToleranceVerdict.PASS], tally.figures[ToleranceVerdict.FAIL]
    limits = tally.standard.ratios
    asked: Text = (
        ("mixed_asked", {})
        if limits is None
        else ("dual_asked", {"mare": f"{limits.mare:g}", "mere": f"{limits.mere:g}", "rmse": f"{limits.rmse:g}"})
    )
    cut: tuple[Text, ...] = ()
    if none:
        without = tally.without[ToleranceWhy.NO_BENCHMARK]
        found: Sequence[Text] = (("no_row", {"number": none - without}), ("no_benchmark", {"number": without}))
        cut = tuple((key, values) for key, values in found if values["number"])
    return RuleOutcome(
        rule="tolerance",
        asked=(asked,),
        done=(("tolerance_done", {"passed": passed, "failed": failed}),),
        share=(passed + failed) / max(passed + failed + none, 1),
        cut=cut,
    )


def _benchmark(tally: StandardTally) -> RuleOutcome:
    adapter = str(tally.manifest.settings.get("benchmark") or "")
    [(name, _)] = tally.benchmarks.most_common(1) or [("", 0)]
    words = {"name": adapter, "description": name}
    done: tuple[Text, ...] = (("benchmark_adapter", words),) if adapter else (("benchmark_done", {}),)
    return RuleOutcome(
        rule="benchmark",
        asked=(("benchmark_asked", {}),),
        done=done if tally.benchmarks else (("benchmark_none", {}),),
        share=float(bool(tally.benchmarks)),
        cut=() if adapter or not tally.benchmarks else (("benchmark_cut", {}),),
    )


def _named(options: Sequence[tuple[str, str]]) -> str:
    """Some options, as `dim: 1024 to 4095`."""
    return ", ".join(f"{name}: {label}" for name, label in options[:_NAMED])


def standard_part(run: str, tallies: Mapping[str, StandardTally]) -> StandardPart:
    """The table of a run, from the tally of each of its operators."""
    by_rule: dict[str, list[tuple[str, RuleOutcome]]] = {}
    for operator, tally in tallies.items():
        for outcome in rule_outcomes(tally):
            by_rule.setdefault(outcome.rule, []).append((operator, outcome))
    rows = []
    for rule, outcomes in by_rule.items():
        applying = [item for item in outcomes if item[1].applies]
        found = applying or outcomes
        operator, least = min(found, key=lambda item: item[1].share)
        rows.append(
            RuleRow(
                rule=rule,
                asked=least.asked,
                done=least.done,
                operator=operator if len(found) > 1 else "",
                share=least.share,
                met=sum(item.share >= 1.0 for _, item in found),
                of=len(found),
                cut=least.cut,
                applies=bool(applying),
            )
        )
    [name] = {tally.standard.name for tally in tallies.values()}
    return StandardPart(run=run, name=name, rows=tuple(rows))
