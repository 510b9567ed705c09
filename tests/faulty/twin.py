"""A small framework to test the suite with: arrays over NumPy, functions named as in the array API, and a tracer.

It is healthy. What it computes stands in one table and what it traces in one class, so that a fault is one function put in the
place of another. No result ever shares memory with an operand.
"""

import types

import numpy as np

SAME = """
abs add all any arange argmax argmin bitwise_and bitwise_or bitwise_xor broadcast_to ceil clip cos cosh count_nonzero divide
equal exp expand_dims expm1 eye flip floor floor_divide full full_like greater greater_equal isfinite isinf isnan less
less_equal linspace log log1p logaddexp logical_and logical_not logical_or logical_xor matmul max maximum mean min minimum
multiply negative nonzero not_equal ones ones_like outer positive prod remainder repeat reshape roll round sign sin sinh sort
sqrt square squeeze stack subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc where zeros zeros_like
"""


def softmax_of(x, axis=-1):
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


FUNCTIONS = {name: getattr(np, name) for name in SAME.split()} | {
    "acos": np.arccos,
    "argsort": lambda x, axis=-1, descending=False: np.argsort(-x if descending else x, axis=axis, kind="stable"),
    "asarray": np.array,
    "asin": np.arcsin,
    "astype": lambda x, dtype: x.astype(dtype),
    "atan": np.arctan,
    "atan2": np.arctan2,
    "bitwise_invert": np.invert,
    "concat": np.concatenate,
    "cumulative_sum": np.cumsum,
    "einsum": lambda subscripts, operands: np.einsum(subscripts, *operands),
    "getitem": lambda x, index: x[index],
    "matrix_transpose": lambda x: np.swapaxes(x, -1, -2),
    "permute_dims": np.transpose,
    "pow": np.power,
    "setitem": lambda x, index, value: x.__setitem__(index, value),
    "softmax": softmax_of,
    "std": lambda x, axis=None, correction=0, keepdims=False: np.std(x, axis=axis, ddof=correction, keepdims=keepdims),
    "unstack": lambda x, axis=0: tuple(np.moveaxis(x, axis, 0)),
    "var": lambda x, axis=None, correction=0, keepdims=False: np.var(x, axis=axis, ddof=correction, keepdims=keepdims),
    "vecdot": lambda x1, x2, axis=-1: np.sum(np.conj(x1) * x2, axis=axis),
}
"""What each function does to NumPy arrays."""

BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
UNARY = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}


def call(name, *arguments, **options):
    """Call a function of the table: arrays are opened on the way in and copied on the way out."""
    return closed(FUNCTIONS[name](*opened(arguments), **{key: opened(value) for key, value in options.items()}))


def opened(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(opened, value))
    return value.data if isinstance(value, Array) else value


def closed(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(closed, value))
    return Array(np.array(value)) if isinstance(value, (np.ndarray, np.generic)) else value


class Array:
    """An array. Every operator is a function of the table."""

    __array_ufunc__ = None  # NumPy shall leave operators with one of its own numbers to this class
    __hash__ = None

    def __init__(self, data):
        self.data = data

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)
    ndim = property(lambda self: self.data.ndim)
    T = property(lambda self: call("permute_dims", self))
    mT = property(lambda self: call("matrix_transpose", self))  # noqa: N815

    def __getitem__(self, index):
        return call("getitem", self, index)

    def __setitem__(self, index, value):
        call("setitem", self, index, value)

    def __len__(self):
        return len(self.data)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __bool__(self):
        return bool(self.data)

    def __int__(self):
        return int(self.data)

    def __float__(self):
        return float(self.data)

    def __index__(self):
        return self.data.__index__()

    def __repr__(self):
        return f"twin.array({self.data.tolist()}, twin.{self.dtype})"


for short, name in BINARY.items():
    setattr(Array, f"__{short}__", lambda self, other, name=name: call(name, self, other))
    if short not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Array, f"__r{short}__", lambda self, other, name=name: call(name, other, self))
for short, name in UNARY.items():
    setattr(Array, f"__{short}__", lambda self, name=name: call(name, self))


def array(values):
    """An array with a copy of these values."""
    return Array(np.array(values))


class Traced:
    """A function that is captured anew for every signature, and for globals of another kind. It sees its globals as they are."""

    def __init__(self, function):
        self.function = function
        self.captured = {}

    def __call__(self, *arguments, **named):
        key = self.signature((arguments, dict(sorted(named.items())))), self.surroundings()
        if key not in self.captured:
            self.captured[key] = self.capture(arguments, named)
        result = self.captured[key](*arguments, **named)
        return array(result) if type(result) in (int, float) else result

    def signature(self, call):
        """By what a call is recognised."""
        return signature(call)

    def surroundings(self):
        """By what the globals of the function, and of those it calls, are recognised."""
        return surroundings(self.function)

    def capture(self, arguments, named):
        """What is called from now on for this signature."""
        return self.function

    @property
    def traces(self):
        return len(self.captured)


compile = Traced


def signature(value):
    """Shape and dtype of an array; a Python value and its type."""
    if isinstance(value, Array):
        return value.shape, str(value.dtype)
    if isinstance(value, (list, tuple)):
        return type(value), tuple(map(signature, value))
    if isinstance(value, dict):
        return dict, tuple((key, signature(child)) for key, child in value.items())
    return type(value), value


def surroundings(function):
    """Shape and dtype of each global array that a function names, each Python value, and the code of each function."""
    found = []
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, types.FunctionType) and value is not function:
            found.append((name, value.__code__, surroundings(value)))
        elif isinstance(value, (Array, int, float, str, list, tuple, dict)):
            found.append((name, signature(value)))
        elif value is None and name in function.__globals__:
            found.append((name, None))
    return tuple(found)


def __getattr__(name):
    """Functions by the table, and dtypes; as globals they would hide Python's own sum, any and abs from this module."""
    if name in FUNCTIONS:
        return lambda *arguments, **options: call(name, *arguments, **options)
    if name == "bool":
        return np.bool_
    if name in ("inf", "nan", "pi") or name in np.sctypeDict:
        return getattr(np, name)
    raise AttributeError(f"module 'twin' has no attribute {name!r}")
