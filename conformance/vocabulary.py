"""The names that a program may use: the Python array API standard, and transforms of functions.

Source of names and signatures: https://data-apis.org/array-api/latest/API_specification/ and, for the transforms,
https://docs.jax.dev/en/latest/jax.html#automatic-differentiation
"""

from __future__ import annotations

import ast

SIGNATURES = """
abs(x)  acos(x)  add(x1, x2)  all(x, *, axis, keepdims)  any(x, *, axis, keepdims)
arange(start, stop=None, step=None, *, dtype)  argmax(x, *, axis, keepdims)  argmin(x, *, axis, keepdims)  argsort(x, *, axis, descending)
asarray(obj, *, dtype)  asin(x)  astype(x, dtype)  atan(x)  atan2(x1, x2)  bitwise_and(x1, x2)  bitwise_invert(x)  bitwise_or(x1, x2)
bitwise_xor(x1, x2)  broadcast_to(x, shape)  ceil(x)  cholesky(x)  clip(x, min, max)  concat(arrays, *, axis)  conj(x)  cos(x)  cosh(x)
count_nonzero(x, *, axis, keepdims)  cumulative_prod(x, *, axis)  cumulative_sum(x, *, axis)  det(x)  diagonal(x)
divide(x1, x2)  eigh(x)  equal(x1, x2)  exp(x)  expand_dims(x, *, axis)  expm1(x)  eye(n_rows, n_cols=None, *, k, dtype)  flip(x, *, axis)  floor(x)  floor_divide(x1, x2)  full(shape, fill_value, *, dtype)
full_like(x, fill_value)  greater(x1, x2)  greater_equal(x1, x2)  imag(x)  inv(x)  isfinite(x)  isinf(x)  isnan(x)  less(x1, x2)  less_equal(x1, x2)
linspace(start, stop, num)  log(x)  log1p(x)  logaddexp(x1, x2)  logical_and(x1, x2)  logical_not(x)  logical_or(x1, x2)
logical_xor(x1, x2)  matmul(x1, x2)  matrix_transpose(x)  max(x, *, axis, keepdims)  maximum(x1, x2)  mean(x, *, axis, keepdims)
min(x, *, axis, keepdims)  minimum(x1, x2)  multiply(x1, x2)  negative(x)  nonzero(x)  not_equal(x1, x2)  ones(shape, *, dtype)
ones_like(x)  permute_dims(x, axes)  positive(x)  pow(x1, x2)  prod(x, *, axis, dtype, keepdims)  real(x)  remainder(x1, x2)  repeat(x, repeats, *, axis)
reshape(x, shape)  roll(x, shift, *, axis)  round(x)  sign(x)  sin(x)  sinh(x)  solve(x1, x2)  sort(x, *, axis)  sqrt(x)  square(x)  squeeze(x, axis)
stack(arrays, *, axis)  std(x, *, axis, correction, keepdims)  subtract(x1, x2)  sum(x, *, axis, dtype, keepdims)  take(x, indices, *, axis)
take_along_axis(x, indices, *, axis)  tan(x)  tanh(x)  tensordot(x1, x2, *, axes)  tile(x, repetitions)  trace(x)  tril(x, *, k)  triu(x, *, k)
trunc(x)  unstack(x, *, axis)  var(x, *, axis, correction, keepdims)  vecdot(x1, x2, *, axis)  vector_norm(x, *, axis, keepdims, ord)  where(condition, x1, x2)  zeros(shape, *, dtype)
zeros_like(x)
einsum(subscripts, operands)  logsumexp(x, *, axis)  outer(x1, x2)  relu(x)  sigmoid(x)  softmax(x, *, axis)
"""
"""Parameters before ``*`` may be passed by position, and must be given where they have no default.

The last line is not in the standard, and every framework has it.
"""

TRANSFORM_SIGNATURES = """
checkpoint(f)  custom_jvp(f, rule)  custom_vjp(f, forward, backward)  grad(f, argnums=0)  hessian(f)  hvp(f, x, v)  jacfwd(f)  jacrev(f)
jit(f)  jvp(f, primals, tangents)  linear_transpose(f, primals)  linearize(f, primals)  stop_gradient(x)
reshard(x, split)  value_and_grad(f, argnums=0)  vjp(f, primals)  vmap(f, *, in_axes, out_axes)
"""
"""As in JAX, but that primals and tangents are tuples throughout.

``jvp`` gives (value, tangent); ``vjp`` and ``linearize`` give (value, linear function), ``linear_transpose`` the linear
function; that of ``vjp`` and ``linear_transpose`` gives a tuple. ``rule(primals, tangents)`` gives (value, tangent),
``forward(...)`` gives (value, residuals), and ``backward(residuals, cotangent)`` a tuple. ``hvp`` is the product of the
Hessian at x and v. ``reshard`` lays an array out over ``mesh``: ``split`` has for each dimension the axis that splits it, a
tuple of axes, or None.
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


TRANSFORMS = frozenset(_parse(TRANSFORM_SIGNATURES))
FUNCTIONS = _parse(SIGNATURES + TRANSFORM_SIGNATURES)
NAMES = frozenset([*FUNCTIONS, *DTYPES, *CONSTANTS])
