"""The `claims` of a spec: what a person says of the statements of the document that are not plain."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from aclnn_cts.core.errors import did_you_mean
from aclnn_cts.core.printable import quote
from aclnn_cts.speclang.build_clauses import clauses_by_constraint
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import ClauseModel
from aclnn_cts.speclang.spec_claims import NotTestable, SpecClaim

SECTIONS = ("products", "function", "prototype", "params", "errors", "returns", "phase2", "limits", "example")
"""The first words of addresses."""
PLAIN = "plain"
"""In a claim: what the document's facts propose, with what else the claim names."""

_MOST = 4096
"""Statements that one entry may name."""
_RANGE = re.compile(r"([rc]?)(\d{1,4})-(\d{1,4})\Z")
_PART = re.compile(r"(?:\d{1,4}|[A-Za-z_][A-Za-z0-9_.\-]*)\Z")
"""A name or a number; `1-` and `2..4` are neither."""
_CLAUSES = re.compile(r"(?:(.+)\.)?(\d{1,4})(?:-(\d{1,4}))?\Z")


def build_claims(
    entries: Mapping[str, object], clauses: Sequence[ClauseModel], problems: Problems
) -> Mapping[str, SpecClaim]:
    """The claims of a spec by address; every mistake is reported."""
    known = _Clauses(clauses)
    found: dict[str, SpecClaim] = {}
    for key, value in entries.items():
        given = value if isinstance(value, list) else [value]
        if not given or not all(isinstance(word, (str, int)) and not isinstance(word, bool) for word in given):
            problems.add(
                ("claims", key),
                f"{quote(value)}; expected numbers or addresses of clauses, constraints or a reason; quote null, true",
            )
            continue
        words = [str(word) for word in given]
        for address in _addresses(key, problems):
            if address in found:
                problems.add(("claims", key), f"{address} is claimed twice; keep one")
            found[address] = _claim(key, address, words, known, problems)
    return found


def _addresses(key: str, problems: Problems) -> Iterator[str]:
    """Every address that a key names: `limits/table1/r1-2/c1,c3` names four."""
    parts = [list(_alternatives(part)) for part in key.split("/")]
    if (
        key.partition("/")[0] not in SECTIONS
        or len(parts) < 2
        # A range from high to low names nothing.
        or not all(part and all(map(_PART.match, part)) for part in parts)
    ):
        problems.add(
            ("claims", key),
            f"{quote(key)} is no address of a statement; expected one such as function/2-4 or params/self,out/usage, "
            f"which opens with any of {', '.join(SECTIONS)}",
        )
    elif math.prod(map(len, parts)) > _MOST:
        problems.add(("claims", key), f"{quote(key)} names more than {_MOST} statements; name fewer")
    else:
        for words in itertools.product(*parts):
            # The first line of a cell has no number.
            is_first = words[0] == "params" and words[1] != "note" and len(words) == 4 and words[3] == "1"
            yield "/".join(words[:3] if is_first else words)


def _alternatives(part: str) -> Iterator[str]:
    for word in part.split(","):
        found = _RANGE.match(word.strip())
        if found is None:
            yield word.strip()
        else:
            yield from (f"{found[1]}{number}" for number in range(int(found[2]), int(found[3]) + 1))


def _claim(key: str, address: str, words: Sequence[str], known: _Clauses, problems: Problems) -> SpecClaim:
    path = ("claims", key)
    reasons = [word for word in words if word in {reason.value for reason in NotTestable}]
    if reasons and len(words) > 1:
        problems.add(path, f"{address}: {quote(reasons[0])} is a reason why nothing is tested; give it alone")
        return SpecClaim(key)
    if reasons:
        return SpecClaim(key, reason=NotTestable(reasons[0]))
    claimed: set[str] = set()
    for word in words:
        clauses = known.named(word, address) if word != PLAIN else ()
        if not clauses and address.startswith("errors/") and known.named(word, "limits/1"):
            problems.add(
                path,
                f"{address}: {quote(word)} has no sentence in `returns`, which a claim on a code asks for; write one: "
                f'{{say: {word}, en: "...", zh: "..."}}',
            )
        elif not clauses and word != PLAIN:
            options = (*known.order, *known.by_constraint, *(reason.value for reason in NotTestable))
            problems.add(
                path,
                f"{address}: {quote(word)} is no clause, constraint with a clause or reason why nothing is tested"
                f"{did_you_mean(word, options)}",
            )
        claimed.update(clauses)
    return SpecClaim(key, tuple(sorted(claimed, key=known.order.index)), is_plain=PLAIN in words)


class _Clauses:
    """The clauses of a spec, by address and by what a claim may call them."""

    def __init__(self, models: Sequence[ClauseModel]) -> None:
        self.order = tuple(entry.at for entry in models)
        self.by_constraint = clauses_by_constraint(models)

    def named(self, word: str, address: str) -> Sequence[str]:
        """The clauses that a word stands for in the claim on a statement.

        - `2` or `2-4`: clauses of the section that goes with the address; `function.2-4`: those of another.
        - a constraint: in the claim on an error row its clauses on codes, elsewhere its others, and with `returns.`
          before it those on codes too. `rank` is the constraint of the parameter that the statement is about; where it
          is about none, those of all parameters.
        """
        section, name, *_ = address.split("/")
        own = {"params": f"params.{name}", "phase2": f"phase2.{name}", "errors": "returns"}.get(section, section)
        found = _CLAUSES.match(word)
        if found is not None and (found[1] is None or f"{found[1]}.{found[2]}" in self.order):
            last = int(found[3] or found[2])
            clauses = [f"{found[1] or own}.{number}" for number in range(int(found[2]), last + 1)]
            return clauses if set(clauses) <= set(self.order) else ()
        of_code = own == "returns" or word.startswith("returns.")
        called = word.removeprefix("returns.")
        is_of_one = section == "params" and name != "note"
        ids = [identifier for identifier in (f"{name}.{called}", called) if identifier in self.by_constraint][:1]
        if not ids and not is_of_one and "." not in called:
            ids = [identifier for identifier in self.by_constraint if identifier.endswith(f".{called}")]
        clauses_on = [clause for identifier in ids for clause in self.by_constraint[identifier]]
        return [clause for clause in clauses_on if clause.startswith("returns.") is of_code]
