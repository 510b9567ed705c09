"""JAX: https://docs.jax.dev/en/latest/jax.numpy.html"""

from conformance.dialects import numpy
from conformance.framework import Counting, Framework, Meshes

FRAMEWORK = Framework(
    name="jax",
    distributions=("jax",),
    runtime="conformance.runtimes.jax",
    module="jnp",
    imports="import jax\nimport jax.numpy as jnp\nimport numpy as np",
    same=numpy.FRAMEWORK.same,
    # jax.numpy follows NumPy name by name; what differs is written over it.
    rows={name: row.replace("np.", "jnp.") for name, row in numpy.FRAMEWORK.rows.items()}
    | {
        "argsort": "jnp.argsort(x, axis=axis, descending=descending)",
        "clip": "jnp.clip(x, min, max)",
        "checkpoint": "jax.checkpoint(f)",
        "custom_jvp": "custom_jvp(f, rule)",
        "custom_vjp": "custom_vjp(f, forward, backward)",
        "grad": "jax.grad(f, argnums)",
        "hessian": "jax.hessian(f)",
        "hvp": "jax.jvp(jax.grad(f), (x,), (v,))[1]",
        "jacfwd": "jax.jacfwd(f)",
        "jacrev": "jax.jacrev(f)",
        "jit": "jax.jit(f)",
        "jvp": "jax.jvp(f, primals, tangents)",
        "linear_transpose": "jax.linear_transpose(f, *primals)",
        "linearize": "jax.linearize(f, *primals)",
        "logsumexp": "jax.nn.logsumexp(x, axis=axis)",
        "relu": "jax.nn.relu(x)",
        "reshard": "jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*split)))",
        "sigmoid": "jax.nn.sigmoid(x)",
        "softmax": "jax.nn.softmax(x, axis=axis)",
        "stop_gradient": "jax.lax.stop_gradient(x)",
        "unstack": "tuple(jnp.moveaxis(x, axis, 0))",
        "value_and_grad": "jax.value_and_grad(f, argnums)",
        "vecdot": "jnp.vecdot(x1, x2, axis=axis)",
        "vjp": "jax.vjp(f, *primals)",
        "vmap": "jax.vmap(f, in_axes=in_axes, out_axes=out_axes)",
    },
    names={"newaxis": "None", "bool": "jnp.bool_"},
    preludes={
        "compiled_ahead": """\
def compiled_ahead(f, topology, **options):
    from jax.experimental import topologies

    generation, chips = topology.removeprefix("tpu-").split("-")
    name = f"{generation if generation.startswith('v') else 'tpu' + generation}:{chips}"
    device = topologies.get_topology_desc(platform="tpu", topology_name=name).devices[0]  # of libtpu: pip install jax[tpu]
    jitted = jax.jit(f, out_shardings=jax.sharding.SingleDeviceSharding(device), **options)

    def compile(*arguments):
        compiled = jitted.lower(*jax.tree.map(lambda x: jax.typeof(x) if isinstance(x, jax.Array) else x, arguments)).compile()
        print(compiled.as_text().partition("\\n")[0])  # nothing runs
        memory = compiled.memory_analysis()
        return {name: getattr(memory, f"{name}_size_in_bytes") for name in ("argument", "output", "temp", "alias")}

    return compile
""",
        "custom_jvp": """\
def custom_jvp(f, rule):
    custom = jax.custom_jvp(f)
    custom.defjvp(rule)
    return custom
""",
        "custom_vjp": """\
def custom_vjp(f, forward, backward):
    custom = jax.custom_vjp(f)
    custom.defvjp(forward, backward)
    return custom
""",
    },
    modes={"eager": "", "compiled": "jax.jit(FUNCTION, OPTIONS)", "aot": "compiled_ahead(FUNCTION, 'DEVICE', OPTIONS)"},
    array="jnp.array(ARRAY)",
    cast="jnp.array(ARRAY, dtype=DTYPE)",
    counting=Counting(
        before="""\
traces = 0


def marked(*args, body=FUNCTION, **kwargs):
    global traces
    traces += 1  # jit runs the body only to trace it
    return body(*args, **kwargs)
""",
        function="marked",
        swap=("", ""),
        read="{'traces': traces}",
    ),
    meshes=Meshes(
        modes=("eager", "compiled"),
        imports="from jax.sharding import Mesh, NamedSharding, PartitionSpec as P",
        before="import os\n\nos.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'  # of one processor",
        after="",
        mesh="mesh = Mesh(np.array(jax.devices())[ORDER].reshape(SIZES), NAMES)",
        place="jax.device_put(ARRAY, NamedSharding(mesh, P(SPLIT)))",
        shown="RESULT.sharding, [(shard.device, shard.index, shard.data) for shard in RESULT.addressable_shards]",
        communication="""\
jax.clear_caches()
CALL
for executable in jax.devices()[0].client.live_executables():  # all-gather, all-reduce, all-to-all ...
    print(executable.hlo_modules()[0].to_string())""",
    ),
    derivation="""\
value, linear = jax.linearize(FUNCTION, ARGUMENTS)
print(jax.make_jaxpr(linear)(ARGUMENTS))
print(jax.vjp(FUNCTION, ARGUMENTS)[1](jnp.ones_like(value)))
""",
    wide="jax.config.update('jax_enable_x64', True)",
    lacks={"partial": "jax.sharding.Partial"},
    devices=("cpu", "cuda", "tpu"),
)
