"""The program in whose process a candidate's function is called. It imports nothing of ours, and is executed as text.

It maps the judge's memory, gives the function arrays over it by parameter name, stores what the function returns, and
answers each call with a frame (`sandbox.wire`). Arguments: two descriptors (memory, pipe of answers) and what the
confinement lacks, as JSON. What it answers is checked by the judge, who believes nothing but the bytes of the outputs.
"""

from __future__ import annotations

import inspect
import json
import mmap
import os
import struct
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

_HEADER = struct.Struct("<4sIQ")
_MARK = b"\x00cts"
_MESSAGE = 2000
"""Characters of a message."""


class Channel:
    """Numbered frames of JSON: calls in, answers out."""

    def __init__(self, calls: int, answers: int) -> None:
        self._calls, self._answers, self._number = calls, answers, 0

    def receive(self) -> dict[str, Any] | None:
        """The next frame; None where the judge has closed."""
        header = self._read(_HEADER.size)
        if not header:
            return None
        found: dict[str, Any] = json.loads(self._read(_HEADER.unpack(header)[2]))
        return found

    def _read(self, size: int) -> bytes:
        body = bytearray()
        while len(body) < size:
            chunk = os.read(self._calls, size - len(body))
            if not chunk:
                return b""
            body += chunk
        return bytes(body)

    def send(self, answer: Mapping[str, Any]) -> None:
        """Send one frame."""
        body = json.dumps(answer).encode()
        rest = _HEADER.pack(_MARK, self._number, len(body)) + body
        self._number += 1
        while rest:
            rest = rest[os.write(self._answers, rest) :]


class SharedArrays:
    """Arrays over the memory that judge and candidate share."""

    def __init__(self, descriptor: int) -> None:
        import ml_dtypes  # noqa: PLC0415 - after the path is set
        import numpy as np  # noqa: PLC0415

        self._np, self._ml, self._descriptor = np, ml_dtypes, descriptor
        self._map: mmap.mmap | None = None
        self._size = 0

    def array(self, place: Mapping[str, Any], size: int) -> Any:  # noqa: ANN401 - NumPy is not imported here
        """The array at a place of the memory, of which `size` bytes are in use."""
        if self._map is None or size > self._size:
            self._map, self._size = mmap.mmap(self._descriptor, size), size
        shape, dtype = tuple(place["shape"]), self._dtype(place["dtype"])
        if 0 in shape:
            return self._np.empty(shape, dtype)
        return self._np.ndarray(shape, dtype, self._map, place["offset"], tuple(place["strides"]))

    def _dtype(self, name: str) -> Any:  # noqa: ANN401
        return self._np.dtype(getattr(self._ml, name, name))


def store_results(results: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, str]:
    """Put results into outputs, rounded to their dtypes; by `name.shape` or `name.dtype` what cannot be put there."""
    import numpy as np  # noqa: PLC0415

    facts = {}
    for name, result in results.items():
        output = outputs[name]
        array = from_torch(result) if is_torch(result) else np.asarray(result)
        if array.dtype.kind in "OSU" and not isinstance(result, np.ndarray):
            raise TypeError(f"it returned {type(result).__name__}; expected an array")
        if array.shape != output.shape:
            facts[f"{name}.shape"] = str(list(array.shape))
        elif array.dtype.kind in "OSUMm" or (array.dtype.kind == "c" and output.dtype.kind != "c"):
            facts[f"{name}.dtype"] = array.dtype.name
        else:
            with np.errstate(all="ignore"):
                output[...] = array if array.dtype == output.dtype else array.astype(output.dtype)
    return facts


def is_torch(value: object) -> bool:
    """Whether a value is a torch tensor."""
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach")


def from_torch(value: Any) -> Any:  # noqa: ANN401 - torch is imported only where a candidate does
    """A torch tensor as a NumPy array."""
    torch = sys.modules["torch"]
    tensor = value.detach().cpu()
    name = str(tensor.dtype).removeprefix("torch.")
    if not name.startswith(("bfloat", "float8")):
        return tensor.numpy()
    import ml_dtypes  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415

    integers = torch.int16 if name == "bfloat16" else torch.uint8
    return tensor.contiguous().view(integers).numpy().view(np.dtype(getattr(ml_dtypes, name)))


def to_torch(array: Any) -> Any:  # noqa: ANN401
    """A NumPy array as a torch tensor over the same memory."""
    import torch  # noqa: PLC0415

    name = array.dtype.name
    if name.startswith(("bfloat", "float8")):
        integers = "int16" if name == "bfloat16" else "uint8"
        return torch.from_numpy(array.view(integers)).view(getattr(torch, name))
    return torch.from_numpy(array)


FORMATS = "formats"
"""A parameter of a candidate that no operator has."""


class LoadedCandidate:
    """The candidate: its function, and which parameters that takes."""

    def __init__(self, function: Callable[..., Any], names: Mapping[str, str]) -> None:
        """`names`: C names of parameters by every name."""
        self._function = function
        self._names = names
        signature = inspect.signature(function)
        parameters = signature.parameters.values()
        self._takes_all = any(item.kind is item.VAR_KEYWORD for item in parameters)
        self._positional = [item.name for item in parameters if item.kind is item.POSITIONAL_ONLY]
        self._keywords = [
            item.name for item in parameters if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
        ]
        self.wants_torch = any("torch" in str(item.annotation) for item in parameters)

    def __call__(self, values: Mapping[str, Any], formats: Mapping[str, str]) -> Any:  # noqa: ANN401
        """Call it with those arguments that it takes; a parameter `formats` gets the format of each tensor by name."""
        own = {name: values[self._names[name]] for name in self._keywords if self._names.get(name) in values}
        if FORMATS in self._keywords and FORMATS not in self._names:
            own[FORMATS] = dict(formats)
        if unknown := [name for name in self._positional if self._names.get(name) not in values]:
            raise TypeError(f"its parameter {unknown[0]!r} is none of this call; expected {', '.join(values)}")
        before = [values[self._names[name]] for name in self._positional]
        if self._takes_all:
            own |= {name: value for name, value in values.items() if name not in map(self._names.get, own)}
        return self._function(*before, **own)


def load(opening: Mapping[str, Any]) -> Any:  # noqa: ANN401 - what a candidate's file holds
    """The function that the opening names; its module where it names none."""
    try:
        return _loaded(opening)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "aclnn_cts":
            raise
        advice = "put the function into a file that does not import aclnn_cts"
        raise ImportError(f"a candidate's process has nothing of the judge: {advice}") from None


def _visible_file(file: str, text: str) -> str:
    """The candidate's file, beside which it finds its data; a copy of the file where that is hidden."""
    if os.path.isfile(file):  # noqa: PTH113
        return file
    folder = os.environ.get("TMPDIR", "/tmp")  # noqa: S108 - the private one
    path = os.path.join(folder, f"candidate-{os.getpid()}", os.path.basename(file))  # noqa: PTH118, PTH119
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    with open(path, "w", encoding="utf-8") as stream:  # noqa: PTH123
        stream.write(text)
    return path


def _loaded(opening: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as above
    import importlib.machinery  # noqa: PLC0415
    import importlib.util  # noqa: PLC0415

    if opening["text"] is None:
        module = importlib.import_module(opening["module"])
    else:
        path = _visible_file(opening["file"], opening["text"])
        loader = importlib.machinery.SourceFileLoader(opening["module"], path)
        spec: Any = importlib.util.spec_from_file_location(opening["module"], path, loader=loader)
        module = importlib.util.module_from_spec(spec)
        sys.modules[opening["module"]] = module
        # Not by that loader: it takes the bytecode of another text, where a file was written again within a second.
        exec(compile(opening["text"].encode(), path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    function: Any = module
    if not opening["function"]:
        return module
    for name in opening["function"].split("."):
        function = getattr(function, name)
    if not callable(function):
        raise TypeError(f"{opening['function']} is {type(function).__name__}; expected a function")
    return function


def answer(function: LoadedCandidate, memory: SharedArrays, call: Mapping[str, Any]) -> dict[str, Any]:
    """Make one call; what it came to."""

    def value(argument: Any) -> Any:  # noqa: ANN401
        if isinstance(argument, dict) and "offset" in argument:
            array = memory.array(argument, call["memory"])
            return to_torch(array) if function.wants_torch else array
        return [value(item) for item in argument] if isinstance(argument, list) else argument

    outputs = {name: memory.array(place, call["memory"]) for name, place in call["outputs"].items()}
    values = {name: value(argument) for name, argument in call["arguments"].items()}
    start = time.perf_counter()
    result = function(values, call[FORMATS])
    facts = store_results(results_by_output(result, outputs, call["orders"], function), outputs)
    return {"ended": "returned", "seconds": time.perf_counter() - start, "facts": facts}


def results_by_output(
    result: Any,  # noqa: ANN401 - whatever a candidate returns
    outputs: Mapping[str, Any],
    orders: list[list[str]],
    function: LoadedCandidate,
) -> dict[str, Any]:
    """What a function returned, by output; nothing where it has written into the arrays that it was given.

    `orders`: outputs in which results may come one behind the other: all of the prototype, or those that are asked for.
    """
    if result is None:
        return {}
    if isinstance(result, dict):
        found = {function._names.get(name, name): value for name, value in result.items() if value is not None}  # noqa: SLF001
        if unknown := sorted(set(found) - set(outputs)):
            raise KeyError(f"{unknown[0]!r} is no output of this call; expected {', '.join(outputs)}")
        return found
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    for order in orders:
        if len(results) == len(order):
            return {
                name: item for name, item in zip(order, results, strict=True) if item is not None and name in outputs
            }
        results = [item for item in results if item is not None]
    raise ValueError(f"it returned {len(results)} arrays; expected {len(orders[-1])}: {', '.join(orders[-1])}")


def failure(error: BaseException) -> dict[str, Any]:
    """What an exception comes to."""
    try:
        message = f"{type(error).__name__}: {error}"[:_MESSAGE]
        message.encode()
    except Exception:  # noqa: BLE001 - its own text may raise as well
        message = "an exception without a readable text"
    return {"ended": "raised", "message": message}


def serve(make: Callable[[Mapping[str, Any], SharedArrays], Callable[[Mapping[str, Any]], dict[str, Any]]]) -> None:
    """Serve calls until the pipe ends: `make` gives what answers them, of the opening and the memory."""
    memory_descriptor, answers, missing = sys.argv[1:]
    calls = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    for descriptor in (int(memory_descriptor), int(answers), calls):
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - os has no keyword for it
    channel = Channel(calls, int(answers))
    opening = channel.receive()
    if opening is None:
        return
    sys.path[:0] = opening["path"]
    answers_calls = make(opening, SharedArrays(int(memory_descriptor)))
    channel.send({"missing": json.loads(missing)})
    while (call := channel.receive()) is not None:
        try:
            reply = answers_calls(call)
        except BaseException as error:  # noqa: BLE001 - whatever a candidate raises is its answer
            reply = failure(error)
        channel.send(reply)
    os._exit(0)


def candidate(opening: Mapping[str, Any], memory: SharedArrays) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Answers calls of the candidate's function, which is loaded by the first of them."""
    loaded: list[LoadedCandidate] = []

    def answers_call(call: Mapping[str, Any]) -> dict[str, Any]:
        if not loaded:
            loaded.append(LoadedCandidate(load(opening), opening["names"]))
        return answer(loaded[0], memory, call)

    return answers_call


if __name__ == "__main__":
    serve(candidate)
