"""TensorFlow: https://www.tensorflow.org/api_docs/python/tf"""

from conformance.framework import Counting, Framework

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
        "clip": "tf.clip_by_value(x, min, max)",
        "concat": "tf.concat(arrays, axis=axis)",
        "count_nonzero": "tf.math.count_nonzero(x, axis=axis, keepdims=keepdims)",
        "cumulative_sum": "tf.cumsum(x, axis=axis)",
        "divide": "tf.divide(x1, x2)",
        "einsum": "tf.einsum(subscripts, *operands)",
        "equal": "tf.equal(x1, x2)",
        "expand_dims": "tf.expand_dims(x, axis=axis)",
        "expm1": "tf.math.expm1(x)",
        "eye": "tf.eye(n_rows, n_cols, dtype=dtype)",
        "flip": "tf.reverse(x, axis=[axis])",
        "floor_divide": "tf.math.floordiv(x1, x2)",
        "full": "tf.fill(shape, fill_value)",
        "full_like": "tf.fill(tf.shape(x), fill_value)",
        "isfinite": "tf.math.is_finite(x)",
        "isinf": "tf.math.is_inf(x)",
        "isnan": "tf.math.is_nan(x)",
        "linspace": "tf.linspace(start, stop, num)",
        "log": "tf.math.log(x)",
        "log1p": "tf.math.log1p(x)",
        "logaddexp": "tf.experimental.numpy.logaddexp(x1, x2)",
        "logical_xor": "tf.math.logical_xor(x1, x2)",
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
        "remainder": "tf.math.floormod(x1, x2)",
        "repeat": "tf.repeat(x, repeats, axis=axis)",
        "roll": "tf.roll(x, shift, axis=axis)",
        "softmax": "tf.nn.softmax(x, axis=axis)",
        "sort": "tf.sort(x, axis=axis)",
        "squeeze": "tf.squeeze(x, axis=axis)",
        "stack": "tf.stack(arrays, axis=axis)",
        "std": "tf.math.reduce_std(x, axis=axis, keepdims=keepdims)",
        "subtract": "tf.subtract(x1, x2)",
        "sum": "tf.reduce_sum(x, axis=axis, keepdims=keepdims)",
        "take": "tf.gather(x, indices, axis=axis)",
        "take_along_axis": "tf.experimental.numpy.take_along_axis(x, indices, axis)",
        "tensordot": "tf.tensordot(x1, x2, axes=axes)",
        "tile": "tf.tile(x, repetitions)",
        "tril": "tril(x, k=k)",
        "triu": "triu(x, k=k)",
        "trunc": "tf.math.sign(x) * tf.floor(tf.abs(x))",
        "unstack": "tf.unstack(x, axis=axis)",
        "var": "tf.math.reduce_variance(x, axis=axis, keepdims=keepdims)",
        "vecdot": "tf.reduce_sum(tf.math.conj(x1) * x2, axis=-1)",
        "where": "tf.where(condition, x1, x2)",
    },
    names={"newaxis": "None", "inf": "float('inf')", "nan": "float('nan')", "pi": "np.pi"},
    preludes={
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
    meshes=True,
    derivation="""\
with tf.GradientTape() as tape:
    tape.watch([ARGUMENTS])
    value = FUNCTION(ARGUMENTS)
print(tape.gradient(value, [ARGUMENTS]))
""",
    options={"input_signature": "[tf.TensorSpec(shape, tf.float32) for shape in VALUE]"},
    devices=("cpu", "cuda", "tpu"),
)
