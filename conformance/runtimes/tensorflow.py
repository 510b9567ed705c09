"""TensorFlow inside a host."""

import contextlib
import glob
import logging
import os
import tempfile

import numpy as np

_dump = None
_kind = "CPU"
"""TensorFlow's name of the device."""
_place = ""
"""Where programs are put whose device has no priority of its own."""
_heard = []


class _Listener(logging.Handler):
    def emit(self, record):
        _heard.append(record.getMessage())


def start(device, several):
    global tf, _dump, _kind, _place
    # TensorFlow has no public counter of XLA compiles, so XLA is told to write down each one.
    _dump = tempfile.mkdtemp(prefix="conformance-xla-")
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + f" --xla_dump_to={_dump} --xla_dump_hlo_as_text"
    import tensorflow as tf

    logging.getLogger("tensorflow").addHandler(_Listener())
    _kind = {"cuda": "GPU"}.get(device, device.upper())
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
        _place = "/device:TPU:0"
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if several:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)


def computes_on():
    """The device of a sum that was computed where programs are."""
    with scope(False):
        kind = tf.DeviceSpec.from_string((tf.ones(2) + 1).device).device_type
    return {"GPU": "cuda"}.get(kind, kind.lower())


def scope(x64):
    return tf.device(_place) if _place else contextlib.nullcontext()


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


def is_spoiled(said):
    """An operation of DTensor that fails later than it is called takes all after it along."""
    return "cancels all future operations" in said


def devices():
    return len(tf.config.list_logical_devices(_kind))


def mesh(axes, order):
    from tensorflow.experimental import dtensor

    return dtensor.create_mesh(list(axes.items()), devices=[f"{_kind}:{i}" for i in order])


def place(array, dtype, mesh, split, partial):
    from tensorflow.experimental import dtensor

    layout = dtensor.Layout([axis or dtensor.UNSHARDED for axis in split], mesh)
    replicated = dtensor.copy_to_mesh(put(array, dtype), dtensor.Layout.replicated(mesh, rank=array.ndim))
    return dtensor.relayout(replicated, layout)


def layout(value):
    """What TensorFlow says of a tensor's layout, and what its devices hold."""
    from tensorflow.experimental import dtensor

    if not isinstance(value, tf.Tensor) or not dtensor.is_dtensor(value):
        return None
    found = dtensor.fetch_layout(value)
    axes = dict(zip(found.mesh.dim_names, found.mesh.shape()))
    shards = []
    for local, location in zip(dtensor.unpack(value), found.mesh.local_device_locations()):
        bounds = []
        for size, axis in zip(value.shape, found.sharding_specs):
            count, index = (1, 0) if axis == dtensor.UNSHARDED else (axes[axis], location[axis])
            bounds.append((index * size // count, (index + 1) * size // count))
        shards.append((int(local.device.rpartition(":")[2]), bounds, (), get(local)[0]))
    split = [None if axis == dtensor.UNSHARDED else axis for axis in found.sharding_specs]
    return {"axes": axes, "split": split, "partial": {}, "shape": tuple(value.shape), "shards": shards, "dtype": value.dtype.name}


def collectives():
    return contextlib.nullcontext()  # TensorFlow does not say
