"""JAX inside a host."""

import collections
import contextlib
import functools
import os

import numpy as np

_events = collections.Counter()


def start(device, mesh):
    global jax, jnp
    if mesh:
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    import jax
    import jax.monitoring
    import jax.numpy as jnp

    platform = {"cuda": "gpu"}.get(device, device)
    visible = sorted({d.platform for d in jax.devices()})
    if platform not in visible:
        raise RuntimeError(f"jax {jax.__version__} sees no {device}; it has: {', '.join(visible)}")
    jax.monitoring.register_event_duration_secs_listener(lambda name, seconds, **_: _events.update([name]))
    jax.monitoring.register_event_listener(lambda name, **_: _events.update([name]))


@contextlib.contextmanager
def scope(x64):
    if x64:
        jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        if x64:
            jax.config.update("jax_enable_x64", False)


def put(array, dtype):
    # jnp.array copies; device_put of an aligned buffer would share its memory.
    return jnp.array(array, dtype=dtype)


def get(value):
    if not isinstance(value, jax.Array):
        return None
    dtype = str(value.dtype)
    array = np.asarray(value)
    return (array.astype(np.float32) if dtype == "bfloat16" else array), dtype


def wrap(function, mode, options, counter):
    return jax.jit(function, **options)


def forget():
    jax.clear_caches()


class Counter:
    """Traces are runs of the body, which jit runs only to trace; compiles are XLA's, hits of a disk cache aside."""

    def __init__(self, function):
        self.traces = 0

        @functools.wraps(function)
        def marked(*args, **kwargs):
            self.traces += 1
            return function(*args, **kwargs)

        self.function = marked

    def read(self):
        built = _events["/jax/core/compile/backend_compile_duration"] - _events["/jax/compilation_cache/cache_hits"]
        return {"traces": self.traces, "compiles": built}


def derive(function, point):
    """The linear jaxpr of jvp, and each cotangent as JAX's own transpose rules run it backward."""
    from jax.interpreters import ad

    names, primals = list(point), tuple(point.values())
    _, linear = jax.linearize(function, *primals)
    closed = jax.make_jaxpr(linear)(*primals)
    jaxpr, consts = _inlined(closed)
    said = {var: f"{name}t" for var, name in zip(jaxpr.invars, names)}
    values = dict(zip(jaxpr.constvars, consts))
    program = []
    for equation in jaxpr.eqns:
        operands = [_operand(v, said, values) for v in equation.invars]
        (out,) = equation.outvars
        said[out] = f"v{len(program)}"
        program.append([said[out], equation.primitive.name, operands])
    cotangents = _transpose(jaxpr, values, said, ad)
    gradients = {name: cotangents[f"{name}t"] for name in names}
    return {"linear": program, "result": said[jaxpr.outvars[0]], "cotangents": cotangents, "value": gradients}


def _inlined(closed):
    """The jaxpr with the calls that linearize leaves in it taken apart."""
    while any(e.primitive.name in ("pjit", "jit") for e in closed.jaxpr.eqns):
        if len(closed.jaxpr.eqns) != 1:
            raise RuntimeError("a nested call in the linear program is not taken apart yet")
        closed = closed.jaxpr.eqns[0].params["jaxpr"]
    return closed.jaxpr, closed.consts


def _operand(variable, said, values):
    if hasattr(variable, "val"):
        return float(variable.val)
    return said[variable] if variable in said else float(values[variable])


def _transpose(jaxpr, values, said, ad):
    (result,) = jaxpr.outvars
    cotangents = {result: jnp.ones(result.aval.shape, result.aval.dtype)}
    for equation in reversed(jaxpr.eqns):
        (out,) = equation.outvars
        if out not in cotangents:
            continue
        linear = [v for v in equation.invars if not hasattr(v, "val") and v in said]
        arguments = [
            ad.UndefinedPrimal(v.aval) if v in linear else (v.val if hasattr(v, "val") else values[v]) for v in equation.invars
        ]
        rule = ad.primitive_transposes[equation.primitive]
        for variable, cotangent in zip(equation.invars, rule(cotangents[out], *arguments, **equation.params)):
            if cotangent is not None and variable in linear:
                cotangents[variable] = cotangents[variable] + cotangent if variable in cotangents else cotangent
    return {said[v]: float(c) for v, c in cotangents.items()}


def place(array, dtype, mesh, split):
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    sizes = tuple(mesh.values())
    grid = Mesh(np.array(jax.devices()[: int(np.prod(sizes))]).reshape(sizes), tuple(mesh))
    spec = PartitionSpec(*(tuple(axis) if isinstance(axis, list) else axis for axis in split))
    return jax.device_put(put(array, dtype), NamedSharding(grid, spec))


def gather(value):
    return value  # NumPy gathers it


def layout(value):
    slices, shapes = {}, set()
    for shard in value.addressable_shards:
        bounds = [i.indices(size)[:2] for i, size in zip(shard.index, value.shape)]
        slices[str(shard.device.id)] = [f"{start}:{stop}" for start, stop in bounds]
        shapes.add(tuple(shard.data.shape))
    return {"local_shape": [list(shape) for shape in sorted(shapes)], "slices": slices}
