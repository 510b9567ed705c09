"""PyTorch: https://docs.pytorch.org/docs/stable/torch.html"""

from conformance.framework import Counting, Framework

FRAMEWORK = Framework(
    name="torch",
    distributions=("torch",),
    runtime="conformance.runtimes.torch",
    module="torch",
    imports="import numpy as np\nimport torch",
    same=frozenset(
        """
        abs acos add asin atan atan2 bitwise_and bitwise_or bitwise_xor ceil cos cosh divide exp expm1 floor floor_divide
        full full_like greater greater_equal isfinite isinf isnan less less_equal linspace log log1p logaddexp logical_and logical_not
        logical_or logical_xor matmul maximum minimum multiply negative not_equal ones ones_like outer positive pow remainder round sign
        sin sinh sqrt square subtract tan tanh trunc zeros zeros_like
        """.split()
    ),
    rows={
        "all": "torch.all(x, dim=axis, keepdim=keepdims)",
        "any": "torch.any(x, dim=axis, keepdim=keepdims)",
        "arange": "torch.arange(start, stop, step, dtype=dtype)",
        "argmax": "torch.argmax(x, dim=axis, keepdim=keepdims)",
        "argmin": "torch.argmin(x, dim=axis, keepdim=keepdims)",
        "argsort": "torch.argsort(x, dim=axis, descending=descending, stable=True)",
        "asarray": "torch.asarray(obj, dtype=dtype)",
        "astype": "x.to(dtype)",
        "bitwise_invert": "torch.bitwise_not(x)",
        "broadcast_to": "torch.broadcast_to(x, shape)",
        "clip": "torch.clip(x, min, max)",
        "concat": "torch.cat(arrays, dim=axis)",
        "count_nonzero": "torch.count_nonzero(x, dim=axis)",
        "cumulative_sum": "torch.cumsum(x, dim=axis)",
        "einsum": "torch.einsum(subscripts, *operands)",
        "equal": "torch.eq(x1, x2)",
        "expand_dims": "torch.unsqueeze(x, dim=axis)",
        "eye": "torch.eye(n_rows, n_cols, dtype=dtype)",
        "flip": "torch.flip(x, dims=[axis])",
        "matrix_transpose": "torch.transpose(x, -1, -2)",
        "max": "torch.amax(x, dim=axis, keepdim=keepdims)",
        "mean": "torch.mean(x, dim=axis, keepdim=keepdims)",
        "min": "torch.amin(x, dim=axis, keepdim=keepdims)",
        "nonzero": "torch.nonzero(x, as_tuple=True)",
        "permute_dims": "torch.permute(x, axes)",
        "prod": "torch.prod(x, dim=axis, keepdim=keepdims, dtype=dtype)",
        "repeat": "torch.repeat_interleave(x, repeats, dim=axis)",
        "reshape": "torch.reshape(x, shape)",
        "roll": "torch.roll(x, shift, dims=axis)",
        "softmax": "torch.softmax(x, dim=axis)",
        "sort": "torch.sort(x, dim=axis).values",
        "squeeze": "torch.squeeze(x, dim=axis)",
        "stack": "torch.stack(arrays, dim=axis)",
        "std": "torch.std(x, dim=axis, correction=correction, keepdim=keepdims)",
        "sum": "torch.sum(x, dim=axis, keepdim=keepdims, dtype=dtype)",
        "take": "torch.index_select(x, axis, indices)",
        "take_along_axis": "torch.take_along_dim(x, indices, dim=axis)",
        "tensordot": "torch.tensordot(x1, x2, dims=axes)",
        "tile": "torch.tile(x, repetitions)",
        "tril": "torch.tril(x, diagonal=k)",
        "triu": "torch.triu(x, diagonal=k)",
        "unstack": "torch.unbind(x, dim=axis)",
        "var": "torch.var(x, dim=axis, correction=correction, keepdim=keepdims)",
        "vecdot": "torch.linalg.vecdot(x1, x2, dim=axis)",
        "where": "torch.where(condition, x1, x2)",
    },
    names={"newaxis": "None"},
    preludes={},
    modes={
        "eager": "",
        "compiled": "torch.compile(FUNCTION, backend='aot_eager', OPTIONS)",
        "inductor": "torch.compile(FUNCTION, OPTIONS)",
    },
    array="torch.asarray(ARRAY, copy=True)",
    cast="torch.asarray(ARRAY, copy=True).to(DTYPE)",
    counting=Counting(
        before="""\
graphs = 0


def counting_backend(graph, example_inputs):
    global graphs
    graphs += 1
    return graph.forward
""",
        function="FUNCTION",
        swap=("'aot_eager'", "counting_backend"),
        read="{'graphs': graphs}",
    ),
    meshes=True,
    derivation="""\
value, pull = torch.func.vjp(FUNCTION, ARGUMENTS)
print(pull(torch.ones_like(value)))
""",
    devices=("cpu", "cuda"),
)
