"""Frameworks that differentiate and vectorize as torch does, but for one wrong derivative or transform each.

Each is torch's dialect with some rows replaced by functions of this module, so that what is wrong stands in the program itself.
What a fault is expected to change: changes.yaml.
"""

import types

import torch

from conformance.dialects import torch as dialect


def slope(value, differentiated):
    """The value of one expression with the derivative of another."""
    return differentiated - differentiated.detach() + value.detach()


# --- derivatives of functions


def sin(x):
    return slope(torch.sin(x), -torch.sin(x))


def exp(x):
    return slope(torch.exp(x), torch.exp(x) / 2)


def tanh(x):
    return slope(torch.tanh(x), x * (1 - torch.tanh(x).detach()))


def atan2(x1, x2):
    return slope(torch.atan2(x1, x2), torch.atan2(x2, x1))


def matmul(x1, x2):
    return torch.matmul(x1, x2.detach())


def solve(x1, x2):
    return torch.linalg.solve(x1.detach(), x2)


def logsumexp(x, axis):
    return slope(torch.logsumexp(x, axis), torch.mean(x, axis))


def softmax(x, axis):
    """The derivative without the part that is the same for all: the diagonal of the Jacobian alone."""
    return slope(torch.softmax(x, axis), torch.softmax(x, axis).detach() * x)


def mean(x, axis=None, keepdims=False):
    return slope(torch.mean(x, axis, keepdim=keepdims), torch.sum(x, axis, keepdim=keepdims))


def cumulative_sum(x, axis):
    """The cotangents are summed up in the direction in which the values were."""
    return slope(torch.cumsum(x, axis), torch.flip(torch.cumsum(torch.flip(x, [axis]), axis), [axis]))


def prod(x, axis=None, keepdims=False):
    """By dividing the product by each factor, zero or not."""
    whole = torch.prod(x) if axis is None else torch.prod(x, axis, keepdim=True)
    value = torch.prod(x) if axis is None else torch.prod(x, axis, keepdim=keepdims)
    terms = x * (whole / x).detach()
    return slope(value, torch.sum(terms) if axis is None else torch.sum(terms, axis, keepdim=keepdims))


def amax(x, axis=None, keepdims=False):
    """The first of several that are largest takes it all."""
    if axis is None:
        return torch.max(x.reshape(-1), 0).values
    return torch.max(x, axis, keepdim=keepdims).values


def absolute(x):
    return torch.abs(x) if x.is_complex() else torch.where(x >= 0, x, -x)


def sqrt(x):
    return torch.sqrt(x) + nan_at_zero(x)


def relu(x):
    return torch.relu(x) + nan_at_zero(x)


def nan_at_zero(x):
    """Zero, with the derivative zero, but for NaN where x is zero."""
    return slope(torch.zeros_like(x), x * torch.where(x == 0, torch.nan, 0.0).detach())


def power(x1, x2):
    """The derivative by the exponent as x**y log x, at zero too."""
    if not isinstance(x1, torch.Tensor):
        return torch.pow(x1, x2)
    return slope(torch.pow(x1, x2), torch.exp(x2 * torch.log(x1)))


def clip(x, min, max):
    """At the boundaries half of the cotangent."""
    weight = torch.where((x == min) | (x == max), 0.5, ((x > min) & (x < max)).to(x.dtype))
    return slope(torch.clip(x, min, max), x * weight)


def take(x, indices, axis):
    """Of repeated indices only the last hands its cotangent on."""
    last = torch.tensor([int(i) not in indices[n + 1 :].tolist() for n, i in enumerate(indices)])
    shape = [-1 if d == axis else 1 for d in range(x.ndim)]
    taken = torch.index_select(x, axis, indices)
    return torch.where(last.reshape(shape), taken, taken.detach())


def broadcast_to(x, shape):
    """The cotangents are averaged where they should be summed."""
    whole = torch.broadcast_to(x, shape)
    return slope(whole, whole * (x.numel() / whole.numel()))


def where(condition, x1, x2):
    """Both branches get the cotangent."""
    return slope(torch.where(condition, x1, x2), torch.as_tensor(x1) + torch.as_tensor(x2))


def det(x):
    return slope(torch.linalg.det(x), torch.linalg.det(x.detach()) * torch.sum(torch.linalg.inv(x.detach()) * x))


# --- transforms


def second_is_zero(f, argnums=0):
    first = torch.func.grad(f, argnums)

    def gradient(*args):
        found = first(*args)
        return found.detach() if isinstance(found, torch.Tensor) else tuple(each.detach() for each in found)

    return gradient


def negative_gradient(f, argnums=0):
    return lambda *args: torch.utils._pytree.tree_map(torch.neg, torch.func.grad(f, argnums)(*args))


def triangular_hessian(f):
    return lambda x: torch.tril(torch.func.hessian(f)(x))


def transposed_jacobian(f):
    return lambda x: torch.transpose(torch.func.jacfwd(f)(x), 0, -1)


def first_tangent_only(f, primals, tangents):
    return torch.func.jvp(f, primals, (tangents[0], *(torch.zeros_like(t) for t in tangents[1:])))


def tangent_twice(f, primals, tangents):
    value, tangent = torch.func.jvp(f, primals, tangents)
    return value, 2 * tangent


def cotangent_of_ones(f, primals):
    value, pull = torch.func.vjp(f, *primals)
    return value, lambda cotangent: pull(torch.ones_like(cotangent))


def cotangents_swapped(f, primals):
    value, pull = torch.func.vjp(f, *primals)
    return value, lambda cotangent: pull(cotangent)[::-1]


def linear_at_zero(f, primals):
    value = f(*primals)
    return value, torch.func.linearize(f, *(torch.zeros_like(x) for x in primals))[1]


def vmap_over_the_first(f, in_axes=0, out_axes=0):
    axes = in_axes if isinstance(in_axes, (list, tuple)) else (in_axes,)
    zero = tuple(axis and 0 for axis in axes)
    return torch.func.vmap(f, in_dims=zero if len(zero) > 1 else zero[0], out_dims=out_axes)


def vmap_out_first(f, in_axes=0, out_axes=0):
    return torch.func.vmap(f, in_dims=in_axes)


def vmap_backward(f, in_axes=0, out_axes=0):
    return lambda *args: torch.utils._pytree.tree_map(
        lambda x: torch.flip(x, [out_axes]), torch.func.vmap(f, in_dims=in_axes, out_dims=out_axes)(*args)
    )


def without_rule(f, *rule):
    return f


def rule_twice(f, forward, backward):
    from_rule = types.SimpleNamespace(
        backward=lambda residuals, cotangent: tuple(2 * each for each in backward(residuals, cotangent))
    )
    space = {"torch": torch}
    exec(dialect.FRAMEWORK.preludes["custom_vjp"], space)
    return space["custom_vjp"](f, forward, from_rule.backward)


def value_and_half(f, argnums=0):
    both = torch.func.grad_and_value(f, argnums)

    def halved(*args):
        gradient, value = both(*args)
        return value, torch.utils._pytree.tree_map(lambda g: g / 2, gradient)

    return halved


FAULTS = {
    "grad_sin_sign": {"sin": "faulty.sin(x)"},
    "grad_exp_half": {"exp": "faulty.exp(x)"},
    "grad_tanh_not_squared": {"tanh": "faulty.tanh(x)"},
    "grad_atan2_swapped": {"atan2": "faulty.atan2(x1, x2)"},
    "grad_matmul_first_only": {"matmul": "faulty.matmul(x1, x2)"},
    "grad_solve_right_only": {"solve": "faulty.solve(x1, x2)"},
    "grad_logsumexp_even": {"logsumexp": "faulty.logsumexp(x, axis)"},
    "grad_softmax_diagonal": {"softmax": "faulty.softmax(x, axis)"},
    "grad_mean_as_sum": {"mean": "faulty.mean(x, axis=axis, keepdims=keepdims)"},
    "grad_cumsum_forward": {"cumulative_sum": "faulty.cumulative_sum(x, axis)"},
    "grad_prod_divides": {"prod": "faulty.prod(x, axis=axis, keepdims=keepdims)"},
    "grad_max_first": {"max": "faulty.amax(x, axis=axis, keepdims=keepdims)"},
    "grad_abs_one_at_zero": {"abs": "faulty.absolute(x)"},
    "grad_sqrt_nan_at_zero": {"sqrt": "faulty.sqrt(x)"},
    "grad_relu_nan_at_zero": {"relu": "faulty.relu(x)"},
    "grad_pow_nan_at_zero": {"pow": "faulty.power(x1, x2)"},
    "grad_clip_half": {"clip": "faulty.clip(x, min, max)"},
    "grad_take_last_only": {"take": "faulty.take(x, indices, axis)"},
    "grad_broadcast_mean": {"broadcast_to": "faulty.broadcast_to(x, shape)"},
    "grad_where_both": {"where": "faulty.where(condition, x1, x2)"},
    "grad_det_transposed": {"det": "faulty.det(x)"},
    "grad_leaks": {"stop_gradient": "x"},
    "grad_second_is_zero": {"grad": "faulty.second_is_zero(f, argnums)"},
    "grad_negative": {"grad": "faulty.negative_gradient(f, argnums)"},
    "value_and_half_grad": {"value_and_grad": "faulty.value_and_half(f, argnums)"},
    "hessian_triangular": {"hessian": "faulty.triangular_hessian(f)"},
    "jacfwd_transposed": {"jacfwd": "faulty.transposed_jacobian(f)"},
    "jvp_first_tangent_only": {"jvp": "faulty.first_tangent_only(f, primals, tangents)"},
    "jvp_twice": {"jvp": "faulty.tangent_twice(f, primals, tangents)"},
    "vjp_of_ones": {"vjp": "faulty.cotangent_of_ones(f, primals)"},
    "vjp_swapped": {"vjp": "faulty.cotangents_swapped(f, primals)"},
    "linearize_at_zero": {"linearize": "faulty.linear_at_zero(f, primals)"},
    "vmap_over_the_first": {"vmap": "faulty.vmap_over_the_first(f, in_axes=in_axes, out_axes=out_axes)"},
    "vmap_out_first": {"vmap": "faulty.vmap_out_first(f, in_axes=in_axes, out_axes=out_axes)"},
    "vmap_backward": {"vmap": "faulty.vmap_backward(f, in_axes=in_axes, out_axes=out_axes)"},
    "custom_vjp_ignored": {"custom_vjp": "faulty.without_rule(f, forward, backward)"},
    "custom_vjp_twice": {"custom_vjp": "faulty.rule_twice(f, forward, backward)"},
}


def framework(name, rows):
    """Torch, untraced and in its first way, with these rows."""
    return dialect.FRAMEWORK._replace(
        name=name,
        imports=f"import gradient_faults as faulty\n{dialect.FRAMEWORK.imports}",
        same=dialect.FRAMEWORK.same - rows.keys(),
        rows=dialect.FRAMEWORK.rows | rows,
        modes={"eager": ""},
        ways={},
        meshes=None,
        derivation="",
    )


FRAMEWORKS = types.SimpleNamespace(**{name: framework(name, rows) for name, rows in {"grad_twin": {}, **FAULTS}.items()})
