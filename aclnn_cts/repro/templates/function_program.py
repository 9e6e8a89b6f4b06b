#!/usr/bin/env python3
"""@OPERATOR@: @SENTENCE@

Case @CASE@, @PRODUCT@.@ABOUT@
Needs numpy@LIBRARY@ and a function of yours, and nothing else:
    python3 repro.py module:function        or        python3 repro.py path/to/file.py:function
It is called with keyword arguments: @INPUTS@. Tensors are @TENSORS@, null pointers None.
Where it has a parameter dtypes, it gets the dtype of each output by name; else results are converted.
It returns @OUTPUTS@: one value alone, a tuple in this order, or a dict by name. An exception is a rejection.
Exit codes: 0 the fault is gone, 1 it is there, 2 the surroundings failed.
"""

import importlib
import importlib.util
import inspect
import sys
import traceback

from numpy_tensors import described, dtype_of, tensor_of
from opening import PROGRAM, np, unable
from related import conforming, equal


def function_of(word):
    """The user's function, by its module or file."""
    place, colon, name = word.rpartition(":")
    if not colon:
        unable(f"{word}: expected module:function or path/to/file.py:function")
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location("implementation", place)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, "")
            module = importlib.import_module(place)
        return getattr(module, name)
    except (ImportError, AttributeError, OSError) as error:
        unable(f"{word}: {error}; expected module:function or path/to/file.py:function")


def signature_of(function):
    """The parameters of the user's function; None where Python does not know them."""
    if not callable(function):
        unable(f"{sys.argv[1]}: is no function, but {type(function).__name__}")
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def named(result):
    """What the function returned, by the name of the output."""
    outputs = PROGRAM["outputs"]
    if isinstance(result, dict):
        return result
    if isinstance(result, (tuple, list)) and len(outputs) > 1:
        return dict(zip(outputs, result))
    return {outputs[0]: result}


def compared(who, name, value, result, told):
    """Whether one output conforms, and its elements; `told`: the function knows the dtype, and must return it."""
    expected = dtype_of(value["dtype"])
    shape, dtype, got = described(result, expected, value)
    if shape != value["shape"]:
        print(f"{who}{name} has the shape {shape}, expected {value['shape']}")
        return False, None
    if told and dtype != expected:
        print(f"{who}{name} has the dtype {dtype}, expected {expected}")
        return False, None
    return conforming(who, name, value, got), got


def argument_of(item):
    """An argument as the function takes it: a number, a bool, a text, a tuple of them, a list of tensors, or None."""
    value, kind = item["value"], item["kind"]
    if value is None or kind in ("int", "bool", "string"):
        return value
    if kind == "tensor":
        return tensor_of(value)
    if kind == "tensor_list":
        return [tensor_of(tensor) for tensor in value]
    if kind == "scalar":
        value = value["value"]
    if isinstance(value, list):
        return tuple(float.fromhex(number) if isinstance(number, str) else number for number in value)
    return float.fromhex(value) if isinstance(value, str) else value


def arguments_of(facts, outputs, function):
    """What the function is called with, and whether it is told the dtypes of its outputs."""
    arguments = {}
    for item in facts["parameters"]:
        if item["role"] != "output":
            arguments[item["name"]] = argument_of(item)
    signature = signature_of(function)
    if signature is None:
        return arguments, False
    told = "dtypes" in signature.parameters
    if told:
        arguments["dtypes"] = {name: dtype_of(value["dtype"]) for name, value in outputs.items()}
    try:
        signature.bind(**arguments)
    except TypeError as error:
        unable(f"the function takes {signature}: {error}; it is called with {', '.join(arguments)}")
    return arguments, told


def made(facts, function, who):
    """One call: whether it conforms, and the elements of its outputs."""
    outputs = {
        item["name"]: item["value"]
        for item in facts["parameters"]
        if item["name"] in PROGRAM["outputs"] and item["value"] is not None
    }
    arguments, told = arguments_of(facts, outputs, function)
    must_fail = 0 not in facts["statuses"]
    try:
        results = named(function(**arguments))
    except Exception as error:
        print(f"{who}the function raised {type(error).__name__}: {error}")
        conforms = must_fail or facts["any_error"]
        print(f"{who}{'conforms' if conforms else 'does not conform: the call is supported'}")
        return conforms, []
    if must_fail:
        print(f"{who}the function accepted a call that the document says must be rejected")
        return False, []
    conforms, elements = True, []
    for name, value in outputs.items():
        if value["expected"] is not None:
            if name not in results:
                unable(f"the function returned no {name}; expected {', '.join(PROGRAM['outputs'])}")
            good, got = compared(who, name, value, results[name], told)
            conforms = good and conforms
            if got is not None:
                elements.append(got)
    print(f"{who}{'conforms' if conforms else 'does not conform'}")
    return conforms, elements


def main():
    if len(sys.argv) != 2:
        unable(f"usage: python3 {sys.argv[0]} module:function")
    function = function_of(sys.argv[1])
    conforms, results = True, []
    with np.errstate(all="ignore"):
        for number, place in enumerate(PROGRAM["order"], start=1):
            who = f"call {number}: " if len(PROGRAM["order"]) > 1 else ""
            good, elements = made(PROGRAM["calls"][place], function, who)
            conforms = good and conforms
            results.extend(elements)
        if PROGRAM["equal"]:
            conforms = equal(results) and conforms
    print("FAULT" if not conforms else PROGRAM["beyond"] or "conforms")
    sys.exit(0 if conforms else 1)


try:
    main()
except Exception:  # an exit code of 1 would say that the fault is there
    traceback.print_exc()
    sys.exit(2)
