"""`aclnn-cts repro`: a case as a program of its own."""

from __future__ import annotations

from pathlib import Path

import click

from aclnn_cts.cli.options import specs_option
from aclnn_cts.cli.output import note
from aclnn_cts.cli.run import read_trials
from aclnn_cts.core.errors import UsageError
from aclnn_cts.engine.repro import SUFFIXES
from aclnn_cts.spec.load import load_specs

__all__ = ["repro"]


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--language", default="cpp", show_default=True, metavar="NAME,...", help="cpp, python, or both.")
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    metavar="OUT",
    type=click.Path(path_type=Path),
    help="The program, or a folder for several.",
)
@click.option("--call", type=click.IntRange(min=1), metavar="N", help="Of several calls this one alone.")
@specs_option
def repro(*, file: Path, language: str, out: Path, call: int | None, folders: tuple[Path, ...]) -> None:
    """Write a stand-alone program that shows the case of FILE: exit code 0 where it conforms, 1 where it does not.

    Of a trial with several calls it makes all of them in the trial's manner (two streams, a repeatable executor, many
    refused calls), and judges each and what a law says of them together.
    """
    from aclnn_cts.engine.repro.write import Programs, write_programs

    languages = tuple(dict.fromkeys(word.strip() for word in language.split(",")))
    for word in languages:
        if word not in SUFFIXES:
            raise UsageError(f"--language: {word!r}; expected any of {', '.join(SUFFIXES)}")
    specs = load_specs(folders)
    trials = read_trials((file,), specs)
    if len(trials) != 1:
        raise UsageError(f"{file}: {len(trials)} cases; a program shows one: give a file with one")
    paths = {word: out / f"repro{SUFFIXES[word]}" if len(languages) > 1 or out.is_dir() else out for word in languages}
    for path in write_programs(trials[0], specs, paths, spec_folders=folders, call=call):
        note(f"{path}: written; its first lines say how to build and run it")
    about = Programs(specs=specs, spec_folders=folders).program(trials[0], call=call).about
    for line in about:
        note(line)
