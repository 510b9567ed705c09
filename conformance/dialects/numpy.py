"""NumPy: the reference. Only names that NumPy 1.26 has as well."""

from conformance.framework import Framework

FRAMEWORK = Framework(
    name="numpy",
    distributions=("numpy",),
    runtime="conformance.runtimes.numpy",
    module="np",
    imports="import numpy as np",
    same=frozenset(
        """
        abs add all any arange argmax argmin asarray broadcast_to ceil conj cos cosh count_nonzero divide equal exp expm1 flip
        diagonal floor floor_divide full full_like greater greater_equal imag isfinite isinf isnan less less_equal log log1p logaddexp
        logical_and logical_not logical_or logical_xor matmul max maximum mean min minimum multiply negative nonzero not_equal ones
        ones_like positive prod real remainder repeat round sign sin sinh sqrt square stack subtract sum take
        take_along_axis tan tanh tensordot trace trunc where zeros zeros_like bitwise_and bitwise_or bitwise_xor
        """.split()
    ),
    rows={
        "acos": "np.arccos(x)",
        "argsort": "np.argsort(x, axis=axis)",
        "asin": "np.arcsin(x)",
        "astype": "x.astype(dtype)",
        "atan": "np.arctan(x)",
        "atan2": "np.arctan2(x1, x2)",
        "bitwise_invert": "np.invert(x)",
        "cholesky": "np.linalg.cholesky(x)",
        "clip": "np.clip(x, min, max)",
        "concat": "np.concatenate(arrays, axis=axis)",
        "cumulative_prod": "np.cumprod(x, axis=axis)",
        "cumulative_sum": "np.cumsum(x, axis=axis)",
        "det": "np.linalg.det(x)",
        "eigh": "tuple(np.linalg.eigh(x))",
        "einsum": "np.einsum(subscripts, *operands)",
        "expand_dims": "np.expand_dims(x, axis=axis)",
        "eye": "np.eye(n_rows, n_cols, k=k, dtype=dtype)",
        "inv": "np.linalg.inv(x)",
        "linspace": "np.linspace(start, stop, num)",
        "logsumexp": "logsumexp(x, axis=axis)",
        "matrix_transpose": "np.swapaxes(x, -1, -2)",
        "outer": "np.outer(x1, x2)",
        "permute_dims": "np.transpose(x, axes)",
        "pow": "np.power(x1, x2)",
        "relu": "np.maximum(x, 0)",
        "reshape": "np.reshape(x, shape)",
        "roll": "np.roll(x, shift, axis=axis)",
        "sigmoid": "1 / (1 + np.exp(-x))",
        "softmax": "softmax(x, axis=axis)",
        "solve": "np.linalg.solve(x1, x2)",
        "sort": "np.sort(x, axis=axis)",
        "squeeze": "np.squeeze(x, axis)",
        "std": "np.std(x, axis=axis, ddof=correction, keepdims=keepdims)",
        "tile": "np.tile(x, repetitions)",
        "tril": "np.tril(x, k=k)",
        "triu": "np.triu(x, k=k)",
        "unstack": "tuple(np.moveaxis(x, axis, 0))",
        "var": "np.var(x, axis=axis, ddof=correction, keepdims=keepdims)",
        "vecdot": "np.sum(np.conj(x1) * x2, axis=-1)",
        "vector_norm": "np.linalg.norm(x, axis=axis, keepdims=keepdims, ord=ord)",
    },
    names={"bool": "np.bool_", "newaxis": "None"},
    preludes={
        "logsumexp": """\
def logsumexp(x, axis=None):
    top = np.max(x, axis=axis, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=axis)) + np.squeeze(top, axis=axis)
""",
        "softmax": """\
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)
""",
    },
    modes={"eager": ""},
    array="ARRAY",
    cast="ARRAY.astype(DTYPE)",
    lacks={"bfloat16": "np.bfloat16"},
)
