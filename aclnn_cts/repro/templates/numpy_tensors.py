"""Tensors as NumPy arrays."""

from opening import decoded, np, unable
from related import numbers

DTYPES = {
    0: "float32",
    1: "float16",
    2: "int8",
    3: "int32",
    4: "uint8",
    6: "int16",
    7: "uint16",
    8: "uint32",
    9: "int64",
    10: "uint64",
    11: "float64",
    12: "bool",
    16: "complex64",
    17: "complex128",
    34: "V1",
}
HIFLOAT8 = np.dtype("V1")  # its codes, which no library has a dtype for
ML_DTYPES = {27: "bfloat16", 35: "float8_e5m2", 36: "float8_e4m3fn", 37: "float8_e8m0fnu"}


def dtype_of(code):
    if code in ML_DTYPES:
        try:
            import ml_dtypes
        except ImportError:
            unable("BF16 and 8-bit floats have no dtype in NumPy alone: pip install ml_dtypes")
        return np.dtype(getattr(ml_dtypes, ML_DTYPES[code]))
    if code not in DTYPES:
        unable(f"NumPy has no dtype for the aclDataType {code}")
    return np.dtype(DTYPES[code])


def tensor_of(value):
    """The tensor over its storage, with its strides and offset."""
    dtype = dtype_of(value["dtype"])
    storage = np.frombuffer(bytearray(decoded(value["data"])), dtype)
    if not all(value["shape"]):
        return np.empty(value["shape"], dtype)
    strides = [stride * dtype.itemsize for stride in value["strides"]]
    return np.lib.stride_tricks.as_strided(storage[value["offset"] :], value["shape"], strides)


def described(result, dtype, value):
    """Shape and dtype of what the function returned, and its elements in a dtype, as float64; re and im of each."""
    array = np.asarray(result)
    if dtype == HIFLOAT8:
        if array.dtype != HIFLOAT8:
            unable(f"a function has to return HIFLOAT8 as its codes, codes.view('V1'), and returned {array.dtype}")
        codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return list(array.shape), array.dtype, numbers(value["numbers"])[codes]
    elements = np.ascontiguousarray(array.astype(dtype)).reshape(-1)
    if elements.dtype.kind == "c":
        elements = elements.view(elements.real.dtype)
    return list(array.shape), array.dtype, elements.astype(np.float64)
