"""JAX: https://docs.jax.dev/en/latest/jax.numpy.html"""

from conformance.dialects import numpy
from conformance.framework import Counting, Framework

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
        "softmax": "jax.nn.softmax(x, axis=axis)",
        "unstack": "tuple(jnp.moveaxis(x, axis, 0))",
        "vecdot": "jnp.vecdot(x1, x2, axis=axis)",
    },
    names={"newaxis": "None", "bool": "jnp.bool_"},
    preludes={},
    modes={"eager": "", "compiled": "jax.jit(FUNCTION, OPTIONS)"},
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
    meshes=True,
    derivation="""\
value, linear = jax.linearize(FUNCTION, ARGUMENTS)
print(jax.make_jaxpr(linear)(ARGUMENTS))
print(jax.vjp(FUNCTION, ARGUMENTS)[1](jnp.ones_like(value)))
""",
    wide="jax.config.update('jax_enable_x64', True)",
    devices=("cpu", "cuda", "tpu"),
)
