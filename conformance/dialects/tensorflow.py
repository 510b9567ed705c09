"""TensorFlow: https://www.tensorflow.org/api_docs/python/tf"""

from conformance.framework import Counting, Framework, Meshes

FRAMEWORK = Framework(
    name="tensorflow",
    distributions=("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly"),
    runtime="conformance.runtimes.tensorflow",
    module="tf",
    imports="import numpy as np\nimport tensorflow as tf",
    same=frozenset(
        """
        abs acos asin atan broadcast_to cos cosh exp floor greater greater_equal less less_equal logical_and
        logical_not logical_or negative not_equal ones ones_like reshape round sign sin sinh sqrt square
        tan tanh zeros zeros_like
        """.split()
    ),
    rows={
        "add": "tf.add(x1, x2)",
        "all": "tf.reduce_all(x, axis=axis, keepdims=keepdims)",
        "any": "tf.reduce_any(x, axis=axis, keepdims=keepdims)",
        "arange": "tf.range(start, stop, step, dtype=dtype)",
        "argmax": "tf.argmax(x, axis=axis)",
        "argmin": "tf.argmin(x, axis=axis)",
        "argsort": "tf.argsort(x, axis=axis, stable=True)",
        "asarray": "tf.convert_to_tensor(obj, dtype=dtype)",
        "astype": "tf.cast(x, dtype)",
        "atan2": "tf.atan2(x1, x2)",
        "bitwise_and": "tf.bitwise.bitwise_and(x1, x2)",
        "bitwise_invert": "tf.bitwise.invert(x)",
        "bitwise_or": "tf.bitwise.bitwise_or(x1, x2)",
        "bitwise_xor": "tf.bitwise.bitwise_xor(x1, x2)",
        "ceil": "tf.math.ceil(x)",
        "checkpoint": "tf.recompute_grad(f)",
        "cholesky": "tf.linalg.cholesky(x)",
        "clip": "tf.clip_by_value(x, min, max)",
        "concat": "tf.concat(arrays, axis=axis)",
        "conj": "tf.math.conj(x)",
        "count_nonzero": "tf.math.count_nonzero(x, axis=axis, keepdims=keepdims)",
        "cumulative_prod": "tf.math.cumprod(x, axis=axis)",
        "cumulative_sum": "tf.cumsum(x, axis=axis)",
        "custom_vjp": "custom_vjp(f, forward, backward)",
        "det": "tf.linalg.det(x)",
        "diagonal": "tf.linalg.diag_part(x)",
        "divide": "tf.divide(x1, x2)",
        "eigh": "tf.linalg.eigh(x)",
        "einsum": "tf.einsum(subscripts, *operands)",
        "equal": "tf.equal(x1, x2)",
        "expand_dims": "tf.expand_dims(x, axis=axis)",
        "expm1": "tf.math.expm1(x)",
        "eye": "tf.eye(n_rows, n_cols, dtype=dtype)",
        "flip": "tf.reverse(x, axis=[axis])",
        "floor_divide": "tf.math.floordiv(x1, x2)",
        "full": "tf.fill(shape, fill_value)",
        "full_like": "tf.fill(tf.shape(x), fill_value)",
        "grad": "grad(f, argnums)",
        "hessian": "hessian(f)",
        "hvp": "hvp(f, x, v)",
        "imag": "tf.math.imag(x)",
        "inv": "tf.linalg.inv(x)",
        "isfinite": "tf.math.is_finite(x)",
        "isinf": "tf.math.is_inf(x)",
        "isnan": "tf.math.is_nan(x)",
        "jacrev": "jacrev(f)",
        "jit": "tf.function(f)",
        "jvp": "jvp(f, primals, tangents)",
        "linspace": "tf.linspace(start, stop, num)",
        "log": "tf.math.log(x)",
        "log1p": "tf.math.log1p(x)",
        "logaddexp": "tf.experimental.numpy.logaddexp(x1, x2)",
        "logical_xor": "tf.math.logical_xor(x1, x2)",
        "logsumexp": "tf.reduce_logsumexp(x, axis=axis)",
        "matmul": "tf.matmul(x1, x2)",
        "matrix_transpose": "tf.linalg.matrix_transpose(x)",
        "max": "tf.reduce_max(x, axis=axis, keepdims=keepdims)",
        "maximum": "tf.maximum(x1, x2)",
        "mean": "tf.reduce_mean(x, axis=axis, keepdims=keepdims)",
        "min": "tf.reduce_min(x, axis=axis, keepdims=keepdims)",
        "minimum": "tf.minimum(x1, x2)",
        "multiply": "tf.multiply(x1, x2)",
        "nonzero": "tuple(tf.unstack(tf.where(x), axis=-1))",
        "outer": "tf.tensordot(x1, x2, axes=0)",
        "permute_dims": "tf.transpose(x, axes)",
        "positive": "tf.experimental.numpy.positive(x)",
        "pow": "tf.pow(x1, x2)",
        "prod": "tf.reduce_prod(x, axis=axis, keepdims=keepdims)",
        "real": "tf.math.real(x)",
        "relu": "tf.nn.relu(x)",
        "remainder": "tf.math.floormod(x1, x2)",
        "reshard": "dtensor.relayout(x, layout(*split))",
        "repeat": "tf.repeat(x, repeats, axis=axis)",
        "roll": "tf.roll(x, shift, axis=axis)",
        "sigmoid": "tf.math.sigmoid(x)",
        "softmax": "tf.nn.softmax(x, axis=axis)",
        "solve": "tf.linalg.solve(x1, x2)",
        "sort": "tf.sort(x, axis=axis)",
        "squeeze": "tf.squeeze(x, axis=axis)",
        "stack": "tf.stack(arrays, axis=axis)",
        "std": "tf.math.reduce_std(x, axis=axis, keepdims=keepdims)",
        "stop_gradient": "tf.stop_gradient(x)",
        "subtract": "tf.subtract(x1, x2)",
        "sum": "tf.reduce_sum(x, axis=axis, keepdims=keepdims)",
        "take": "tf.gather(x, indices, axis=axis)",
        "take_along_axis": "tf.experimental.numpy.take_along_axis(x, indices, axis)",
        "tensordot": "tf.tensordot(x1, x2, axes=axes)",
        "tile": "tf.tile(x, repetitions)",
        "trace": "tf.linalg.trace(x)",
        "tril": "tril(x, k=k)",
        "triu": "triu(x, k=k)",
        "trunc": "tf.math.sign(x) * tf.floor(tf.abs(x))",
        "unstack": "tf.unstack(x, axis=axis)",
        "value_and_grad": "value_and_grad(f, argnums)",
        "var": "tf.math.reduce_variance(x, axis=axis, keepdims=keepdims)",
        "vecdot": "tf.reduce_sum(tf.math.conj(x1) * x2, axis=-1)",
        "vector_norm": "tf.norm(x, axis=axis, keepdims=keepdims, ord=ord)",
        "vjp": "vjp(f, primals)",
        "vmap": "vmap(f, in_axes=in_axes, out_axes=out_axes)",
        "where": "tf.where(condition, x1, x2)",
    },
    names={"newaxis": "None", "inf": "float('inf')", "nan": "float('nan')", "pi": "np.pi"},
    preludes={
        "custom_vjp": """\
def custom_vjp(f, forward, backward):
    @tf.custom_gradient
    def custom(*args):
        value, residuals = forward(*args)
        return value, lambda cotangent: backward(residuals, cotangent)

    return custom
""",
        "grad": """\
def grad(f, argnums=0):
    both = value_and_grad(f, argnums)
    return lambda *args: both(*args)[1]
""",
        "hessian": """\
def hessian(f):
    def second(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            gradient = grad(f)(x)
        return tape.jacobian(gradient, x)

    return second
""",
        "hvp": """\
def hvp(f, x, v):
    return jvp(grad(f), (x,), (v,))[1]
""",
        "jacrev": """\
def jacrev(f):
    def jacobian(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = f(x)
        return tape.jacobian(value, x)

    return jacobian
""",
        "jvp": """\
def jvp(f, primals, tangents):
    with tf.autodiff.ForwardAccumulator(list(primals), list(tangents)) as accumulator:
        value = f(*primals)
    return value, accumulator.jvp(value)
""",
        "value_and_grad": """\
def value_and_grad(f, argnums=0):
    def both(*args):
        chosen = args[argnums] if isinstance(argnums, int) else [args[i] for i in argnums]
        with tf.GradientTape() as tape:
            tape.watch(chosen)
            value = f(*args)
        return value, tape.gradient(value, chosen)

    return both
""",
        "vjp": """\
def vjp(f, primals):
    primals = list(primals)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(primals)
        value = f(*primals)
    return value, lambda cotangent: tape.gradient(value, primals, output_gradients=cotangent)
""",
        "vmap": """\
def vmap(f, in_axes=0, out_axes=0):
    move = tf.experimental.numpy.moveaxis

    def mapped(*args):
        axes = in_axes if isinstance(in_axes, (list, tuple)) else [in_axes] * len(args)
        batched = [move(x, axis, 0) for x, axis in zip(args, axes) if axis is not None]

        def one(slices):
            slices = list(slices)
            return f(*[x if axis is None else slices.pop(0) for x, axis in zip(args, axes)])

        result = tf.vectorized_map(one, batched)
        return result if out_axes == 0 else tf.nest.map_structure(lambda x: move(x, 0, out_axes), result)

    return mapped
""",
        "layout": """\
def layout(*split):
    return dtensor.Layout([axis or dtensor.UNSHARDED for axis in split], mesh)
""",
        "tril": """\
def tril(x, k=0):
    rows, columns = tf.range(tf.shape(x)[-2])[:, None], tf.range(tf.shape(x)[-1])[None, :]
    return tf.where(columns <= rows + k, x, tf.zeros_like(x))
""",
        "triu": """\
def triu(x, k=0):
    rows, columns = tf.range(tf.shape(x)[-2])[:, None], tf.range(tf.shape(x)[-1])[None, :]
    return tf.where(columns >= rows + k, x, tf.zeros_like(x))
""",
    },
    modes={
        "eager": "",
        "compiled": "tf.function(FUNCTION, OPTIONS)",
        "xla": "tf.function(FUNCTION, jit_compile=True, OPTIONS)",
    },
    array="tf.constant(ARRAY)",
    cast="tf.cast(tf.constant(ARRAY), DTYPE)",
    counting=Counting(
        before="", function="FUNCTION", swap=("", ""), read="{'traces': FUNCTION.experimental_get_tracing_count()}"
    ),
    meshes=Meshes(
        modes=("eager", "compiled"),
        imports="from tensorflow.experimental import dtensor",
        before="",
        after="""\
cpu = tf.config.list_physical_devices('CPU')[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)  # of one processor


def placed(x, layout):
    return dtensor.relayout(dtensor.copy_to_mesh(x, dtensor.Layout.replicated(layout.mesh, rank=x.ndim)), layout)""",
        mesh="mesh = dtensor.create_mesh(list(zip(NAMES, SIZES)), devices=[f'CPU:{i}' for i in ORDER])",
        place="placed(ARRAY, layout(SPLIT))",
        shown="dtensor.fetch_layout(RESULT).sharding_specs, dtensor.unpack(RESULT)",
    ),
    derivation="""\
with tf.GradientTape() as tape:
    tape.watch([ARGUMENTS])
    value = FUNCTION(ARGUMENTS)
print(tape.gradient(value, [ARGUMENTS]))
""",
    options={"input_signature": "[tf.TensorSpec(shape, tf.float32) for shape in VALUE]"},
    lacks={
        "custom_jvp": "tf.custom_jvp",
        "jacfwd": "tf.autodiff.jacfwd",
        "linear_transpose": "tf.autodiff.linear_transpose",
        "linearize": "tf.autodiff.linearize",
        "partial": "tf.experimental.dtensor.PARTIAL",
    },
    devices=("cpu", "cuda", "tpu"),
)
