"""Frameworks that are the twin with one wrong behaviour each. What is wrong, and which cases must see it: changes.yaml.

Each is found by entry point, as any framework is. Its programs begin with ``twin = faults.spoil(NAME)``, which puts wrong
functions in the place of right ones: entries of ``twin.FUNCTIONS``, or attributes of ``twin.Traced``.
"""

import types

import numpy as np
import twin
import twin_dialect

# --- contractions


def only(applies, wrong):
    """A matmul of arrays that is wrong where ``applies(a, b)``, and right elsewhere."""

    def matmul(a, b):
        arrays = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.ndim > 0 and b.ndim > 0
        return (wrong if arrays and applies(a, b) else np.matmul)(a, b)

    return matmul


def both(*dtypes):
    return lambda a, b: a.dtype == b.dtype and a.dtype.name in dtypes


INTEGERS = both("int8", "uint8", "int32", "int64")


def not_finite(a, b):
    return both("float32")(a, b) and not (np.isfinite(a).all() and np.isfinite(b).all())


def batches(a, b):
    return a.ndim > 2 and b.ndim > 2


def summing(add, multiply=np.multiply):
    """A matmul made of its products, which ``add`` sums over the last axis but one."""

    def matmul(a, b):
        shape = np.matmul(a, b).shape
        rows = a[None] if a.ndim == 1 else a
        columns = b[:, None] if b.ndim == 1 else b
        return add(multiply(rows[..., :, :, None], columns[..., None, :, :])).reshape(shape).astype(a.dtype)

    return matmul


def cut_to_bfloat16(x):
    return (np.ascontiguousarray(x).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def saturated(a, b):
    bounds = np.iinfo(a.dtype)
    return np.clip(np.matmul(a.astype(float), b.astype(float)), bounds.min, bounds.max).astype(a.dtype)


def without_nan(a, b):
    made = np.matmul(a, b)
    return np.where(np.isnan(made), np.zeros_like(made), made)


def without_column_axis(a, b):
    made = np.matmul(a, b)
    return made[..., 0] if made.ndim > 1 and made.shape[-1] == 1 and made.shape[-2] > 1 else made


def over_the_shorter(a, b):
    size = min(a.shape[-1], b.shape[-2:][0])
    return np.matmul(a[..., :size], b[..., :size, :] if b.ndim > 1 else b[:size])


def refusing_unequal_batches(a, b):
    made = np.matmul(a, b)
    if a.shape[:-2] != b.shape[:-2]:
        raise ValueError("matmul: the batch dimensions are not the same")
    return made


def taking_scalars(a, b):
    return np.multiply(a, b) if 0 in (np.ndim(a), np.ndim(b)) else np.matmul(a, b)


def raising_lookup_error(a, b):
    try:
        return np.matmul(a, b)
    except ValueError as error:
        raise LookupError(str(error)) from None


def einsum_without_repeats(subscripts, operands):
    """A letter that an operand repeats counts as a letter of its own."""
    fresh = iter("UVWXYZ")
    left, arrow, right = subscripts.partition("->")
    terms = ["".join(next(fresh) if c.isalpha() and c in term[:i] else c for i, c in enumerate(term)) for term in left.split(",")]
    return np.einsum(",".join(terms) + arrow + right, *operands)


# --- indexing


def swapped_newaxis(x, index):
    """``[None, :]`` for ``[:, None]`` and the other way round."""
    return x[index[::-1] if isinstance(index, tuple) and len(index) == 2 and None in index else index]


def gathering(x, index):
    return x[index.astype(int) if isinstance(index, np.ndarray) and index.dtype == np.bool_ else index]


# --- elementwise


def add_in_place(a, b):
    try:
        return twin.Array(np.add(a, b, out=a))
    except (TypeError, ValueError):  # the result does not fit into the first operand
        return np.add(a, b)


def zero_wins(a, b):
    made = np.multiply(a, b)
    return np.where((np.asarray(a) == 0) | (np.asarray(b) == 0), np.zeros_like(made), made)


def blended(condition, a, b):
    """Chosen by multiplication with 1 and 0, so that a NaN that is not chosen is still there."""
    chosen = np.not_equal(condition, 0)
    made = chosen * np.asarray(a) + ~chosen * np.asarray(b)
    return made.astype(np.where(condition, a, b).dtype)


def closed_arange(start, stop=None, step=1, dtype=None):
    return np.arange(start + 1, dtype=dtype) if stop is None else np.arange(start, stop + 1, step, dtype=dtype)


# --- reductions


def reducing(reduce, axis=lambda axis: axis, keepdims=lambda keepdims: keepdims):
    """A reduction whose axis or keepdims is not what was asked for."""
    other_axis, other_keepdims = axis, keepdims
    return lambda x, axis=None, keepdims=False, **rest: reduce(
        x, axis=other_axis(axis), keepdims=other_keepdims(keepdims), **rest
    )


def over_something(reduce, of_nothing):
    return lambda x, **rest: (reduce if x.size else of_nothing)(x, **rest)


def sum_in_int32(x, axis=None, dtype=None, keepdims=False):
    return np.sum(x, axis=axis, dtype=np.int32 if dtype is None and x.dtype.kind in "bi" else dtype, keepdims=keepdims)


def mean_of_nonzero(x, axis=None, keepdims=False):
    count = np.count_nonzero(x, axis=axis, keepdims=keepdims)
    return np.divide(np.sum(x, axis=axis, keepdims=keepdims), count, dtype=x.dtype if x.dtype.kind == "f" else np.float64)


# --- tracing


def freezing(self, arguments, named):
    function = self.function
    return types.FunctionType(function.__code__, dict(function.__globals__), function.__name__, function.__defaults__)


def remembering(self, arguments, named):
    result = self.function(*arguments, **named)
    return lambda *_, **__: result


def recognised_by(array=lambda x: (x.shape, str(x.dtype)), python=lambda value: (type(value), value)):
    """The signature of a call, of arrays and Python values that are recognised by less or more than they should be."""

    def part(value):
        if isinstance(value, twin.Array):
            return array(value)
        if isinstance(value, (list, tuple)):
            return type(value), tuple(map(part, value))
        if isinstance(value, dict):
            return dict, tuple((key, part(child)) for key, child in value.items())
        return python(value)

    return lambda self, call: part(call)


FAULTS = {
    "matmul_bfloat16": {"matmul": only(both("float32"), lambda a, b: np.matmul(cut_to_bfloat16(a), cut_to_bfloat16(b)))},
    "matmul_half_sums": {"matmul": only(both("float16"), summing(lambda x: np.add.accumulate(x, axis=-2)[..., -1, :]))},
    "matmul_zero_wins": {"matmul": only(not_finite, summing(lambda x: np.sum(x, axis=-2), zero_wins))},
    "matmul_loses_nan": {"matmul": only(not_finite, without_nan)},
    "matmul_saturates": {"matmul": only(both("int8", "uint8", "int32"), saturated)},
    "matmul_int_to_float": {"matmul": only(INTEGERS, lambda a, b: np.matmul(a, b).astype(np.float64))},
    "matmul_first_dtype": {"matmul": only(lambda a, b: a.dtype != b.dtype, lambda a, b: np.matmul(a, b).astype(a.dtype))},
    "matmul_conjugates": {"matmul": only(both("complex64"), lambda a, b: np.matmul(np.conj(a), b))},
    "matmul_empty_nan": {"matmul": only(lambda a, b: a.shape[-1] == 0, lambda a, b: np.matmul(a, b) * np.nan)},
    "matmul_transposes_square": {
        "matmul": only(lambda a, b: b.ndim == 2 and b.shape[0] == b.shape[1], lambda a, b: np.matmul(a, b.T))
    },
    "matmul_keeps_vector_axis": {"matmul": only(lambda a, b: a.ndim > 1 and b.ndim == 1, lambda a, b: np.matmul(a, b[:, None]))},
    "matmul_pairs_vectors": {
        "matmul": only(
            lambda a, b: a.ndim == 3 and b.shape == (a.shape[0], a.shape[2]), lambda a, b: np.matmul(a, b[..., None])[..., 0]
        )
    },
    "matmul_drops_column_axis": {"matmul": without_column_axis},
    "matmul_takes_shorter": {"matmul": only(lambda a, b: True, over_the_shorter)},
    "matmul_equal_batches_only": {"matmul": only(batches, refusing_unequal_batches)},
    "matmul_takes_scalars": {"matmul": taking_scalars},
    "matmul_lookup_error": {"matmul": raising_lookup_error},
    "outer_swapped": {"outer": lambda a, b: np.outer(b, a)},
    "einsum_ignores_repeats": {"einsum": einsum_without_repeats},
    "reshape_fortran": {"reshape": lambda x, shape: np.reshape(x, shape, order="F")},
    "concat_first_axis": {"concat": lambda arrays, axis=0: np.concatenate(arrays, axis=0)},
    "newaxis_other_end": {"getitem": swapped_newaxis},
    "mask_gathers": {"getitem": gathering},
    "setitem_lost": {"setitem": lambda x, index, value: None},
    "add_in_place": {"add": add_in_place},
    "less_or_equal": {"less": np.less_equal},
    "less_is_int8": {"less": lambda a, b: np.less(a, b).astype(np.int8)},
    "where_inverted": {"where": lambda condition, a, b: np.where(condition, b, a)},
    "where_blends": {"where": blended},
    "tril_off_by_one": {"tril": lambda x, k=0: np.tril(x, k - 1)},
    "arange_closed": {"arange": closed_arange},
    "sum_keeps_axis": {"sum": reducing(np.sum, keepdims=lambda keepdims: True)},
    "sum_drops_axis": {"sum": reducing(np.sum, keepdims=lambda keepdims: False)},
    "sum_other_axis": {"sum": reducing(np.sum, axis=lambda axis: None if axis is None else -1 - axis)},
    "sum_in_int32": {"sum": sum_in_int32},
    "mean_skips_zeros": {"mean": mean_of_nonzero},
    "any_and_all_of_nothing": {"all": over_something(np.all, np.any), "any": over_something(np.any, np.all)},
    "softmax_without_max": {"softmax": lambda x, axis=-1: np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)},
    "softmax_first_axis": {"softmax": lambda x, axis=-1: twin.softmax_of(x, axis=0)},
    "trace_every_call": {"signature": lambda self, arguments: object()},
    "trace_once": {"signature": lambda self, arguments: None, "surroundings": lambda self: None},
    "trace_ignores_globals": {"surroundings": lambda self: None},
    "trace_ignores_dtypes": {"signature": recognised_by(array=lambda x: x.shape)},
    "trace_ignores_sizes": {"signature": recognised_by(array=lambda x: (x.ndim, str(x.dtype)))},
    "trace_per_value": {"signature": recognised_by(array=lambda x: (x.shape, str(x.dtype), x.data.tobytes()))},
    "trace_equal_is_same": {"signature": recognised_by(python=lambda value: value)},
    "trace_ignores_python": {"signature": recognised_by(python=type)},
    "trace_counted_twice": {"traces": property(lambda self: len(self.captured) + bool(self.captured))},
    "trace_freezes_globals": {"capture": freezing, "surroundings": lambda self: None},
    "trace_remembers_result": {"capture": remembering},
}


def spoil(name):
    """The twin, with this fault from now on."""
    for part, wrong in FAULTS[name].items():
        if part in twin.FUNCTIONS:
            twin.FUNCTIONS[part] = wrong
        else:
            setattr(twin.Traced, part, wrong)
    return twin


def framework(name):
    """The framework with this fault; it traces only where that is what it does wrong."""
    traced = name.startswith("trace_")
    return twin_dialect.FRAMEWORK._replace(
        name=name,
        imports=f"import faults\nimport numpy as np\n\ntwin = faults.spoil({name!r})",
        modes=twin_dialect.FRAMEWORK.modes if traced else {"eager": ""},
    )


FRAMEWORKS = types.SimpleNamespace(**{name: framework(name) for name in FAULTS})
