"""Editions: what another edition of a document changes in a spec, in a file that holds the difference alone.

`editions/NAME/STEM.yaml` beside `STEM.yaml` gives the spec of that edition: a whole file again, with lines of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    """Read a spec file and its difference at `path`; the file that both make, whose text is a whole spec."""
    merge = _Merge(unrolled(read_yaml(base, name=base_name)), read_yaml(path, name=name))
    merge.run()
    made = replace(merge.change, content=merge.content, lines=merge.lines, names=merge.names)
    return replace(made, text=_text(made))


def _text(file: YamlFile) -> str:
    dumped: str = yaml.dump(file.content, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=_WIDTH)
    return f"# {file.name}: the file that it changes, with the changes.\n{dumped}"


class _Dumper(yaml.SafeDumper):
    """Quotes every string that our reader would not read as one."""

    def ignore_aliases(self, data: object) -> bool:
        """Write the same value out again."""
        del data
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain(text) else '"')


_Dumper.add_representer(str, _string)


@dataclass(slots=True)
class _Merge:
    """A spec file with the changes of another one, and where each value comes from."""

    base: YamlFile
    change: YamlFile
    content: dict[str, Any] = field(default_factory=dict)
    lines: dict[YamlPath, int] = field(default_factory=dict)
    names: dict[YamlPath, str] = field(default_factory=dict)

    def run(self) -> None:
        """Merge the files. Raises UsageError where a change names nothing."""
        old, new = self.base.content, self.change.content
        if not isinstance(old, dict) or isinstance(old.get("clauses"), list):
            raise UsageError(f"{self.base.at(())}: is in the full form; an edition changes a spec in the short form")
        if not isinstance(new, dict) or not isinstance(new.get("document"), dict):
            raise UsageError(f"{self.change.at(())}: expected changes by key, with `document` of the edition")
        for key in {**old, **new}:
            if key not in new:
                self.content[key] = self._copied(self.base, (key,), (key,))
            elif new[key] is not None:
                self.content[key] = self._changed(key)

    def _changed(self, key: str) -> object:
        old, new = self.base.content.get(key), self.change.content[key]
        if key in _BY and isinstance(old or [], list) and isinstance(new, dict):
            return list(self._entries(key, old or [], new))
        if key == "document" or not isinstance(old, dict) or not isinstance(new, dict):
            return self._copied(self.change, (key,), (key,))
        made: dict[str, Any] = {}
        for name in {**old, **new}:
            place = (key, name)
            if name not in new:
                made[name] = self._copied(self.base, place, place)
            elif key == "clauses" and isinstance(new[name], list):
                made[name] = self._section(name, old.get(name), new[name])
            elif new[name] is not None:
                made[name] = self._copied(self.change, place, place)
        return made

    def _entries(self, key: str, old: Sequence[Mapping[str, Any]], new: Mapping[str, Any]) -> Iterator[object]:
        """The entries of a list by name: those of the base, changed or left out, then new ones."""
        names = [next((str(entry[word]) for word in _BY[key] if word in entry), "") for entry in old]
        left = [place for place, name in enumerate(names) if new.get(name, ()) is not None]
        for number, place in enumerate(left):
            yield self._entry(key, number, place, names[place], new.get(names[place], {}))
        for number, name in enumerate((name for name in new if name not in names), start=len(left)):
            if not isinstance(new[name], dict) or key == "parameters":
                raise UsageError(
                    f"{self.change.at((key, name))}: {shown(name)} is not among {key}; expected any of "
                    f"{', '.join(names)}{nearest(name, names)}"
                )
            word = _BY[key][0]
            given = {word: name} if not set(_BY[key]) & new[name].keys() else {}
            self.lines[(key, number)] = self.change.line((key, name))
            yield {**given, **self._copied(self.change, (key, name), (key, number))}

    def _entry(self, key: str, number: int, place: int, name: str, new: object) -> object:
        if not isinstance(new, dict):
            raise UsageError(f"{self.change.at((key, name))}: {shown(new)}; expected keys of {name}, or null")
        kept = self._copied(self.base, (key, place), (key, number))
        for word, value in new.items():
            kept.pop(word, None)
            if value is not None:
                kept[word] = self._copied(self.change, (key, name, word), (key, number, word))
        return kept

    def _section(self, section: str, old: object, new: Sequence[object]) -> list[object]:
        """The clauses of a section, where a number stands for that entry of the base, as does `base` beside changes."""
        made: list[object] = []
        entries = old if isinstance(old, list) else []
        for place, entry in enumerate(new):
            source: YamlPath = ("clauses", section, place)
            target: YamlPath = ("clauses", section, len(made))
            number = entry.get("base") if isinstance(entry, dict) else entry
            if not isinstance(number, int) or isinstance(number, bool):
                made.append(self._copied(self.change, source, target))
                continue
            if not 0 < number <= len(entries):
                raise UsageError(
                    f"{self.change.at(source)}: {number}: the section has {len(entries)} written entries in "
                    f"{self.base.name}; expected the number of one, or a clause"
                )
            kept = self._copied(self.base, ("clauses", section, number - 1), target)
            if isinstance(entry, dict):
                kept = dict(kept) if isinstance(kept, dict) else {"say": kept}
                for key in entry.keys() - {"base"}:
                    kept[key] = self._copied(self.change, (*source, key), (*target, key))
            made.append(kept)
        return made

    def _copied(self, file: YamlFile, source: YamlPath, target: YamlPath) -> Any:  # noqa: ANN401 - any value
        """A value of a file, and the lines of it and of what is in it."""
        value: Any = file.content
        for step in source:
            value = value[step]
        return self._noted(file, value, source, target)

    def _noted(self, file: YamlFile, value: object, source: YamlPath, target: YamlPath) -> object:
        self.lines[target] = file.line(source)
        if file is self.base:
            self.names[target] = file.name
        else:
            self.names.pop(target, None)
        if isinstance(value, dict):
            return {key: self._noted(file, item, (*source, key), (*target, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._noted(file, item, (*source, at), (*target, at)) for at, item in enumerate(value)]
        return value
