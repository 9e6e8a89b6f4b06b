from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from aclnn_cts.adapters.registry import ADAPTERS, AdapterChoice, load, parse_adapter_word
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.target import Target

MINE = """
class Mine:
    def __init__(self, *, scale="1"):
        self.scale = scale

def any_options(**options):
    return options

NOT_CALLABLE = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"adapter_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


def test_names_and_options() -> None:
    assert parse_adapter_word("reference") == AdapterChoice("reference", ADAPTERS["reference"].factory, isolate=False)
    choice = parse_adapter_word("torch:device=npu:1,threads=2")
    assert choice.options == {"device": "npu:1", "threads": "2"}
    assert choice.isolate
    own = parse_adapter_word("package.module:Factory,library=/a/b=c.so,scale=2")
    assert (own.factory, own.isolate) == ("package.module:Factory", True)
    assert own.options == {"library": "/a/b=c.so", "scale": "2"}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (
            "torhc",
            r"no adapter is called 'torhc'; expected one of reference, torch, jax, cann, .*; did you mean 'torch'\?",
        ),
        ("torhc:device=cpu", r"no adapter is called 'torhc'; .*; did you mean 'torch'\?"),
        ("", "no adapter is called ''"),
        ("a b:c", "no adapter is called 'a b'"),
        ("torch:device", "'device'; expected options as key=value"),
        ("torch:=cpu", "'=cpu'; expected options as key=value"),
        ("torch:device=cpu,device=npu", "'device' is given twice"),
        ("module:Factory,", "''; expected options as key=value"),
        ("torch,device=cpu", "options follow a colon; write torch:device=cpu instead of torch,device=cpu"),
        ("cann,library=a.so,b.so", "write cann:library=a.so,b.so instead of cann,library=a.so,b.so"),
        ("torch:device=cpu:threads=2", "':' stands between two options; expected a comma: write ...,threads="),
        ("torch:device=cpu;threads=2", "';' stands between two options; expected a comma"),
        ("module:Factory:scale=2", "write module:Factory,scale=2 instead of module:Factory:scale=2"),
    ],
)
def test_a_malformed_word_is_a_usage_error(word: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_adapter_word(word)


def test_an_adapter_of_ones_own_is_found_in_the_current_folder(module: str) -> None:
    adapter = load(parse_adapter_word(f"{module}:Mine,scale=3"))
    assert adapter.scale == "3"  # type: ignore[attr-defined]  # its factory's own
    options: object = load(parse_adapter_word(f"{module}:any_options,a=1"))
    assert options == {"a": "1"}


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (":Mien", r"has no callable 'Mien'; .*; did you mean 'Mine'\?"),
        (":NOT_CALLABLE", "has no callable 'NOT_CALLABLE'"),
        (":Mine,scael=3", r"unknown option 'scael'; expected scale; did you mean 'scale'\?"),
        (".inner:Mine", "no module 'adapter_of_.*inner'"),
    ],
)
def test_a_word_that_names_nothing_is_a_usage_error(module: str, rest: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(parse_adapter_word(f"{module}{rest}"))


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("import no_such_library", HarnessError, "No module named 'no_such_library'; install what it needs"),
        ("raise OSError('libfoo.so: not found')", HarnessError, "OSError: libfoo.so: not found"),
        ("def f(:", UsageError, "SyntaxError"),
        ("undefined", UsageError, "NameError"),
    ],
)
def test_a_module_that_does_not_import_is_wrong_or_lacks_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, error: type[Exception], message: str
) -> None:
    (tmp_path / "broken_adapter.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(error, match=message):
        load(parse_adapter_word("broken_adapter:Factory"))
    sys.modules.pop("broken_adapter", None)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("torch:threads=0", "threads=0: expected a whole number from 1 on"),
        ("torch:threads=x", "threads=x: expected a whole number from 1 on"),
        ("torch:tf32=maybe", "tf32=maybe: expected true or false"),
        ("torch:outputs=both", "outputs=both: expected one of direct, copy"),
        ("torch:devise=cpu", r"unknown option 'devise'; .*; did you mean 'device'\?"),
        ("reference:x=1", "unknown option 'x'; expected no options"),
    ],
)
def test_options_are_checked(word: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(parse_adapter_word(word))


def test_without_torch_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [_NoTorch()])
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    adapter = load(parse_adapter_word("torch"))
    with pytest.raises(HarnessError, match=r'torch is not installed here; .*pip install "aclnn-cts\[torch\]"'):
        adapter.open(Target(), {})


class _NoTorch:
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        del path, target
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_nothing_imports_torch_before_it_is_opened() -> None:
    program = (
        "import sys\n"
        "from aclnn_cts.adapters.registry import load, parse_adapter_word\n"
        "from aclnn_cts.sandbox import host\n"
        "load(parse_adapter_word('torch'))\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
