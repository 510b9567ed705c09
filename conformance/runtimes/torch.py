"""PyTorch inside a host."""

import contextlib
import functools
import logging
import sys

import numpy as np
import torch

_device = "cpu"
_ranks = False
"""Whether this process is eight ranks."""
_heard = []


class _Listener(logging.Handler):
    def emit(self, record):
        _heard.append(record.getMessage())


def start(device, several):
    global _device
    visible = ["cpu", *(name for name in ("cuda", "tpu") if hasattr(torch, name) and getattr(torch, name).is_available())]
    if device not in visible:
        said = f"torch {torch.__version__} sees no {device}, only {', '.join(visible)}"
        raise RuntimeError(f"{said}: pip install {'torch, in its build for CUDA' if device == 'cuda' else 'torch_tpu'}")
    _device = device
    torch.set_num_threads(1)
    if several and device == "cpu":
        _start_ranks()


def computes_on():
    """The device of a sum that was computed where programs are."""
    with scope(False):
        return (torch.ones(2) + 1).device.type


def scope(x64):
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()  # or Dynamo would use what it remembers of an earlier job
    # A default device is a mode that programs run under, and changes what Dynamo traces: none where none is needed.
    torch.set_default_device(None if _device == "cpu" else _device)
    torch._C._autograd._saved_tensors_hooks_enable()  # an earlier job may have failed while they were off
    return contextlib.nullcontext()


def put(array, dtype):
    tensor = torch.tensor(array, device=_device).to(getattr(torch, dtype))
    return _on_each_rank(tensor) if _ranks else tensor


def get(value):
    if not isinstance(value, torch.Tensor):
        return None
    if hasattr(value, "_local_tensors"):
        return _of_ranks(value)
    dtype = _name(value)
    plain = value.detach().cpu()
    if plain._is_zerotensor():  # what autograd has for a zero, without elements
        plain = torch.zeros(plain.shape, dtype=plain.dtype)
    plain = plain.resolve_conj().resolve_neg()
    return (plain.float() if dtype == "bfloat16" else plain).numpy(), dtype


def _name(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def _of_ranks(value):
    """What all ranks hold alike; or, stacked, what each of them holds."""
    arrays = [get(tensor)[0] for _, tensor in sorted(value._local_tensors.items())]
    alike = all(array.tobytes() == arrays[0].tobytes() for array in arrays)
    return (arrays[0] if alike else np.stack(arrays)), _name(value)


def wrap(function, mode, options, counter):
    if mode == "inductor":
        return torch.compile(function, **options)
    backend = counter.backend if counter else "aot_eager"
    return torch.compile(function, backend=backend, **options)


def forget():
    _heard.clear()
    torch._logging.set_logs(recompiles=True)
    logger = logging.getLogger("torch._dynamo.guards.__recompiles")
    if not any(isinstance(handler, _Listener) for handler in logger.handlers):
        logger.addHandler(_Listener())
    # Past the limit Dynamo runs the frame uncompiled and says nothing: nothing would be counted any more.
    for name in ("recompile_limit", "cache_size_limit"):
        if hasattr(torch._dynamo.config, name):
            setattr(torch._dynamo.config, name, 64)


class Counter:
    """Traces are cache entries for the function's own code; graphs are calls of the backend compiler."""

    def __init__(self, function):
        self.function = function
        self.code = function.__code__
        self.graphs = 0

    def backend(self, graph, example_inputs):
        self.graphs += 1
        from torch._dynamo.backends.debugging import aot_eager

        return aot_eager(graph, example_inputs)

    def read(self):
        from torch._dynamo.eval_frame import _debug_get_cache_entry_list

        return {"traces": len(_debug_get_cache_entry_list(self.code)), "graphs": self.graphs}

    def reasons(self):
        """What Dynamo has said since it was last asked about recompiles of the function: which guards failed."""
        said = [text.splitlines()[2:] for text in _heard if text.startswith(f"Recompiling function {self.code.co_name} ")]
        _heard.clear()
        return ["\n".join(line.strip() for line in lines) for lines in said]


def derive(function, point):
    """The graph of torch.func.linearize, and each cotangent as the tape plays that graph backward."""
    from torch.fx.experimental.proxy_tensor import make_fx

    names, primals = list(point), tuple(point.values())
    value, linear = torch.func.linearize(function, *primals)
    linear(*primals)  # its constants are folded at the first call
    graph = make_fx(linear)(*primals)
    graph.graph.eliminate_dead_code()
    tangents = {f"{name}t": torch.zeros_like(value, requires_grad=True) for name in names}
    program, steps, result = _play(graph, tangents)
    if result:
        steps[result].backward(torch.ones_like(value))
    cotangents = {name: float(step.grad) for name, step in steps.items() if step.grad is not None}
    gradients = torch.func.vjp(function, *primals)[1](torch.ones_like(value))
    return {"linear": program, "result": result, "cotangents": cotangents, "value": dict(zip(names, map(float, gradients)))}


def _play(graph, tangents):
    """Run a linear graph on named tangents: its steps as a program, what each of them gave, and the name of the result."""
    program, steps, said, values = [], dict(tangents), {}, {}
    names = iter(tangents)
    *nodes, output = graph.graph.nodes
    for node in nodes:
        if node.op == "placeholder":
            said[node] = next(names)
            values[node] = tangents[said[node]]
        elif node.op == "get_attr":
            values[node] = getattr(graph, node.target).detach()
        else:
            values[node] = node.target(*torch.fx.node.map_arg(node.args, values.get), **node.kwargs)
            operation = node.target.__name__.partition(".")[0]
            if node.args[0] in said and operation in ("alias", "expand", "_to_copy", "view"):
                said[node] = said[node.args[0]]  # nothing happens to a scalar here
            elif any(argument in said for argument in node.args):
                said[node] = f"v{len(program)}"
                values[node].retain_grad()
                steps[said[node]] = values[node]
                program.append([said[node], operation, [said.get(a) or float(values.get(a, a)) for a in node.args]])
    return program, steps, said.get(output.args[0], "")


def _start_ranks():
    """Eight ranks in this process: each operation runs once for each of them, on its own local tensor."""
    global _ranks
    _ranks = True
    import torch.distributed as dist
    from torch.distributed._local_tensor import LocalTensorMode
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    LocalTensorMode(8).__enter__()


def _on_each_rank(tensor):
    """Collectives between the ranks work on tensors that each of them has."""
    from torch.distributed._local_tensor import rank_map

    return rank_map(lambda rank: tensor.clone())


def devices():
    return torch.distributed.get_world_size() if _ranks else 1


def mesh(axes, order):
    return _mesh(tuple(axes.items()), tuple(order))


@functools.lru_cache(maxsize=None)
def _mesh(axes, order):
    """One for all that ask for it: making one takes longer than most checks."""
    from torch.distributed.device_mesh import DeviceMesh

    names, sizes = zip(*axes)
    return DeviceMesh("cpu", torch.tensor(order).reshape(sizes), mesh_dim_names=names)


def place(array, dtype, mesh, split, partial):
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

    placements = {name: Partial(partial[name]) if name in partial else Replicate() for name in mesh.mesh_dim_names}
    for dimension, axes in enumerate(split):
        for name in [axes] if isinstance(axes, str) else axes or ():
            placements[name] = Shard(dimension)
    return distribute_tensor(put(array, dtype), mesh, list(placements.values()))


def layout(value):
    """What DTensor says of its placements, and the local tensor of each rank."""
    if "torch.distributed.tensor" not in sys.modules:
        return None
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

    if not isinstance(value, DTensor):
        return None
    axes = dict(zip(value.device_mesh.mesh_dim_names or (), value.device_mesh.shape))
    split = [[] for _ in value.shape]
    partial = {}
    for name, placement in zip(axes, value.placements):
        if isinstance(placement, Shard):
            split[placement.dim].append(name)
        elif isinstance(placement, Partial):
            partial[name] = placement.reduce_op
        elif not isinstance(placement, Replicate):
            raise RuntimeError(f"{placement} is no slice of the tensor")
    local = value.to_local()
    of_rank = getattr(local, "_local_tensors", None) or dict.fromkeys(range(value.device_mesh.size()), local)
    shards = []
    for place in np.ndindex(*value.device_mesh.shape):
        rank = int(value.device_mesh.mesh[place])
        part = tuple(index for index, name in zip(place, axes) if name in partial)
        shards.append((rank, _bounds(value, place), part, get(of_rank[rank])[0]))
    return {
        "axes": axes,
        "split": split,
        "partial": partial,
        "shape": tuple(value.shape),
        "shards": shards,
        "dtype": _name(value),
    }


def _bounds(value, place):
    """The slice of a rank, where every axis in turn cuts what it is given into pieces of the same size, the last ones smaller."""
    from torch.distributed.tensor import Shard

    bounds = [(0, size) for size in value.shape]
    for index, count, placement in zip(place, value.device_mesh.shape, value.placements):
        if isinstance(placement, Shard):
            start, stop = bounds[placement.dim]
            piece = -(-(stop - start) // count)
            low = min(start + index * piece, stop)
            bounds[placement.dim] = (low, min(low + piece, stop))
    return bounds


@contextlib.contextmanager
def collectives():
    """The collectives that run meanwhile, by torch's own count of them."""
    from torch.distributed.tensor.debug import CommDebugMode

    seen = []
    with CommDebugMode() as counted:
        yield seen
    seen += [_COLLECTIVES[name.__name__] for name in counted.get_comm_counts()]


_COLLECTIVES = {
    "shard_dim_alltoall": "all-to-all",
    "all_gather_into_tensor": "all-gather",
    "all_reduce": "all-reduce",
    "all_to_all_single": "all-to-all",
    "reduce_scatter_tensor": "reduce-scatter",
}
