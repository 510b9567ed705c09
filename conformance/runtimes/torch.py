"""PyTorch inside a host."""

import contextlib
import logging
import sys

import numpy as np
import torch

_device = "cpu"
_heard = []


class _Listener(logging.Handler):
    def emit(self, record):
        _heard.append(record.getMessage())


def start(device, mesh):
    global _device
    visible = ["cpu", *(name for name in ("cuda", "tpu") if hasattr(torch, name) and getattr(torch, name).is_available())]
    if device not in visible:
        said = f"torch {torch.__version__} sees no {device}, only {', '.join(visible)}"
        raise RuntimeError(f"{said}: pip install {'torch, in its build for CUDA' if device == 'cuda' else 'torch_tpu'}")
    _device = device
    torch.set_num_threads(1)
    if mesh:
        _start_mesh()


def computes_on():
    """The device of a sum that was computed where programs are."""
    with scope(False):
        return (torch.ones(2) + 1).device.type


def device_count():
    return 8 if _device == "cpu" else 1  # as many as LocalTensorMode plays; else one process has one


def scope(x64):
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()  # or Dynamo would use what it remembers of an earlier job
    # A default device is a mode that programs run under, and changes what Dynamo traces: none where none is needed.
    torch.set_default_device(None if _device == "cpu" else _device)
    torch._C._autograd._saved_tensors_hooks_enable()  # an earlier job may have failed while they were off
    return contextlib.nullcontext()


def put(array, dtype):
    return torch.tensor(array, device=_device).to(getattr(torch, dtype))


def get(value):
    if not isinstance(value, torch.Tensor):
        return None
    dtype = str(value.dtype).removeprefix("torch.")
    plain = value.detach().cpu()
    if plain._is_zerotensor():  # what autograd has for a zero, without elements
        plain = torch.zeros(plain.shape, dtype=plain.dtype)
    plain = plain.resolve_conj().resolve_neg()
    return (plain.float() if dtype == "bfloat16" else plain).numpy(), dtype


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


def _start_mesh():
    import torch.distributed as dist
    from torch.distributed._local_tensor import LocalTensorMode
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    LocalTensorMode(8).__enter__()


def place(array, dtype, mesh, split):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    grid = init_device_mesh("cpu", tuple(mesh.values()), mesh_dim_names=tuple(mesh))
    axes = [[axis] if isinstance(axis, str) else axis or [] for axis in split]
    placements = []
    for name in mesh:
        dimensions = [d for d, names in enumerate(axes) if name in names]
        placements.append(Shard(dimensions[0]) if dimensions else Replicate())
    return distribute_tensor(put(array, dtype), grid, placements)


def gather(value):
    full = value.full_tensor()
    return full.reconcile() if hasattr(full, "reconcile") else full


def layout(value):
    """Local shapes and slices per device, by the offsets that DTensor itself computes for each coordinate."""
    from torch.distributed.tensor import Shard

    sizes = list(value.device_mesh.shape)
    slices, shapes = {}, set()
    for rank in range(int(np.prod(sizes))):
        coordinate = np.unravel_index(rank, sizes)
        local = [(0, size) for size in value.shape]
        for axis, placement in enumerate(value.placements):
            if isinstance(placement, Shard):
                start, stop = local[placement.dim]
                chunk = -(-(stop - start) // sizes[axis])
                low = min(start + int(coordinate[axis]) * chunk, stop)
                local[placement.dim] = (low, min(low + chunk, stop))
        slices[str(rank)] = [f"{start}:{stop}" for start, stop in local]
        shapes.add(tuple(stop - start for start, stop in local))
    locals_ = getattr(value.to_local(), "_local_tensors", {})
    seen = {tuple(tensor.shape) for tensor in locals_.values()}
    if seen and seen != shapes:
        raise RuntimeError(f"the shards have the shapes {sorted(seen)}, not {sorted(shapes)}")
    return {"local_shape": [list(shape) for shape in sorted(shapes)], "slices": slices}
