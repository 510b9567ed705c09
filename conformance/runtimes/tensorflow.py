"""TensorFlow inside a host."""

import contextlib
import glob
import logging
import os
import tempfile

import numpy as np

_dump = None
_device = ""
"""Where programs are put whose device has no priority of its own."""
_heard = []


class _Listener(logging.Handler):
    def emit(self, record):
        _heard.append(record.getMessage())


def start(device, mesh):
    global tf, _dump, _device
    # TensorFlow has no public counter of XLA compiles, so XLA is told to write down each one.
    _dump = tempfile.mkdtemp(prefix="conformance-xla-")
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + f" --xla_dump_to={_dump} --xla_dump_hlo_as_text"
    import tensorflow as tf

    logging.getLogger("tensorflow").addHandler(_Listener())
    visible = sorted({{"GPU": "cuda"}.get(d.device_type, d.device_type.lower()) for d in tf.config.list_physical_devices()})
    if device not in visible:
        said = f"tensorflow {tf.__version__} sees no {device}, only {', '.join(visible)}"
        raise RuntimeError(f"{said}: pip install '{'tensorflow[and-cuda]' if device == 'cuda' else 'tensorflow-tpu'}'")
    if device == "cpu":
        tf.config.set_visible_devices([], "GPU")
    for gpu in tf.config.get_visible_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)  # other hosts compute on the device, too
    if device == "tpu":
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
        tf.tpu.experimental.initialize_tpu_system(resolver)
        _device = "/device:TPU:0"
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if mesh:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)


def computes_on():
    """The device of a sum that was computed where programs are."""
    with scope(False):
        kind = tf.DeviceSpec.from_string((tf.ones(2) + 1).device).device_type
    return {"GPU": "cuda"}.get(kind, kind.lower())


def device_count():
    return len(tf.config.list_logical_devices("CPU"))  # DTensor's meshes are of these here


def scope(x64):
    return tf.device(_device) if _device else contextlib.nullcontext()


def put(array, dtype):
    if dtype == "bfloat16":
        return tf.cast(tf.constant(array), tf.bfloat16)
    return tf.constant(array, dtype=dtype)


def get(value):
    if isinstance(value, tf.IndexedSlices):
        return _dense(value)
    if not isinstance(value, (tf.Tensor, tf.Variable)):
        return None
    dtype = value.dtype.name
    array = tf.cast(value, tf.float32).numpy() if dtype == "bfloat16" else value.numpy()
    return np.asarray(array), dtype


def _dense(slices):
    """A gradient by rows, as it is added to what it is the gradient of. What is out of bounds is nowhere."""
    (values, dtype), indices = get(slices.values), slices.indices.numpy()
    array = np.zeros([int(size) for size in slices.dense_shape], values.dtype)
    inside = (indices >= 0) & (indices < len(array))
    np.add.at(array, indices[inside], values[inside])
    return array, dtype


def wrap(function, mode, options, counter):
    options = dict(options)
    if "input_signature" in options:
        options["input_signature"] = [tf.TensorSpec(shape, tf.float32) for shape in options["input_signature"]]
    wrapped = tf.function(function, jit_compile=True if mode == "xla" else None, **options)
    if counter:
        counter.wrapped, counter.xla = wrapped, mode == "xla"
    return wrapped


def forget():
    _heard.clear()
    # The warning of many traces is counted over the process, and equal functions share the count.
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    manager = getattr(polymorphic_function, "_frequent_tracing_detector_manager", None)
    getattr(manager, "_detectors", {}).clear()


class Counter:
    """Traces by the function's own count; compiles, where XLA compiles, by the modules that XLA wrote down."""

    def __init__(self, function):
        self.function = function

    def read(self):
        counts = {"traces": self.wrapped.experimental_get_tracing_count()}
        if self.xla:
            counts["compiles"] = len(glob.glob(f"{_dump}/*before_optimizations.txt"))
        return counts

    def reasons(self):
        """TensorFlow gives no reason; from the fifth trace on it warns, and says how many calls of the last traced."""
        said = [text.partition(". ")[0] for text in _heard if "triggered tf.function retracing" in text]
        _heard.clear()
        return said


def derive(function, point):
    """End values only: TensorFlow has no linear program to show."""
    names, primals = list(point), list(point.values())
    with tf.GradientTape() as tape:
        tape.watch(primals)
        value = function(*primals)
    gradients = tape.gradient(value, primals)
    return {"value": {name: None if g is None else float(g) for name, g in zip(names, gradients)}}


def place(array, dtype, mesh, split):
    from tensorflow.experimental import dtensor

    sizes = list(mesh.items())
    count = int(np.prod([size for _, size in sizes]))
    grid = dtensor.create_mesh(sizes, devices=[f"CPU:{i}" for i in range(count)])
    spec = [axis or dtensor.UNSHARDED for axis in split]
    replicated = dtensor.copy_to_mesh(put(array, dtype), dtensor.Layout.replicated(grid, rank=array.ndim))
    return dtensor.relayout(replicated, dtensor.Layout(spec, grid))


def gather(value):
    from tensorflow.experimental import dtensor

    mesh = dtensor.fetch_layout(value).mesh
    return dtensor.unpack(dtensor.relayout(value, dtensor.Layout.replicated(mesh, rank=value.shape.rank)))[0]


def layout(value):
    """Which slice each device holds, by the layout's mesh axes; local shapes as the shards have them."""
    from tensorflow.experimental import dtensor

    found = dtensor.fetch_layout(value)
    sizes = dict(zip(found.mesh.dim_names, found.mesh.shape()))
    slices = {}
    for device, location in enumerate(found.mesh.local_device_locations()):
        bounds = []
        for size, axis in zip(value.shape, found.sharding_specs):
            parts, index = (1, 0) if axis == dtensor.UNSHARDED else (sizes[axis], location[axis])
            bounds.append(f"{index * size // parts}:{(index + 1) * size // parts}")
        slices[str(device)] = bounds
    shapes = {tuple(shard.shape) for shard in dtensor.unpack(value)}
    return {"local_shape": [list(shape) for shape in sorted(shapes)], "slices": slices}
