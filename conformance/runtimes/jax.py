"""JAX inside a host."""

import collections
import contextlib
import functools
import itertools
import logging
import os
import re

import numpy as np

_compiled = collections.Counter()
"""Executables that XLA has built, by the name of the function; older versions give no name."""
_heard = []
_chips = []
"""Those of a topology, where programs are compiled for it and nothing runs."""


class _Listener(logging.Handler):
    def emit(self, record):
        _heard.append(record.getMessage())


def start(device, several):
    global jax, jnp
    if several:
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # other hosts compute on the device, too
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "true")  # as long as it only compiles, it locks nothing
    import jax
    import jax.monitoring
    import jax.numpy as jnp

    if device == "cpu" or "-" in device:
        jax.config.update("jax_platforms", "cpu")  # or arrays would be on whatever else there is
    visible = sorted({{"gpu": "cuda"}.get(d.platform, d.platform) for d in jax.devices()})
    if "-" in device:
        _chips[:] = _topology(device)
    elif device not in visible:
        said = f"jax {jax.__version__} sees no {device}, only {', '.join(visible)}: pip install 'jax[{_EXTRA[device]}]'"
        raise RuntimeError(f"{said}{_WITHOUT.get(device, '')}")
    jax.config.update("jax_enable_compilation_cache", False)  # what is found on disk would count as built
    jax.monitoring.register_event_duration_secs_listener(_compiles)
    logging.getLogger("jax").addHandler(_Listener())


_EXTRA = {"cuda": "cuda13", "tpu": "tpu"}
_WITHOUT = {"tpu": "; where there is no TPU, --device tpu-v5e-2x4 compiles for one, and runs nothing"}


def _topology(device):
    """The chips that ``tpu-v5e-2x4`` names, as libtpu describes them."""
    from jax.experimental import topologies

    _, generation, shape = device.split("-")
    name = f"{generation if generation.startswith('v') else 'tpu' + generation}:{shape}"
    sizes = [int(size) for size in shape.split("x")]
    alone = {"chips_per_host_bounds": [1, 1, 1]} if sizes == [1, 1] else {}
    try:
        return topologies.get_topology_desc(platform="tpu", topology_name=name, **alone).devices
    except Exception as error:  # whatever libtpu, or its absence, makes of it
        why = str(error).strip().splitlines()[-1]
        raise RuntimeError(
            f"jax {jax.__version__} cannot compile for {device}: {why} (it needs libtpu: pip install 'jax[tpu]')"
        ) from None


def computes_on():
    """The device of a sum that was computed where arrays are by default."""
    (device,) = (jnp.ones(2) + 1).devices()
    return {"gpu": "cuda"}.get(device.platform, device.platform)


def _compiles(event, seconds, fun_name="", **_):
    if event == "/jax/core/compile/backend_compile_duration":
        _compiled[fun_name] += 1


@contextlib.contextmanager
def scope(x64):
    if x64:
        jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        if x64:
            jax.config.update("jax_enable_x64", False)
        if jax.config.jax_explain_cache_misses:
            jax.config.update("jax_explain_cache_misses", False)


def put(array, dtype):
    # jnp.array copies; device_put of an aligned buffer would share its memory.
    made = jnp.array(array, dtype=dtype)
    return jax.ShapeDtypeStruct(made.shape, made.dtype) if _chips else made


def get(value):
    if not isinstance(value, jax.Array):
        return None
    dtype = str(value.dtype)
    array = np.asarray(value)
    return (array.astype(np.float32) if dtype == "bfloat16" else array), dtype


def wrap(function, mode, options, counter):
    if mode == "aot":
        return functools.partial(_compile, function, options)
    return jax.jit(function, **options)


def _compile(function, options, *arguments):
    """What is known of a function that is compiled for a topology, and not run."""
    placed = any(getattr(argument, "sharding", None) for argument in jax.tree.leaves(arguments))
    where = {} if placed else {"out_shardings": jax.sharding.SingleDeviceSharding(_chips[0])}
    lowered = jax.jit(function, **where, **options).lower(*arguments)
    compiled = lowered.compile()
    shardings = jax.tree.leaves((compiled.input_shardings, compiled.output_shardings))
    if any(device.platform != "tpu" for sharding in shardings for device in sharding.device_set):
        raise AssertionError("the program was compiled for something else than the topology")
    text, memory = compiled.as_text(), compiled.memory_analysis()
    sizes = {name: getattr(memory, f"{short}_size_in_bytes") for name, short in _MEMORY.items()}
    seen = {"results": [_abstract(lowered.out_info)], "compiled": {"entry": _head(text), "memory": sizes}}
    if placed:
        seen["collectives"] = sorted(set(re.findall(_COLLECTIVE, text)))
        if isinstance(compiled.output_shardings, jax.sharding.NamedSharding):
            seen["layout"] = _layout(compiled.output_shardings, lowered.out_info.shape)
    return seen


_MEMORY = {"argument": "argument", "output": "output", "temporary": "temp", "alias": "alias"}


def _layout(sharding, shape):
    """A layout as a host describes it, of a result that there is not."""
    axes = [[axis] if isinstance(axis, str) else list(axis or ()) for axis in sharding.spec]
    axes += [[]] * (len(shape) - len(axes))
    slices = {
        str(device.id): ["{}:{}".format(*part.indices(size)[:2]) for part, size in zip(index, shape)]
        for device, index in sharding.devices_indices_map(shape).items()
    }
    return {
        "axes": dict(sharding.mesh.shape),
        "split": [names[0] if len(names) == 1 else names or None for names in axes],
        "partial": {},
        "local_shape": [list(sharding.shard_shape(shape))],
        "slices": dict(sorted(slices.items(), key=lambda pair: int(pair[0]))),
    }


def _abstract(tree):
    """Shapes and dtypes, as a host writes results."""
    if isinstance(tree, (list, tuple)):
        return [_abstract(child) for child in tree]
    if isinstance(tree, dict):
        return {"dict": {str(key): _abstract(child) for key, child in tree.items()}}
    leaves = jax.tree.leaves(tree)
    if leaves != [tree]:
        return [_abstract(leaf) for leaf in leaves]
    return {"dtype": str(tree.dtype), "shape": list(tree.shape)}


def _head(text):
    """What a module takes and gives and how that lies in memory, and which result takes the place of which argument."""
    head = text.partition("\n")[0]
    found = [re.search(rf"{name}={{.*?}}(?=, \w+=|$)", head) for name in ("input_output_alias", "entry_computation_layout")]
    return ", ".join(part[0] for part in found if part)


def forget():
    _heard.clear()
    jax.clear_caches()
    jax.config.update("jax_explain_cache_misses", True)


class Counter:
    """Traces are runs of the body, which jit runs only to trace; compiles are XLA's of the function, not of what calls it."""

    def __init__(self, function):
        self.traces = 0

        @functools.wraps(function)
        def marked(*args, **kwargs):
            self.traces += 1
            return function(*args, **kwargs)

        self.function = marked

    def read(self):
        own = ("", self.function.__name__, f"jit({self.function.__name__})")
        return {"traces": self.traces, "compiles": sum(_compiled[name] for name in own)}

    def reasons(self):
        """What JAX has said since it was last asked about traces of the function."""
        name = re.escape(self.function.__name__)
        said = [text.partition("\n")[2] for text in _heard if re.search(rf"^ +(for )?{name} (id=|defined )", text, re.MULTILINE)]
        _heard.clear()
        said = [text.partition("\n  but seen another function")[0] for text in said]  # in an earlier job
        return [re.sub(r" (id=\d+|defined at .*)", "", text) for text in said]


def derive(function, point):
    """The linear jaxpr of jvp, and each cotangent as JAX's own transpose rules run it backward."""
    names, primals = list(point), tuple(point.values())
    value, linear = jax.linearize(function, *primals)
    closed = jax.make_jaxpr(linear)(*primals)
    known = dict(zip(closed.jaxpr.constvars, closed.consts))
    said = {variable: f"{name}t" for variable, name in zip(closed.jaxpr.invars, names)}
    equations, (result,) = _flat(closed.jaxpr, known, said, itertools.count())
    cotangents = {said[result]: jnp.ones_like(value)} if result in said else {}
    program = []
    for primitive, operands, out, _ in equations:
        program.append([out, primitive.name, [said_of or float(value) for said_of, value in operands]])
    for equation in reversed(equations):
        _transpose(equation, cotangents)
    shown = {name: float(cotangent) for name, cotangent in cotangents.items()}
    pulled = jax.vjp(function, *primals)[1](jnp.ones_like(value))
    gradients = {name: float(gradient) for name, gradient in zip(names, pulled)}
    return {"linear": program, "result": said.get(result, ""), "cotangents": shown, "value": gradients}


def _flat(jaxpr, known, said, numbers):
    """The equations on tangents, those inside of calls too; ``said`` and ``known`` come to hold the names and values of variables."""
    equations = []
    for equation in jaxpr.eqns:
        operands = [_named(v, known) for v in equation.invars]
        inner = equation.params.get("jaxpr") if equation.primitive.name in ("pjit", "jit") else None
        if inner is not None:
            for outer, variable in zip(operands, inner.jaxpr.invars):
                (said if outer in said else known)[variable] = said[outer] if outer in said else known[outer]
            known.update(zip(inner.jaxpr.constvars, inner.consts))
            found, results = _flat(inner.jaxpr, known, said, numbers)
            equations += found
            for variable, result in zip(equation.outvars, results):
                (said if result in said else known)[variable] = said[result] if result in said else known[result]
            continue
        (out,) = equation.outvars
        if not any(v in said for v in operands):
            known[out] = equation.primitive.bind(*(known[v] for v in operands), **equation.params)
            continue
        # By name: the variables of a function that is called twice are the same ones in both calls.
        named = [(said[v], v.aval) if v in said else ("", known[v]) for v in operands]
        said[out] = f"v{next(numbers)}"
        equations.append((equation.primitive, named, said[out], equation.params))
    return equations, [_named(v, known) for v in jaxpr.outvars]


def _named(variable, known):
    """A variable; for a number that stands in a jaxpr itself, something as good."""
    if not hasattr(variable, "val"):
        return variable
    known[id(variable)] = variable.val
    return id(variable)


def _transpose(equation, cotangents):
    from jax.interpreters import ad

    primitive, operands, out, params = equation
    if out not in cotangents:
        return
    given = [ad.UndefinedPrimal(value) if name else value for name, value in operands]
    for (name, _), cotangent in zip(operands, ad.primitive_transposes[primitive](cotangents[out], *given, **params)):
        if name and cotangent is not None and not isinstance(cotangent, ad.Zero):
            cotangents[name] = cotangents[name] + cotangent if name in cotangents else cotangent


def devices():
    return len(_chips or jax.devices())


def mesh(axes, order):
    from jax.sharding import Mesh

    return Mesh(np.array(_chips or jax.devices())[order].reshape(tuple(axes.values())), tuple(axes))


def place(array, dtype, mesh, split, partial):
    from jax.sharding import NamedSharding, PartitionSpec

    spec = PartitionSpec(*(tuple(axis) if isinstance(axis, list) else axis for axis in split))
    made, where = put(array, dtype), NamedSharding(mesh, spec)
    return jax.ShapeDtypeStruct(made.shape, made.dtype, sharding=where) if _chips else jax.device_put(made, where)


def layout(value):
    """What JAX says of an array's sharding, and what its devices hold."""
    if not isinstance(value, jax.Array):
        return None
    spec, axes = getattr(value.sharding, "spec", None), {}
    if spec is not None:
        axes = dict(value.sharding.mesh.shape)
    shards = []
    for shard in value.addressable_shards:
        bounds = [part.indices(size)[:2] for part, size in zip(shard.index, value.shape)]
        shards.append((shard.device.id, bounds, (), get(shard.data)[0]))
    split = None if spec is None else [*spec, *[None] * (value.ndim - len(spec))]
    return {
        "axes": axes,
        "split": split,
        "partial": {},
        "shape": value.shape,
        "shards": shards,
        "dtype": get(value)[1],
    }


@contextlib.contextmanager
def collectives():
    """The collectives in all that XLA builds meanwhile, by the text of the executables."""
    jax.clear_caches()
    seen, before = [], sum(_compiled.values())
    yield seen
    built = jax.devices()[0].client.live_executables()
    if len(built) < sum(_compiled.values()) - before:
        seen.append("unknown")  # of a program that is gone already
    texts = [module.to_string() for executable in built for module in executable.hlo_modules()]
    seen += [name for text in texts for name in re.findall(_COLLECTIVE, text)]


_COLLECTIVE = r" (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)(?:-start)?\("
