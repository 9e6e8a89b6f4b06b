"""Editions: what another edition of a document changes in a spec, in a file that holds the difference alone.

`editions/NAME/STEM.yaml` beside `STEM.yaml` gives the spec of that edition: a whole file again, with lines of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from aclnn_cts.core.errors import UsageError, nearest
from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.placeholders import unrolled
from aclnn_cts.speclang.yaml_file import YamlFile, YamlPath, is_plain, read_yaml

_FOLDER = "editions"
_BY = {"parameters": ("name",), "constraints": ("id",), "draws": ("name", "run")}
"""Lists whose entries an edition names: the keys that hold the names."""
_WIDTH = 120


def edition_file(base: Path, edition: str) -> Path:
    """Where the difference of an edition to a spec file lies."""
    return base.parent / _FOLDER / edition / base.name


def edition_files(folder: Path, edition: str = "") -> list[Path]:
    """The differences in a folder of specs: of one edition, else of all."""
    return sorted((folder / _FOLDER).glob(f"{edition or '*'}/*.yaml"))


def is_edition_file(path: Path) -> bool:
    """Whether a file lies where differences lie."""
    return path.absolute().parents[1].name == _FOLDER


def edition_names(folders: Sequence[Path]) -> list[str]:
    """The editions that folders of specs have a difference for."""
    return sorted({path.parent.name for folder in folders for path in edition_files(folder)})


def check_edition(edition: str, folders: Sequence[Path]) -> None:
    """UsageError for an edition that no folder has."""
    known = edition_names(folders)
    if edition and edition not in known:
        raise UsageError(
            f"--edition: {shown(edition)} is not known; expected one of {', '.join(known) or 'none'}, or leave it out"
            f"{nearest(edition, known)}"
        )


def read_edition(path: Path, *, base: Path, name: str, base_name: str) -> YamlFile:
    """Read a spec file and its difference at `path`; the file that both make, whose text is a whole spec.

    Raises UsageError where a change names nothing.
    """
    old, new = unrolled(read_yaml(base, name=base_name)), read_yaml(path, name=name)
    lines: dict[YamlPath, int] = {}
    names: dict[YamlPath, str] = {}
    content = _laid_out(_merged(old, new), (), lines, names, old)
    return replace(new, text=_text(new.name, content), content=content, lines=lines, names=names)


def _text(name: str, content: object) -> str:
    dumped: str = yaml.dump(content, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=_WIDTH)
    return f"# {name}: the file that it changes, with the changes.\n{dumped}"


class _Dumper(yaml.SafeDumper):
    """Quotes every string that our reader would not read as one."""

    def ignore_aliases(self, data: object) -> bool:
        """Write the same value out again."""
        del data
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain(text) else '"')


_Dumper.add_representer(str, _string)


@dataclass(frozen=True, slots=True)
class _Node:
    """A value, of which what is within it is nodes too, and where it is written."""

    file: YamlFile
    line: int | None
    """None: of what neither file has as a whole."""
    value: Any

    @property
    def where(self) -> str:
        return f"{self.file.name}:{self.line}"


def _located(file: YamlFile, value: object, path: YamlPath = ()) -> _Node:
    """The values of a file with their lines."""
    if isinstance(value, dict):
        value = {key: _located(file, item, (*path, key)) for key, item in value.items()}
    elif isinstance(value, list):
        value = [_located(file, item, (*path, place)) for place, item in enumerate(value)]
    return _Node(file, file.line(path), value)


def _laid_out(
    node: _Node, path: YamlPath, lines: dict[YamlPath, int], names: dict[YamlPath, str], base: YamlFile
) -> object:
    """The values themselves; the line of each, and the name of its file where that is the base, go by its path."""
    if node.line is not None:
        lines[path] = node.line
        if node.file is base:
            names[path] = base.name
    if isinstance(node.value, dict):
        return {key: _laid_out(item, (*path, key), lines, names, base) for key, item in node.value.items()}
    if isinstance(node.value, list):
        return [_laid_out(item, (*path, place), lines, names, base) for place, item in enumerate(node.value)]
    return node.value


def _merged(base: YamlFile, change: YamlFile) -> _Node:
    if not isinstance(base.content, dict) or isinstance(base.content.get("clauses"), list):
        raise UsageError(f"{base.at(())}: is in the full form; an edition changes a spec in the short form")
    if not isinstance(change.content, dict) or not isinstance(change.content.get("document"), dict):
        raise UsageError(f"{change.at(())}: expected changes by key, with `document` of the edition")
    old, new = _located(base, base.content).value, _located(change, change.content).value
    made = {key: _changed(key, old.get(key), new[key]) if key in new else old[key] for key in {**old, **new}}
    return _Node(change, None, _without_nulls(made, new))


def _without_nulls(made: Mapping[str, _Node], new: Mapping[str, _Node]) -> dict[str, _Node]:
    """What an edition does not take away by a null."""
    return {key: node for key, node in made.items() if key not in new or new[key].value is not None}


def _changed(key: str, old: _Node | None, new: _Node) -> _Node:
    """A section of the base, if it has it, with the changes."""
    before = old.value if old is not None else None
    if key in _BY and isinstance(before or [], list) and isinstance(new.value, dict):
        return replace(new, line=None, value=list(_entries(key, before or [], new.value)))
    if key == "document" or old is None or not isinstance(before, dict) or not isinstance(new.value, dict):
        return new
    made = {**before, **new.value}
    if key == "clauses":
        made |= {
            name: replace(node, line=None, value=list(_section(before.get(name), node, old.file.name)))
            for name, node in new.value.items()
            if isinstance(node.value, list)
        }
    return replace(new, line=None, value=_without_nulls(made, new.value))


def _entries(key: str, old: Sequence[_Node], new: Mapping[str, _Node]) -> Iterator[_Node]:
    """The entries of a list by name: those of the base, changed or left out, then new ones."""
    names = [next((str(entry.value[word].value) for word in _BY[key] if word in entry.value), "") for entry in old]
    for name, entry in zip(names, old, strict=True):
        change = new.get(name)
        if change is None:
            yield entry
        elif change.value is not None:
            yield _entry(name, entry, change)
    for name, entry in new.items():
        if name in names:
            continue
        if not isinstance(entry.value, dict) or key == "parameters":
            raise UsageError(
                f"{entry.where}: {shown(name)} is not among {key}; expected any of {', '.join(names)}"
                f"{nearest(name, names)}"
            )
        given = {} if set(_BY[key]) & entry.value.keys() else {_BY[key][0]: replace(entry, line=None, value=name)}
        yield replace(entry, value={**given, **entry.value})


def _entry(name: str, old: _Node, new: _Node) -> _Node:
    if not isinstance(new.value, dict):
        raise UsageError(f"{new.where}: {shown(new.value)}; expected keys of {name}, or null")
    kept = {key: node for key, node in old.value.items() if key not in new.value}
    return replace(old, value={**kept, **_without_nulls(new.value, new.value)})


def _section(old: _Node | None, new: _Node, base: str) -> Iterator[_Node]:
    """The clauses of a section, where a number stands for that entry of the base, as does `base` beside changes."""
    entries = old.value if old is not None and isinstance(old.value, list) else []
    for entry in new.value:
        changes = (
            {key: node for key, node in entry.value.items() if key != "base"} if isinstance(entry.value, dict) else {}
        )
        pointer = entry.value.get("base") if isinstance(entry.value, dict) else entry
        number = pointer.value if pointer is not None else None
        if not isinstance(number, int) or isinstance(number, bool):
            yield entry
            continue
        if not 0 < number <= len(entries):
            raise UsageError(
                f"{entry.where}: {number}: the section has {len(entries)} written entries in {base}; expected the "
                "number of one, or a clause"
            )
        kept = entries[number - 1]
        if isinstance(entry.value, dict):
            values = kept.value if isinstance(kept.value, dict) else {"say": replace(kept, line=None)}
            kept = replace(kept, value={**values, **changes})
        yield kept
