"""PyTorch: https://docs.pytorch.org/docs/stable/torch.html"""

from conformance.framework import Counting, Framework, Meshes

FRAMEWORK = Framework(
    name="torch",
    distributions=("torch",),
    runtime="conformance.runtimes.torch",
    module="torch",
    imports="import numpy as np\nimport torch",
    same=frozenset(
        """
        abs acos add asin atan atan2 bitwise_and bitwise_or bitwise_xor ceil conj cos cosh det diagonal divide exp expm1 floor floor_divide
        full full_like greater greater_equal imag isfinite isinf isnan less less_equal linspace log log1p logaddexp logical_and logical_not
        logical_or logical_xor matmul maximum minimum multiply negative not_equal ones ones_like outer positive pow real relu
        remainder round sigmoid sign sin sinh sqrt square subtract tan tanh trace trunc zeros zeros_like
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
        "checkpoint": "checkpoint(f)",
        "cholesky": "torch.linalg.cholesky(x)",
        "clip": "torch.clip(x, min, max)",
        "concat": "torch.cat(arrays, dim=axis)",
        "count_nonzero": "torch.count_nonzero(x, dim=axis)",
        "cumulative_prod": "torch.cumprod(x, dim=axis)",
        "cumulative_sum": "torch.cumsum(x, dim=axis)",
        "custom_jvp": "custom_jvp(f, rule)",
        "custom_vjp": "custom_vjp(f, forward, backward)",
        "eigh": "tuple(torch.linalg.eigh(x))",
        "einsum": "torch.einsum(subscripts, *operands)",
        "equal": "torch.eq(x1, x2)",
        "expand_dims": "torch.unsqueeze(x, dim=axis)",
        "eye": "torch.eye(n_rows, n_cols, dtype=dtype)",
        "flip": "torch.flip(x, dims=[axis])",
        "grad": "torch.func.grad(f, argnums)",
        "hessian": "torch.func.hessian(f)",
        "hvp": "torch.func.jvp(torch.func.grad(f), (x,), (v,))[1]",
        "inv": "torch.linalg.inv(x)",
        "jacfwd": "torch.func.jacfwd(f)",
        "jacrev": "torch.func.jacrev(f)",
        "jit": "torch.compile(f, backend='aot_eager')",
        "jvp": "torch.func.jvp(f, primals, tangents)",
        "linearize": "torch.func.linearize(f, *primals)",
        "logsumexp": "torch.logsumexp(x, dim=axis)",
        "matrix_transpose": "torch.transpose(x, -1, -2)",
        "max": "torch.amax(x, dim=axis, keepdim=keepdims)",
        "mean": "torch.mean(x, dim=axis, keepdim=keepdims)",
        "min": "torch.amin(x, dim=axis, keepdim=keepdims)",
        "nonzero": "torch.nonzero(x, as_tuple=True)",
        "permute_dims": "torch.permute(x, axes)",
        "prod": "torch.prod(x, dim=axis, keepdim=keepdims, dtype=dtype)",
        "repeat": "torch.repeat_interleave(x, repeats, dim=axis)",
        "reshape": "torch.reshape(x, shape)",
        "reshard": "x.redistribute(mesh, placements(split))",
        "roll": "torch.roll(x, shift, dims=axis)",
        "softmax": "torch.softmax(x, dim=axis)",
        "solve": "torch.linalg.solve(x1, x2)",
        "sort": "torch.sort(x, dim=axis).values",
        "squeeze": "torch.squeeze(x, dim=axis)",
        "stack": "torch.stack(arrays, dim=axis)",
        "std": "torch.std(x, dim=axis, correction=correction, keepdim=keepdims)",
        "stop_gradient": "x.detach()",
        "sum": "torch.sum(x, dim=axis, keepdim=keepdims, dtype=dtype)",
        "take": "torch.index_select(x, axis, indices)",
        "take_along_axis": "torch.take_along_dim(x, indices, dim=axis)",
        "tensordot": "torch.tensordot(x1, x2, dims=axes)",
        "tile": "torch.tile(x, repetitions)",
        "tril": "torch.tril(x, diagonal=k)",
        "triu": "torch.triu(x, diagonal=k)",
        "unstack": "torch.unbind(x, dim=axis)",
        "value_and_grad": "value_and_grad(f, argnums)",
        "var": "torch.var(x, dim=axis, correction=correction, keepdim=keepdims)",
        "vecdot": "torch.linalg.vecdot(x1, x2, dim=axis)",
        "vector_norm": "torch.linalg.vector_norm(x, dim=axis, keepdim=keepdims, ord=ord)",
        "vjp": "torch.func.vjp(f, *primals)",
        "vmap": "torch.func.vmap(f, in_dims=in_axes, out_dims=out_axes)",
        "where": "torch.where(condition, x1, x2)",
    },
    names={"newaxis": "None"},
    preludes={
        "checkpoint": """\
def checkpoint(f):
    import torch.utils.checkpoint

    return lambda *args: torch.utils.checkpoint.checkpoint(f, *args, use_reentrant=False)
""",
        "custom_jvp": """\
def custom_jvp(f, rule):
    class Custom(torch.autograd.Function):
        @staticmethod
        def forward(*args):
            return f(*args)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx, *tangents):
            return rule(ctx.saved_tensors, tangents)[1]

    return Custom.apply
""",
        "custom_vjp": """\
def custom_vjp(f, forward, backward):
    class Custom(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*args):
            return f(*args)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, cotangent):
            _, residuals = forward(*ctx.saved_tensors)
            return tuple(backward(residuals, cotangent))

    return Custom.apply
""",
        "placements": """\
def placements(split, partial={}):
    found = {name: Partial(partial[name]) if name in partial else Replicate() for name in mesh.mesh_dim_names}
    for dimension, axes in enumerate(split):
        for name in [axes] if isinstance(axes, str) else axes or ():
            found[name] = Shard(dimension)
    return list(found.values())
""",
        "value_and_grad": """\
def value_and_grad(f, argnums=0):
    both = torch.func.grad_and_value(f, argnums)
    return lambda *args: both(*args)[::-1]
""",
        "tape_grad": """\
def tape_grad(f, argnums=0):
    both = tape_value_and_grad(f, argnums)
    return lambda *args: both(*args)[1]
""",
        "tape_hessian": """\
def tape_hessian(f):
    return lambda x: torch.autograd.functional.hessian(f, x, create_graph=True)
""",
        "tape_hvp": """\
def tape_hvp(f, x, v):
    return torch.autograd.functional.hvp(f, x, v)[1]
""",
        "tape_jacobian": """\
def tape_jacobian(f):
    return lambda x: torch.autograd.functional.jacobian(f, x, create_graph=True)
""",
        "tape_jvp": """\
def tape_jvp(f, primals, tangents):
    with torch.autograd.forward_ad.dual_level():
        duals = [torch.autograd.forward_ad.make_dual(x, t) for x, t in zip(primals, tangents)]
        return tuple(torch.autograd.forward_ad.unpack_dual(f(*duals)))
""",
        "tape_leaves": """\
def tape_leaves(args):
    return [x if x.requires_grad else x.detach().requires_grad_() for x in args]
""",
        "tape_value_and_grad": """\
def tape_value_and_grad(f, argnums=0):
    def both(*args):
        indices = [argnums] if isinstance(argnums, int) else argnums
        leaves = tape_leaves([args[i] for i in indices])
        inputs = [leaves[indices.index(i)] if i in indices else x for i, x in enumerate(args)]
        value = f(*inputs)
        gradients = torch.autograd.grad(value, leaves, create_graph=True)
        return value, gradients[0] if isinstance(argnums, int) else gradients

    return both
""",
        "tape_vjp": """\
def tape_vjp(f, primals):
    leaves = tape_leaves(primals)
    value = f(*leaves)
    return value, lambda cotangent: torch.autograd.grad(value, leaves, cotangent, create_graph=True)
""",
    },
    ways={
        "tape": {
            "grad": "tape_grad(f, argnums)",
            "hessian": "tape_hessian(f)",
            "hvp": "tape_hvp(f, x, v)",
            "jacrev": "tape_jacobian(f)",
            "jvp": "tape_jvp(f, primals, tangents)",
            "value_and_grad": "tape_value_and_grad(f, argnums)",
            "vjp": "tape_vjp(f, primals)",
        }
    },
    lacks={"linear_transpose": "torch.func.linear_transpose"},
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
    meshes=Meshes(
        modes=("eager",),  # torch.compile of eight ranks in one process fails now and then
        imports="""\
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor""",
        before="",
        after="""\
from torch.distributed._local_tensor import LocalTensorMode, rank_map
from torch.testing._internal.distributed.fake_pg import FakeStore

torch.distributed.init_process_group('fake', store=FakeStore(), rank=0, world_size=8)
LocalTensorMode(8).__enter__()  # eight ranks in this process""",
        mesh="mesh = DeviceMesh('cpu', torch.tensor(ORDER).reshape(SIZES), mesh_dim_names=NAMES)",
        place="distribute_tensor(rank_map(lambda rank: ARRAY), mesh, placements([SPLIT], {PARTIAL}))",
        shown="RESULT.placements, RESULT.to_local()",
        communication="""\
from torch.distributed.tensor.debug import CommDebugMode

with CommDebugMode() as seen:
    CALL
print(seen.get_comm_counts())""",
    ),
    derivation="""\
from torch.fx.experimental.proxy_tensor import make_fx

value, linear = torch.func.linearize(FUNCTION, ARGUMENTS)
linear(ARGUMENTS)  # its constants are folded at the first call
graph = make_fx(linear)(ARGUMENTS)
graph.graph.eliminate_dead_code()
print(graph.code)
print(torch.func.vjp(FUNCTION, ARGUMENTS)[1](torch.ones_like(value)))
""",
    devices=("cpu", "cuda", "tpu"),
)
