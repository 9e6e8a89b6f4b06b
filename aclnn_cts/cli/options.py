"""The class of our commands, options that several share, and what their values are checked against.

A command's help ends with an example.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import quote
from aclnn_cts.core.target import OWN_PRODUCT, Target

if TYPE_CHECKING:
    from aclnn_cts.core.case import Case
    from aclnn_cts.speclang.model import Spec
    from aclnn_cts.store.output_file import OutputFile, Recognizer


class Command(click.Command):
    """A command with an example at the end of its help page."""

    def __init__(self, *args: Any, example: str, **kwargs: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*args, **kwargs)
        self.example = example

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The example, as it is typed."""
        formatter.write_paragraph()
        formatter.write_text("Example:")
        formatter.write(f"  {self.example}\n")


def command(name: str | None = None, *, example: str) -> Callable[[Callable[..., Any]], Command]:
    """Declare a function as a command whose help page ends with `example`, a command line."""
    return click.command(name, cls=Command, example=example)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON only, one object per line; everything else goes to stderr."
)
specs_option = click.option(
    "--specs",
    "folders",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A folder with your spec files; may be given several times.",
)
edition_option = click.option(
    "--edition",
    default="",
    metavar="NAME",
    help="The edition of the documents, such as public; an operator without it keeps its own.",
)
oracles_option = click.option(
    "--specs",
    "folders",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A folder with oracles of your operators (Python, which is run); may be given several times.",
)


class _ProductOption(click.Option):
    """`--product`, whose help names the products when somebody asks for it: they are read from a file."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from aclnn_cts.speclang.package import product_names

        default = "the product of the device, or atlas-a2, or one that the first operator supports"
        self.help = f"{', '.join(product_names())}; default: {default}."
        return super().get_help_record(ctx)


product_option = click.option("--product", cls=_ProductOption, metavar="P")


def phases_option(*, default: str | None, text: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """`--phases`, which a command hands to `number_of_phases`."""
    return click.option(
        "--phases", type=click.Choice(["one", "both"]), default=default, show_default=default is not None, help=text
    )


def number_of_phases(word: str | None, cases: Iterable[Case] = ()) -> int:
    """How many phases a command calls: as asked for, else one where all of its cases say so."""
    if word is not None:
        return 1 if word == "one" else 2
    phases = {case.call.phases for case in cases}
    return 1 if phases == {1} else 2


_FORCE = "aclnn_cts.force"


class OutputPath(click.Path):
    """The path of an output; every other path of a command is an input."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ANN401 - click's signature
        """A path that a file or folder can have; any other is a UsageError."""
        from aclnn_cts.store.output_file import unusable_name

        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if reason := unusable_name(path):
            option = param.opts[0] if param is not None else ""
            raise UsageError(f"{option} {quote(str(path))}: {reason}; choose another name")
        return path


def _keep_force(context: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    context.meta[_FORCE] = value


force_option = click.option(
    "--force",
    is_flag=True,
    expose_value=False,
    callback=_keep_force,
    help="Replace an existing file that this command did not write.",
)


def output_option(
    *, text: str, required: bool = False, metavar: str = "FILE"
) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """`-o` and `--force`, for a command that writes what `output_file` makes of them."""

    def decorate(command: click.decorators.FC) -> click.decorators.FC:
        option = click.option("-o", "--output", "out", required=required, metavar=metavar, type=OutputPath(), help=text)
        return option(force_option(command))

    return decorate


def output_file(path: Path, *, written_by_us: Recognizer, option: str = "-o", make_folder: bool = False) -> OutputFile:
    """The output at `path` of the command that is being called, with the rules of `OutputFile`.

    Its inputs are all other paths of the command line.
    """
    from aclnn_cts.store.output_file import OutputFile

    context = click.get_current_context()
    made = OutputFile(
        path,
        written_by_us=written_by_us,
        command=context.command_path,
        inputs=tuple(_inputs(context)),
        force=context.meta[_FORCE],
        option=option,
        make_folder=make_folder,
    )
    context.call_on_close(made.close)
    return made


def _inputs(context: click.Context) -> Iterator[Path]:
    for parameter in context.command.params:
        if not isinstance(parameter.type, click.Path) or isinstance(parameter.type, OutputPath):
            continue
        value = context.params.get(parameter.name or "")
        paths = value if isinstance(value, tuple) else (value,) if value is not None else ()
        yield from paths
        if parameter.name == "waivers":
            from aclnn_cts.findings.waivers.file import pinned_files

            for path in paths:
                yield from pinned_files(path)


class IntegerWithin(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """An integer between two bounds, either of which may be absent; a mistake says which were expected."""

    name = "integer"

    def __init__(self, low: int | None = None, high: int | None = None) -> None:
        self._low, self._high = low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 - click's signature
        """Read a word of the command line; a default comes as an integer already."""
        try:
            number = int(value)
        except ValueError:
            number = None
        if number is None or not self._holds(number):
            low = "" if self._low is None else f" from {self._low}" if self._high is not None else f" >= {self._low}"
            high = "" if self._high is None else f" to {self._high}" if self._low is not None else f" <= {self._high}"
            self.fail(f"{quote(value)}; expected an integer{low}{high}", param, ctx)
        return number

    def _holds(self, number: int) -> bool:
        return (self._low is None or self._low <= number) and (self._high is None or number <= self._high)


def byte_size(alone: str = "B") -> Callable[[click.Context, click.Parameter, str | None], int | None]:
    """The callback of an option that is a size: its bytes. A number without a unit is in `alone`."""

    def bytes_given(context: click.Context, option: click.Parameter, word: str | None) -> int | None:
        from aclnn_cts.core.byte_size import bytes_of

        try:
            return None if word is None else bytes_of(word, alone=alone)
        except ValueError as error:
            raise click.BadParameter(str(error), context, option) from None

    return bytes_given


def checked_product(product: str | None, spec: Spec) -> str:
    """The product asked for, else the operator's usual one.

    UsageError for an unknown product and for one that the operator's document does not name.
    """
    if product is None:
        return spec.usual_product
    checked_target(product)
    if product not in spec.products:
        raise UsageError(
            f"--product: {quote(product)} is not supported by {spec.operator}; its document names "
            f"{', '.join(spec.products)}"
        )
    return product


def checked_target(product: str | None) -> Target:
    """The target of a run: the product asked for, else the implementation's own, which is not known yet.

    An operator may lack it; that one is skipped.
    """
    if product is not None:
        from aclnn_cts.speclang.package import check_product

        check_product(product, where="--product")
    return Target(product=product or OWN_PRODUCT)
