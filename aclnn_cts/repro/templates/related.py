"""What scripts have in common: outputs held to their ends, and relations between the outputs of several calls."""

import base64
import math

from opening import PROGRAM, np


def numbers(text):
    return np.frombuffer(base64.b64decode(text), np.float64)


def at(place, shape):
    return [int(axis) for axis in np.unravel_index(place, shape)]


def place_in(value, place):
    """A number's element, such as [1, 2]; [1, 2].im of a complex tensor (16, 17), which has two of each."""
    if value["dtype"] not in (16, 17):
        return str(at(place, value["shape"]))
    return f"{at(place // 2, value['shape'])}{'.im' if place % 2 else '.re'}"


def conforming(who, name, value, got):
    """Whether all elements of an output are within their ends; those at fault are printed."""
    lower, upper = numbers(value["expected"]["lower"]), numbers(value["expected"]["upper"])
    judged, finite_alone = (
        np.frombuffer(base64.b64decode(value["expected"][key]), bool) for key in ("judged", "finite_alone")
    )
    right = np.where(np.isnan(lower), np.isnan(got), (lower <= got) & (got <= upper))
    wrong = np.flatnonzero(judged & ~right & ~(finite_alone & ~np.isfinite(got)))
    for place in wrong[:8]:
        least, most = lower[place], upper[place]
        what = f"{who}{name}{place_in(value, place)}"
        print(f"{what} is {got[place]:.17g}, expected {least:.17g} to {most:.17g}")
    if wrong.size:
        print(f"{who}{name}: {wrong.size} of {got.size} elements at fault")
    return not wrong.size


def total(side, row, results):
    constant, terms = side
    values = [float.fromhex(factor) * results[result][first + row * step] for result, first, step, factor in terms]
    if all(map(math.isfinite, values)):
        return math.fsum([float.fromhex(constant), *values])
    return float(np.sum([float.fromhex(constant), *values]))


def related(results):
    """Whether the outputs of all calls have to do with one another what they must."""
    if len(results) != PROGRAM["kept"]:
        print("a call gave no outputs, so that nothing is known of what they have to do with one another")
        return True
    conforms = True
    for relation in PROGRAM["relations"]:
        print(f"{relation['output']}: {relation['said']}")
        rows = [(run, row) for run in relation["runs"] for row in range(run["rows"])]
        bounds, wrong = numbers(relation["bounds"]), 0
        for place, (run, row) in enumerate(rows):
            left, right = total(run["left"], row, results), total(run["right"], row, results)
            alike = left == right or (math.isnan(left) and math.isnan(right))
            if alike or math.isinf(bounds[place]) or abs(left - right) <= bounds[place]:
                continue
            wrong += 1
            if wrong <= 8:
                what = f"{relation['output']}{at(place, relation['shape'])}" + f" ({relation['place']})" * bool(
                    relation["place"]
                )
                print(f"{what} is {left!r} and {right!r}, which may be {bounds[place]:.3g} apart")
        if wrong:
            print(f"{wrong} of {len(rows)} do not hold")
            conforms = False
    return conforms
