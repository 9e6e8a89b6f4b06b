"""What was measured of each operator, in a table with the geometric mean below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from aclnn_cts.cli.output import show_table, table, wrap
from benchmarks.measure import Figure, geometric_mean, ratio
from benchmarks.stored import Rounds, figures_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The figures of a name, or their ratio to those of another."""

    title: str
    name: str
    over: str = ""
    form: str = ",.0f"

    def figures(self, rounds: Rounds) -> Mapping[str, Figure]:
        """By operator; none where they were not measured."""
        return ratios(rounds, self.name, self.over) if self.over else figures_of(rounds, self.name)


def ratios(rounds: Rounds, name: str, over: str) -> dict[str, Figure]:
    """Of the figures of two names, for each operator that has both."""
    above, below = figures_of(rounds, name), figures_of(rounds, over)
    return {operator: ratio(figure, below[operator]) for operator, figure in above.items() if operator in below}


def mean(rounds: Rounds, name: str) -> Figure:
    """The geometric mean over the operators."""
    return geometric_mean(figures_of(rounds, name).values())


def mean_ratio(rounds: Rounds, name: str, over: str) -> Figure:
    """The geometric mean of the ratios."""
    return geometric_mean(ratios(rounds, name, over).values())


def short_name(operator: str) -> str:
    """An operator's name where room is short: `Softmax` for `aclnnSoftmaxBackward`."""
    return operator.removeprefix("aclnn").removesuffix("Backward")


def slowest_and_fastest(rounds: Rounds, name: str) -> str:
    """The operators with the least and the greatest figure, and these."""
    found = sorted((figure.median, operator) for operator, figure in figures_of(rounds, name).items())
    return " to ".join(f"{short_name(operator)} {value:,.0f}" for value, operator in (found[0], found[-1]))


def show_operators(out: Console, title: str, columns: Sequence[Column], rounds: Rounds) -> None:
    """Print the table; what was not measured is a dash."""
    found = [column.figures(rounds) for column in columns]
    wrap(out, title, style="bold")
    made = table("operator", *(column.title for column in columns))
    for column in made.columns[1:]:
        column.justify = "right"
    means = [geometric_mean(figures.values()) if figures else None for figures in found]
    operators = dict.fromkeys(operator for figures in found for operator in figures)
    lines = [(operator, [figures.get(operator) for figures in found]) for operator in operators]
    for name, figures in (*lines, ("geometric mean", means)):
        cells = zip(figures, columns, strict=True)
        texts = ("-" if figure is None else figure.text(column.form) for figure, column in cells)
        made.add_row(name.removeprefix("aclnn"), *texts)
    show_table(out, made)
    out.print()
