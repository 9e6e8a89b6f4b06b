"""`aclnn-cts repro`: a case as a program of its own."""

from __future__ import annotations

from pathlib import Path

import click

from aclnn_cts.cli.options import command, output_file, output_option, specs_option
from aclnn_cts.cli.output import note
from aclnn_cts.cli.run import read_trials
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import shown
from aclnn_cts.repro import SUFFIXES
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.output_file import STANDARD_OUTPUT


@command(example="aclnn-cts repro runs/night/failures/0a1b2c3d.json --language cpp,python -o programs")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--language",
    default="cpp",
    show_default=True,
    metavar="NAME,...",
    help="cpp or python for a library; numpy or torch for a function of yours; several with commas.",
)
@output_option(text="The program, or a folder for several.", required=True, metavar="OUT")
@click.option("--call", type=click.IntRange(min=1), metavar="N", help="Only this one of several calls.")
@specs_option
def repro(*, file: Path, language: str, out: Path, call: int | None, folders: tuple[Path, ...]) -> None:
    """Write a standalone program that reproduces the case of FILE: it exits with 0 if it conforms, 1 if not.

    A trial with several calls is made whole, in its call mode: two streams, a repeatable executor, many refused calls.
    The program judges each call, and a law over all of them.
    """
    from aclnn_cts.repro.write import WRITTEN_BY_US, Programs

    languages = tuple(dict.fromkeys(word.strip() for word in language.split(",")))
    for word in languages:
        if word not in SUFFIXES:
            raise UsageError(f"--language: {shown(word)}; expected any of {', '.join(SUFFIXES)}")
    if len(languages) > 1 and out == STANDARD_OUTPUT:
        raise UsageError(f"-o {out}: standard output takes one program, not {len(languages)}; name a folder")
    outputs = {
        word: output_file(
            out / f"repro{SUFFIXES[word]}" if len(languages) > 1 or out.is_dir() else out,
            written_by_us=WRITTEN_BY_US[word],
            make_folder=True,
        )
        for word in languages
    }
    specs = load_specs(folders)
    trials = read_trials((file,), specs)
    if len(trials) != 1:
        raise UsageError(f"{file}: {len(trials)} cases; a program shows one: give a file with one")
    programs = Programs(specs=specs, spec_folders=folders)
    for word, text in programs.texts(trials[0], languages, call=call).items():
        outputs[word].write(text.encode())
        note(f"{outputs[word]}: written; its first lines say how to build and run it")
    for line in programs.program(trials[0], call=call).about:
        note(line)
