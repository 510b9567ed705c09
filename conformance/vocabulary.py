"""The names that a program may use: the Python array API standard, and little else.

Source of names and signatures: https://data-apis.org/array-api/latest/API_specification/
"""

from __future__ import annotations

import ast

SIGNATURES = """
abs(x)  acos(x)  add(x1, x2)  all(x, *, axis, keepdims)  any(x, *, axis, keepdims)
arange(start, stop=None, step=None, *, dtype)  argmax(x, *, axis, keepdims)  argmin(x, *, axis, keepdims)  argsort(x, *, axis, descending)
asarray(obj, *, dtype)  asin(x)  astype(x, dtype)  atan(x)  atan2(x1, x2)  bitwise_and(x1, x2)  bitwise_invert(x)  bitwise_or(x1, x2)
bitwise_xor(x1, x2)  broadcast_to(x, shape)  ceil(x)  clip(x, min, max)  concat(arrays, *, axis)  cos(x)  cosh(x)
count_nonzero(x, *, axis, keepdims)  cumulative_sum(x, *, axis)  divide(x1, x2)  equal(x1, x2)  exp(x)  expand_dims(x, *, axis)
expm1(x)  eye(n_rows, n_cols=None, *, k, dtype)  flip(x, *, axis)  floor(x)  floor_divide(x1, x2)  full(shape, fill_value, *, dtype)
full_like(x, fill_value)  greater(x1, x2)  greater_equal(x1, x2)  isfinite(x)  isinf(x)  isnan(x)  less(x1, x2)  less_equal(x1, x2)
linspace(start, stop, num)  log(x)  log1p(x)  logaddexp(x1, x2)  logical_and(x1, x2)  logical_not(x)  logical_or(x1, x2)
logical_xor(x1, x2)  matmul(x1, x2)  matrix_transpose(x)  max(x, *, axis, keepdims)  maximum(x1, x2)  mean(x, *, axis, keepdims)
min(x, *, axis, keepdims)  minimum(x1, x2)  multiply(x1, x2)  negative(x)  nonzero(x)  not_equal(x1, x2)  ones(shape, *, dtype)
ones_like(x)  permute_dims(x, axes)  positive(x)  pow(x1, x2)  prod(x, *, axis, dtype, keepdims)  remainder(x1, x2)  repeat(x, repeats, *, axis)
reshape(x, shape)  roll(x, shift, *, axis)  round(x)  sign(x)  sin(x)  sinh(x)  sort(x, *, axis)  sqrt(x)  square(x)  squeeze(x, axis)
stack(arrays, *, axis)  std(x, *, axis, correction, keepdims)  subtract(x1, x2)  sum(x, *, axis, dtype, keepdims)  take(x, indices, *, axis)
take_along_axis(x, indices, *, axis)  tan(x)  tanh(x)  tensordot(x1, x2, *, axes)  tile(x, repetitions)  tril(x, *, k)  triu(x, *, k)
trunc(x)  unstack(x, *, axis)  var(x, *, axis, correction, keepdims)  vecdot(x1, x2, *, axis)  where(condition, x1, x2)  zeros(shape, *, dtype)
zeros_like(x)
einsum(subscripts, operands)  outer(x1, x2)  softmax(x, *, axis)
"""
"""Parameters before ``*`` may be passed by position, and must be given where they have no default.

The last line is not in the standard, and every framework has it.
"""

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128".split()
CONSTANTS = ["inf", "nan", "pi", "newaxis"]
BUILTINS = frozenset("range len int float tuple list dict enumerate zip print isinstance True False None".split())
ATTRIBUTES = frozenset(["shape", "dtype", "ndim", "T", "mT"])


def _parse(text: str) -> dict[str, ast.arguments]:
    table = {}
    for signature in text.replace(")  ", ")\n").split("\n"):
        if signature:
            function = ast.parse(f"def {signature}: ...").body[0]
            assert isinstance(function, ast.FunctionDef)
            table[function.name] = function.args
    return table


FUNCTIONS = _parse(SIGNATURES)
NAMES = frozenset([*FUNCTIONS, *DTYPES, *CONSTANTS])
