"""What scripts share: outputs are compared with their bounds, and equal calls with one another."""

from opening import PROGRAM, decoded, np


def numbers(text):
    return np.frombuffer(decoded(text), np.float64)


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
    judged, finite_alone = (np.frombuffer(decoded(value["expected"][key]), bool) for key in ("judged", "finite_alone"))
    right = np.where(np.isnan(lower), np.isnan(got), (lower <= got) & (got <= upper))
    wrong = np.flatnonzero(judged & ~right & ~(finite_alone & ~np.isfinite(got)))
    for place in wrong[:8]:
        least, most = lower[place], upper[place]
        what = f"{who}{name}{place_in(value, place)}"
        print(f"{what} is {got[place]:.17g}, expected {least:.17g} to {most:.17g}")
    if wrong.size:
        print(f"{who}{name}: {wrong.size} of {got.size} elements at fault")
    return not wrong.size


def equal(results):
    """Whether equal calls gave equal results; nan equals nan."""
    outputs, conforms = PROGRAM["equal"], True
    for number in range(1, len(results) // max(len(outputs), 1)):
        for place, name in enumerate(outputs):
            first, other = results[place], results[number * len(outputs) + place]
            differ = int(np.count_nonzero((first != other) & ~(np.isnan(first) & np.isnan(other))))
            if differ:
                print(f"{name}: {differ} of {first.size} elements of call {number + 1} differ from call 1")
                conforms = False
    return conforms
