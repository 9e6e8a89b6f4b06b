"""Adapters by name: what `--adapter` takes, the options behind the name, and how it becomes an `Adapter`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from aclnn_cts.adapters.protocol import Adapter
from aclnn_cts.core.errors import HarnessError, UsageError, did_you_mean
from aclnn_cts.core.printable import quote
from aclnn_cts.core.registry import items_by_name


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterEntry:
    """One adapter that has a name of its own."""

    name: str
    factory: str
    """`module:factory`, imported when the adapter is opened and not before."""
    isolate: bool
    """Whether it must run in a process of its own, known before anything is imported."""
    description: str
    own_product: bool = False
    """It is one device, whose product holds where none is asked for; it is opened with an empty one then."""
    lists: frozenset[str] = frozenset()
    """Options that take several values, with commas between them."""
    is_python: bool = True
    """Whether it is a Python package, and no library of a device: the memory that it needs follows from its calls."""


_OTHER_SEPARATOR = re.compile(r"(?:^|,)\w+=[^,:;= ]*([:; ])(\w+=)")
"""Between two options, where a comma must stand."""


ADAPTERS = items_by_name(
    "adapter",
    (
        AdapterEntry(
            name="reference",
            factory="aclnn_cts.adapters.reference:ReferenceAdapter",
            isolate=False,
            description="documented statuses and the NumPy float64 oracle, rounded to the output dtype",
        ),
        AdapterEntry(
            name="torch",
            factory="aclnn_cts.adapters.torch_adapter:TorchAdapter",
            isolate=True,
            description="torch's own backward kernels on any of its devices (torch:device=cpu)",
            lists=frozenset({"bindings"}),
        ),
        AdapterEntry(
            name="jax",
            factory="aclnn_cts.adapters.jax_adapter:JaxAdapter",
            isolate=True,
            description="jax.vjp of forward passes in JAX, on the CPU",
            lists=frozenset({"bindings"}),
        ),
        AdapterEntry(
            name="cann",
            factory="aclnn_cts.adapters.cann.adapter:CannAdapter",
            isolate=True,
            description="the aclnn C interface of a CANN installation (cann:library=FILE,...; cann:device=0)",
            own_product=True,
            is_python=False,
            lists=frozenset({"library"}),
        ),
        AdapterEntry(
            name="loopback",
            factory="aclnn_cts.adapters.cann.adapter:LoopbackAdapter",
            isolate=True,
            description="the same on a software device of our own, which g++ builds (loopback:soc=Ascend910B3)",
            own_product=True,
            is_python=False,
            lists=frozenset({"library"}),
        ),
    ),
    lambda entry: entry.name,
)


@dataclass(frozen=True, slots=True)
class AdapterChoice:
    """An `--adapter` word, taken apart; nothing is imported yet."""

    word: str
    factory: str
    isolate: bool
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    own_product: bool = False
    is_python: bool = True


def parse_adapter_word(word: str) -> AdapterChoice:
    """Read `name`, `name:key=value,...`, `package.module:factory` or `package.module:factory,key=value,...`.

    An adapter without a registered name is presumed to run native code and to need a process of its own.
    Raises UsageError.
    """
    head, _, rest = word.partition(":")
    if (name := head.partition(",")[0]) != head and name in ADAPTERS:
        options_text = word.removeprefix(f"{name},")
        raise UsageError(
            f"--adapter {word}: options follow a colon; write {name}:{options_text} instead of {name},{options_text}"
        )
    if entry := ADAPTERS.get(head):
        options = _options(word, rest.split(",") if rest else [], lists=entry.lists)
        return AdapterChoice(
            word, entry.factory, entry.isolate, options, own_product=entry.own_product, is_python=entry.is_python
        )
    factory, *texts = rest.split(",")
    own, colon, options_text = factory.partition(":")
    if colon and own.isidentifier():
        raise UsageError(
            f"--adapter {word}: options of an adapter of your own follow a comma; write {head}:{own},{options_text} "
            f"instead of {head}:{own}:{options_text}"
        )
    if not factory.isidentifier() or not all(part.isidentifier() for part in head.split(".")):
        raise UsageError(
            f"--adapter {word}: no adapter is called {quote(head)}; expected one of {', '.join(ADAPTERS)}, or "
            f"package.module:factory for one of your own{did_you_mean(head, ADAPTERS)}"
        )
    return AdapterChoice(word, f"{head}:{factory}", isolate=True, options=_options(word, texts))


def with_bindings(word: str | None, files: Sequence[Path]) -> str:
    """The `--adapter` word that names these files of bindings too. Raises UsageError."""
    if word is None:
        raise UsageError(f"--bindings {files[0]}: expected --adapter too, of which it is an option")
    head, colon, _ = word.partition(":")
    takes = [name for name, entry in ADAPTERS.items() if "bindings" in entry.lists]
    if head in ADAPTERS and head not in takes:
        raise UsageError(f"--bindings {files[0]}: --adapter {head} takes no bindings; expected {' or '.join(takes)}")
    for path in files:
        if set(",=") & set(str(path)):
            raise UsageError(f"--bindings {path}: a comma or an equals sign ends the name; rename the file")
    return f"{word}{',' if colon else ':'}bindings={','.join(map(str, files))}"


def own_file(word: str) -> Path | None:
    """The file of an adapter of the user's own, which is not imported; None for those that ship, or where none is."""
    module = word.partition(":")[0]
    if module in ADAPTERS:
        return None
    _look_here()
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(found.origin) if found is not None and found.has_location and found.origin else None


def load(choice: AdapterChoice) -> Adapter:
    """Import the factory and call it with the options.

    Raises UsageError where the word names nothing, the module is wrong or an option is unknown, HarnessError where a
    library that the module needs does not load.
    """
    module_name, _, name = choice.factory.partition(":")
    module = _import(module_name, choice.word)
    factory = getattr(module, name, None)
    if not callable(factory):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise UsageError(
            f"--adapter {choice.word}: {module_name} has no callable {quote(name)}; expected the class or "
            f"function that "
            f"makes the adapter{did_you_mean(name, known)}"
        )
    _check_options(factory, choice)
    return cast("Adapter", factory(**choice.options))


def _options(word: str, texts: list[str], *, lists: frozenset[str] = frozenset()) -> Mapping[str, str]:
    options: dict[str, str] = {}
    key = ""
    if found := _OTHER_SEPARATOR.search(",".join(texts)):
        raise UsageError(
            f"--adapter {word}: {found[1]!r} stands between two options; expected a comma: write ...,{found[2]}..."
        )
    for text in texts:
        if key in lists and "=" not in text:
            options[key] += f",{text}"
            continue
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier():
            raise UsageError(
                f"--adapter {word}: {quote(text)}; expected options as key=value, with commas between them"
            )
        if key in options:
            raise UsageError(f"--adapter {word}: {quote(key)} is given twice; expected it once")
        options[key] = value
    return MappingProxyType(options)


def find_module(name: str) -> ModuleSpec | None:
    """Where a module without dots lies that an adapter's word names; None where there is none."""
    _look_here()
    return importlib.util.find_spec(name)


def _look_here() -> None:
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        # The command installed by pip does not look in the current directory, where a user's own adapter lies.
        sys.path.append(here)


def _import(module_name: str, word: str) -> object:
    _look_here()
    try:
        return importlib.import_module(module_name)
    except (HarnessError, UsageError):
        raise
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise UsageError(
                f"--adapter {word}: no module {quote(error.name)}; expected package.module:factory that can be "
                f"imported "
                f"from here (is its folder on PYTHONPATH?)"
            ) from None
        raise HarnessError(
            f"--adapter {word}: importing {module_name} failed: {error}; install what it needs"
        ) from error
    except Exception as error:
        # A library that is missing or does not load is no mistake of the module's.
        kind = HarnessError if isinstance(error, (ImportError, OSError)) else UsageError
        raise kind(f"--adapter {word}: importing {module_name} failed: {type(error).__name__}: {error}") from error


def _check_options(factory: Any, choice: AdapterChoice) -> None:  # noqa: ANN401 - any callable
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):
        return
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    known = [
        name for name, parameter in signature.parameters.items() if parameter.kind is not parameter.POSITIONAL_ONLY
    ]
    for key in choice.options:
        if key not in known and not takes_any:
            raise UsageError(
                f"--adapter {choice.word}: unknown option {quote(key)}; expected {', '.join(known) or 'no options'}"
                f"{did_you_mean(key, known)}"
            )
    try:
        signature.bind(**choice.options)
    except TypeError as error:
        raise UsageError(f"--adapter {choice.word}: {error}; expected the options {', '.join(known)}") from None


_WORDS = {"true": True, "yes": True, "1": True, "on": True, "false": False, "no": False, "0": False, "off": False}


def read_bool(adapter: str, name: str, value: str) -> bool:
    """A switch: true or false (also yes, on, 1 and no, off, 0)."""
    try:
        return _WORDS[value.lower()]
    except KeyError:
        raise UsageError(f"--adapter {adapter}: {name}={value}: expected true or false") from None


def read_number(adapter: str, name: str, value: str, *, least: int = 0, most: int | None = None) -> int:
    """A whole number from `least` on, and no larger than `most` where something after us could not hold it."""
    number = int(value) if value.isascii() and value.isdecimal() and len(value) < 20 else -1
    if number < least or (most is not None and number > most):
        upto = f"{least} on" if most is None else f"{least} to {most}"
        raise UsageError(f"--adapter {adapter}: {name}={value}: expected a whole number from {upto}")
    return number


def import_extra(name: str, title: str) -> Any:  # noqa: ANN401 - a module
    """Import the library of the adapter of that name. Raises HarnessError where it is missing or does not load."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError, RuntimeError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            raise HarnessError(
                f'--adapter {name}: {title} is not installed here; install it with: pip install "aclnn-cts[{name}]"'
            ) from None
        raise HarnessError(f"--adapter {name}: {title} is installed but does not load: {error}") from error
