"""The smallest failing call of a check, and one of its elements with the terms of the formula there."""

from __future__ import annotations

from dataclasses import dataclass, field

from aclnn_cts.core.case import argument_text
from aclnn_cts.core.expected import OracleInput
from aclnn_cts.formula.definition import Operator
from aclnn_cts.selftest.formula_terms import Given, formula_terms


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingElement:
    """One element that is wrong, and the call that it is wrong in."""

    question: OracleInput
    output: str
    index: tuple[int, ...]
    says: str
    """What is wrong, in words and figures."""
    given: Given = field(default_factory=dict)
    """Elements of inputs that were given in the place of the call's own."""

    @property
    def elements(self) -> int:
        """Those of all inputs: the size of the call."""
        return sum(array.size for array in self.question.tensors.values())

    def lines(self, operator: Operator) -> tuple[str, ...]:
        """The call, the element, and the terms of the formula."""
        arguments = ", ".join(f"{name}: {argument_text(value)}" for name, value in self.question.arguments.items())
        place = f"{self.output}{list(self.index)}"
        terms = formula_terms(operator, self.question, self.output, self.index, given=self.given)
        return (
            f"smallest failing call: {arguments}",
            f"{place}: {self.says}",
            *(f"  {line}" for line in terms),
        )


def with_fewer_elements(first: FailingElement | None, second: FailingElement) -> FailingElement:
    """The one whose call has fewer elements."""
    return second if first is None or second.elements < first.elements else first
