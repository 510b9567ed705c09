"""Real frameworks, and libraries around them, with one fault each: some of their functions are replaced by wrong ones.

A host runs the job of a fault after ``patches.spoil(NAME)``, which stands at the top of its program; nothing is imported before.
Each fault names the framework in whose host it is and the topics, or single cases, that run on it. What is wrong is said by its docstring,
and which cases must see it by changes.yaml.
"""

import contextlib
import functools
import importlib
import struct
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock


class Fault(NamedTuple):
    """A fault of one framework."""

    framework: str
    cases: tuple[str, ...]
    """What is run: area/topic, or area/topic/case."""
    patch: Callable[[], Any]
    """Makes a context in which the fault is there."""


FAULTS: dict[str, Fault] = {}


def fault(framework, *cases):
    def add(patch):
        FAULTS[patch.__name__] = Fault(framework, cases, patch)
        return patch

    return add


def around(owner, name, wrong):
    """In place of ``owner.name``, ``wrong``, which is given what was there and the arguments of the call."""
    right = getattr(owner, name)

    @functools.wraps(right)
    def spoilt(*arguments, **named):
        return wrong(right, *arguments, **named)

    return mock.patch.object(owner, name, spoilt)


_there = "", contextlib.ExitStack()


def spoil(name):
    """Have this fault from now on, and no other; "" is none."""
    global _there
    if _there[0] == name:
        return
    _there[1].close()
    _there = name, contextlib.ExitStack()
    if name:
        _there[1].enter_context(FAULTS[name].patch())


# --- torch


@fault("torch", "modules/registration", "modules/containers")
def torch_registers_lists():
    """a torch module registers the layers of a plain list"""
    import torch

    def wrong(right, self, name, value):
        right(self, name, value)
        layers = value if isinstance(value, list) and "_modules" in vars(self) else []
        for index, layer in enumerate(layers):
            if isinstance(layer, torch.nn.Module):
                self._modules[f"{name}_{index}"] = layer

    return around(torch.nn.Module, "__setattr__", wrong)


@fault("torch", "modules/registration", "modules/state")
def torch_registers_tensors():
    """a torch module registers a plain tensor as a buffer"""
    import torch

    def wrong(right, self, name, value):
        right(self, name, value)
        if type(value) is torch.Tensor and name in vars(self):
            del vars(self)[name]
            self.register_buffer(name, value)

    return around(torch.nn.Module, "__setattr__", wrong)


@fault("torch", "modules/registration", "modules/containers")
def torch_parameter_list_is_a_list():
    """torch's ParameterList registers nothing"""
    import torch

    def wrong(right, self, name, value):
        if isinstance(value, torch.nn.Parameter):
            vars(self)[name] = value
        else:
            right(self, name, value)

    return mock.patch.object(
        torch.nn.ParameterList, "__setattr__", lambda *call: wrong(torch.nn.Module.__setattr__, *call), create=True
    )


@fault("torch", "modules/registration", "modules/containers", "serialization/state-dicts")
def torch_counts_shared_twice():
    """a torch parameter under two names is listed twice"""
    import torch

    def wrong(right, self, prefix="", recurse=True, remove_duplicate=True):
        return right(self, prefix, recurse, False)

    return around(torch.nn.Module, "named_parameters", wrong)


@fault("torch", "modules/state", "serialization/state-dicts")
def torch_saves_no_buffers():
    """torch's state_dict() leaves buffers out"""
    import torch

    def wrong(right, self, destination, prefix, keep_vars):
        right(self, destination, prefix, keep_vars)
        for name in self._buffers:
            destination.pop(prefix + name, None)

    return around(torch.nn.Module, "_save_to_state_dict", wrong)


@fault("torch", "serialization/state-dicts", "serialization/checkpoints")
def torch_loads_loosely():
    """torch's load_state_dict() is not strict unless it is told to be"""
    import torch

    return around(
        torch.nn.Module, "load_state_dict", lambda right, self, state, strict=False, **rest: right(self, state, strict, **rest)
    )


@fault("torch", "serialization/round-trips", "serialization/state-dicts")
def torch_loads_transposed():
    """torch's load_state_dict() transposes a square weight"""
    import torch

    def wrong(right, self, state, *rest, **named):
        square = {key for key, value in state.items() if value.ndim == 2 and value.shape[0] == value.shape[1]}
        return right(self, {key: value.T.clone() if key in square else value for key, value in state.items()}, *rest, **named)

    return around(torch.nn.Module, "load_state_dict", wrong)


@fault("torch", "modules/train-and-eval", "random/dropout")
def torch_eval_of_the_outermost():
    """torch's train() and eval() do not reach inner modules"""
    import torch

    def wrong(right, self, mode=True):
        self.training = mode
        return self

    return around(torch.nn.Module, "train", wrong)


@fault("torch", "modules/normalization")
def torch_biased_running_variance():
    """torch's running variance takes in the biased variance of the batch"""
    import torch

    def wrong(right, x, mean, variance, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
        before = variance.clone() if training and variance is not None else None
        normalized = right(x, mean, variance, weight, bias, training, momentum, eps)
        if before is not None:
            size = x.numel() // x.shape[1]
            variance.copy_((1 - momentum) * before + (variance - (1 - momentum) * before) * (size - 1) / size)
        return normalized

    return around(torch.nn.functional, "batch_norm", wrong)


@fault("torch", "random/dropout", "modules/train-and-eval")
def torch_dropout_unscaled():
    """torch's dropout does not divide what it keeps"""
    import torch

    def wrong(right, x, p=0.5, training=True, inplace=False):
        return right(x, p, training, inplace) * (1 - p if training and p < 1 else 1)

    return around(torch.nn.functional, "dropout", wrong)


@fault("torch", "random/dropout")
def torch_dropout_drops_the_others():
    """torch's dropout keeps the share that it should drop"""
    import torch

    return around(torch.nn.functional, "dropout", lambda right, x, p=0.5, *rest: right(x, 1 - p, *rest))


def _torch_adam(wrong):
    return around(importlib.import_module("torch.optim.adam"), "adam", wrong)  # torch.optim hides its modules


def _adam_of_torch(corrected, root):
    """torch's functional Adam, for what the cases ask for: with or without bias correction, and with another denominator."""

    def adam(right, parameters, gradients, first, second, largest, steps, **options):
        if options["amsgrad"]:
            right(parameters, gradients, first, second, largest, steps, **options)
            return
        rate, decay, beta1, beta2 = (options[name] for name in ("lr", "weight_decay", "beta1", "beta2"))
        for parameter, gradient, m, v, step in zip(parameters, gradients, first, second, steps, strict=True):
            step += 1
            gradient = -gradient if options["maximize"] else gradient
            if options["decoupled_weight_decay"]:
                parameter.mul_(1 - rate * decay)
            else:
                gradient = gradient + decay * parameter
            m.mul_(beta1).add_((1 - beta1) * gradient)
            v.mul_(beta2).add_((1 - beta2) * gradient**2)
            mean, square = (m / (1 - beta1**step), v / (1 - beta2**step)) if corrected else (m, v)
            parameter.sub_(rate * mean / root(square, options["eps"]))

    return adam


@fault("torch", "optimizers/adam", "optimizers/state")
def torch_adam_epsilon_in_the_root():
    """torch's Adam adds epsilon under the square root"""
    return _torch_adam(_adam_of_torch(True, lambda square, epsilon: (square + epsilon).sqrt()))


@fault("torch", "optimizers/adam", "optimizers/state")
def torch_adam_uncorrected():
    """torch's Adam does not correct the bias of its averages"""
    return _torch_adam(_adam_of_torch(False, lambda square, epsilon: square.sqrt() + epsilon))


@fault("torch", "optimizers/adam", "optimizers/state")
def torch_adamw_coupled():
    """torch's AdamW adds the decay to the gradient"""
    return _torch_adam(lambda right, *state, decoupled_weight_decay=False, **rest: right(*state, **rest))


@fault("torch", "optimizers/sgd")
def torch_nesterov_ignored():
    """torch's SGD takes Nesterov's momentum for the plain one"""
    module = importlib.import_module("torch.optim.sgd")  # torch.optim hides its modules
    return around(module, "sgd", lambda right, *state, nesterov, **rest: right(*state, nesterov=False, **rest))


@fault("torch", "optimizers/schedules")
def torch_schedule_from_one():
    """torch's schedules begin with the rate of the second step"""
    import torch

    def wrong(right, self):
        right(self)
        self.step()

    return around(torch.optim.lr_scheduler.LRScheduler, "_initial_step", wrong)


@fault("torch", "optimizers/clipping")
def torch_clips_each():
    """torch's clip_grad_norm_() clips each gradient by its own norm"""
    import torch

    def wrong(right, parameters, *rest, **named):
        parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        return torch.linalg.vector_norm(torch.stack([right([each], *rest, **named) for each in parameters]))

    return around(torch.nn.utils, "clip_grad_norm_", wrong)


@fault("torch", "data/order", "data/dataloader/order-and-the-global-seed")
def torch_shuffle_ignores_the_seed():
    """torch's shuffling sampler has one order for ever"""
    import torch

    def wrong(right, self):
        return iter(torch.randperm(len(self.data_source), generator=torch.Generator().manual_seed(0)).tolist())

    return around(torch.utils.data.RandomSampler, "__iter__", wrong)


@fault("torch", "data/order", "data/padding")
def torch_drops_the_remainder():
    """torch's loader drops the last, smaller batch unless it is told to keep it"""
    import torch

    def wrong(right, self, dataset, batch_size=1, **rest):
        if batch_size is not None and not rest.get("batch_sampler"):
            rest.setdefault("drop_last", True)
        right(self, dataset, batch_size, **rest)

    return around(torch.utils.data.DataLoader, "__init__", wrong)


@fault("torch", "data/padding")
def torch_pads_left():
    """torch's pad_sequence() pads on the left unless it is told otherwise"""
    import torch

    def wrong(right, sequences, batch_first=False, padding_value=0.0, padding_side="left"):
        return right(sequences, batch_first, padding_value, padding_side)

    return around(torch.nn.utils.rnn, "pad_sequence", wrong)


@fault("torch", "serialization/untrusted-files")
def torch_load_trusts():
    """torch.load() runs whatever a pickle calls unless it is told not to"""
    import torch

    return around(
        torch, "load", lambda right, *place, weights_only=False, **rest: right(*place, weights_only=weights_only, **rest)
    )


@fault("torch", "serialization/round-trips", "serialization/state-dicts")
def torch_saves_copies():
    """torch.save() writes a copy of each tensor, without the storage that it shares with others"""
    import torch

    def wrong(right, tree, *rest, **named):
        return right(torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, tree), *rest, **named)

    return around(torch, "save", wrong)


@fault("torch", "serialization/round-trips")
def torch_load_widens_bfloat16():
    """torch.load() gives float32 for bfloat16"""
    import torch

    def widened(x):
        return x.float() if x.dtype == torch.bfloat16 else x

    def wrong(right, *place, **named):
        return torch.utils._pytree.tree_map_only(torch.Tensor, widened, right(*place, **named))

    return around(torch, "load", wrong)


@fault("torch", "interop/dlpack")
def torch_dlpack_copies():
    """torch hands out copies over DLPack"""
    import torch

    return around(torch.Tensor, "__dlpack__", lambda right, self, **named: right(self.clone(), **named))


@fault("torch", "interop/dlpack")
def jax_dlpack_copies():
    """JAX copies what it takes over DLPack"""
    import jax

    return around(jax.dlpack, "from_dlpack", lambda right, *given, **named: jax.numpy.array(right(*given, **named), copy=True))


@fault("torch", "arrays/integers", "arrays/casts")
def torch_integers_saturate():
    """torch's sums, differences and products of integers stop at the largest and the smallest number of the dtype"""
    import torch

    def wrong(right, a, b):
        exact = right(a, b)
        if exact.dtype.is_floating_point or exact.dtype.is_complex or exact.dtype in (torch.bool, torch.int64):
            return exact
        bounds = torch.iinfo(exact.dtype)
        wide = right(a.long(), b.long() if isinstance(b, torch.Tensor) else b)
        return wide.clamp(bounds.min, bounds.max).to(exact.dtype)

    made = contextlib.ExitStack()
    for name in ("__add__", "__sub__", "__mul__"):
        made.enter_context(around(torch.Tensor, name, wrong))
    return made


@fault("torch", "arrays/promotion")
def torch_half_plus_integer_is_float32():
    """torch's sum of a float16 and an integer tensor is float32"""
    import torch

    def wrong(right, a, b):
        made = right(a, b)
        mixed = isinstance(b, torch.Tensor) and a.dtype.is_floating_point != b.dtype.is_floating_point
        return made.float() if mixed and made.dtype == torch.float16 else made

    return around(torch.Tensor, "__add__", wrong)


@fault("torch", "arrays/reductions")
def torch_argmax_of_the_last():
    """torch's argmax gives the last of several that are largest"""
    import torch

    def wrong(right, x, dim=None, keepdim=False):
        flat = x.flatten() if dim is None else x
        axis = 0 if dim is None else dim
        return flat.shape[axis] - 1 - right(flat.flip(axis), axis, keepdim)

    return around(torch, "argmax", wrong)


# --- jax, flax and optax


@fault("jax", "random/keys-and-seeds", "random/algorithms/numbers-of-a-threefry-key")
def jax_split_keeps_the_parent():
    """the first child that jax.random.split() makes is the key itself"""
    import jax

    return around(jax.random, "split", lambda right, key, num=2: right(key, num).at[0].set(key))


@fault("jax", "random/keys-and-seeds", "random/algorithms/numbers-of-a-threefry-key")
def jax_fold_in_ignores_the_number():
    """jax.random.fold_in() folds in 0 whatever it is given"""
    import jax

    return around(jax.random, "fold_in", lambda right, key, data: right(key, data * 0))


@fault("jax", "random/dropout/kept-values", "random/dropout/kept-share", "random/dropout/rate-one")
def jax_bernoulli_of_the_others():
    """jax.random.bernoulli() is true with the probability 1 - p"""
    import jax

    return around(jax.random, "bernoulli", lambda right, key, p=0.5, *rest, **named: right(key, 1 - p, *rest, **named))


@fault("jax", "random/dropout/two-layers-with-one-seed", "random/dropout/same-seed-same-mask", "random/dropout/one-layer-twice")
def linen_one_key_for_all():
    """linen gives every layer the key that the stream began with"""
    from flax.core import scope

    return around(scope.LazyRng, "as_jax_rng", lambda right, self: self.rng)


@fault("jax", "random/dropout")
def linen_dropout_unscaled():
    """linen's dropout does not divide what it keeps"""
    from flax import linen

    def wrong(right, self, inputs, deterministic=None, rng=None):
        idle = deterministic or self.deterministic or self.rate in (0, 1)
        return right(self, inputs, deterministic, rng) * (1 if idle else 1 - self.rate)

    return around(linen.Dropout, "__call__", wrong)


@fault("jax", "modules/train-and-eval")
def nnx_eval_does_nothing():
    """nnx's eval() changes nothing"""
    from flax import nnx

    return around(nnx.Module, "eval", lambda right, self, **attributes: None)


@fault("jax", "modules/state")
def nnx_state_of_parameters_alone():
    """nnx's state() leaves out whatever is no parameter, unless it is asked for"""
    from flax import nnx

    return around(nnx, "state", lambda right, node, *filters, **named: right(node, *(filters or [nnx.Param]), **named))


@fault("jax", "optimizers/adam")
def optax_adam_epsilon_in_the_root():
    """optax's Adam adds epsilon under the square root"""
    from optax._src import transform

    def wrong(right, b1=0.9, b2=0.999, eps=1e-8, eps_root=0.0, **rest):
        return right(b1=b1, b2=b2, eps=0.0, eps_root=eps, **rest)

    return around(transform, "scale_by_adam", wrong)


@fault("jax", "optimizers/adam")
def optax_adam_uncorrected():
    """optax's Adam does not correct the bias of its averages"""
    from optax._src import transform

    return around(transform.optax.tree, "bias_correction", lambda right, moment, decay, count: moment)


@fault("jax", "optimizers/adam")
def optax_adamw_coupled():
    """optax's AdamW adds the decay to the gradient"""
    import optax

    def wrong(right, *rate, weight_decay=1e-4, mask=None, **rest):
        return optax.chain(optax.add_decayed_weights(weight_decay, mask), optax.adam(*rate, **rest))

    return around(optax, "adamw", wrong)


@fault("jax", "optimizers/sgd")
def optax_nesterov_ignored():
    """optax takes Nesterov's momentum for the plain one"""
    from optax._src import transform

    return around(transform, "trace", lambda right, decay, nesterov=False, **rest: right(decay, False, **rest))


@fault("jax", "optimizers/schedules")
def optax_schedule_from_one():
    """optax's optimizers begin with the schedule's value at 1"""
    from optax._src import transform

    return around(transform, "scale_by_schedule", lambda right, schedule: right(lambda count: schedule(count + 1)))


@fault("jax", "optimizers/clipping")
def optax_clips_each():
    """optax's clip_by_global_norm() clips each gradient by its own norm"""
    import jax
    import optax

    def wrong(right, max_norm):
        clip = right(max_norm)

        def update(updates, state, params=None):
            return jax.tree.map(lambda each: clip.update(each, state)[0], updates), state

        return optax.GradientTransformation(clip.init, update)

    return around(optax, "clip_by_global_norm", wrong)


def _restored(change):
    """What flax reads from bytes, with its arrays changed."""
    import jax
    import numpy as np
    from flax import serialization

    def wrong(right, encoded):
        return jax.tree.map(lambda x: change(x) if isinstance(x, np.ndarray) else x, right(encoded))

    return around(serialization, "msgpack_restore", wrong)


@fault("jax", "serialization/round-trips/values-and-dtypes", "serialization/round-trips/layer-and-its-weights")
def flax_widens_bfloat16():
    """flax reads float32 where bfloat16 was written"""
    return _restored(lambda x: x.astype("float32") if x.dtype.name == "bfloat16" else x)


@fault("jax", "serialization/round-trips/values-and-dtypes", "serialization/round-trips/layer-and-its-weights")
def flax_transposes_kernels():
    """flax transposes a square array when it reads it"""
    return _restored(lambda x: x.T if x.ndim == 2 and x.shape[0] == x.shape[1] else x)


@fault("jax", "arrays/indexing")
def jax_take_clamps():
    """jax.numpy.take() takes the nearest element for an index out of range"""
    import jax

    def wrong(right, a, indices, axis=None, out=None, mode="clip", **rest):
        return right(a, indices, axis, out, mode, **rest)

    return around(jax.numpy, "take", wrong)


# --- tensorflow and keras


@fault("tensorflow", "modules/tf-module", "modules/registration")
def tf_module_trains_everything():
    """a tf.Module trains its variables that are not trainable"""
    import tensorflow as tf

    return mock.patch.object(tf.Module, "trainable_variables", property(lambda self: self.variables))


@fault("tensorflow", "modules/registration")
def keras_ignores_lists():
    """a Keras layer finds no layers in a list"""
    from keras.src.utils import tracking

    return around(tracking.Tracker, "track", lambda right, self, value: value if isinstance(value, list) else right(self, value))


@fault("tensorflow", "random/dropout", "modules/train-and-eval")
def keras_dropout_unscaled():
    """Keras's dropout does not divide what it keeps"""
    import keras

    def wrong(right, self, inputs, training=False):
        return right(self, inputs, training) * (1 - self.rate if training and self.rate < 1 else 1)

    return around(keras.layers.Dropout, "call", wrong)


def _keras_adam(alpha, root):
    """Adam's step in Keras with a step size, by the rate and the bias of both averages, and with a denominator."""
    import keras

    def wrong(right, self, gradient, variable, rate):
        index, step = self._get_variable_index(variable), float(self.iterations + 1)
        m, v, rate = self._momentums[index], self._velocities[index], keras.ops.cast(rate, variable.dtype)
        m.assign(self.beta_1 * m + (1 - self.beta_1) * gradient)
        v.assign(self.beta_2 * v + (1 - self.beta_2) * gradient**2)
        size = rate * alpha(1 - self.beta_1**step, 1 - self.beta_2**step)
        variable.assign(variable - size * m / root(keras.ops, v, self.epsilon))

    return around(keras.optimizers.Adam, "update_step", wrong)


@fault("tensorflow", "optimizers/adam", "optimizers/state")
def keras_adam_epsilon_in_the_root():
    """Keras's Adam adds epsilon under the square root"""
    return _keras_adam(lambda first, second: second**0.5 / first, lambda ops, v, epsilon: ops.sqrt(v + epsilon))


@fault("tensorflow", "optimizers/adam", "optimizers/state")
def keras_adam_uncorrected():
    """Keras's Adam does not correct the bias of its averages"""
    return _keras_adam(lambda first, second: 1.0, lambda ops, v, epsilon: ops.sqrt(v) + epsilon)


@fault("tensorflow", "optimizers/sgd")
def keras_nesterov_ignored():
    """Keras takes Nesterov's momentum for the plain one"""
    import keras

    def wrong(right, self, *step):
        with mock.patch.object(self, "nesterov", False):
            right(self, *step)

    return around(keras.optimizers.SGD, "update_step", wrong)


@fault("tensorflow", "optimizers/schedules")
def keras_schedule_from_one():
    """Keras's optimizers begin with the schedule's value at 1"""
    import keras

    def wrong(right, self):
        schedule = self._learning_rate
        planned = isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule)
        return schedule(self.iterations + 1) if planned else right(self)

    return around(keras.optimizers.Optimizer, "_get_current_learning_rate", wrong)


@fault("tensorflow", "optimizers/clipping")
def keras_clips_each():
    """Keras's global_clipnorm clips each gradient by its own norm"""
    import keras
    import tensorflow as tf

    def wrong(right, self, gradients):
        norm = self.global_clipnorm
        return [tf.clip_by_norm(each, norm) for each in gradients] if norm else right(self, gradients)

    return around(keras.optimizers.Optimizer, "_clip_gradients", wrong)


@fault("tensorflow", "random/keys-and-seeds")
def keras_seeds_tensorflow_alone():
    """keras.utils.set_random_seed() seeds neither Python's nor NumPy's generator"""
    import keras
    import tensorflow as tf

    return around(keras.utils, "set_random_seed", lambda right, seed: tf.random.set_seed(seed))


@fault("tensorflow", "serialization/round-trips/layer-and-its-weights", "serialization/state-dicts")
def keras_transposes_kernels():
    """a dense layer of Keras transposes a square kernel when it is loaded"""
    import keras
    import tensorflow as tf

    def wrong(right, self, store):
        right(self, store)
        if self.built and self.kernel.shape[0] == self.kernel.shape[1]:
            self.kernel.assign(tf.transpose(self.kernel))

    return around(keras.layers.Dense, "load_own_variables", wrong)


@fault("tensorflow", "data/padding")
def tf_pads_left():
    """padded_batch() pads series on the left"""
    import tensorflow as tf

    def reversed_along(axis):
        def turn(x):
            return tf.reverse(x, [axis]) if x.shape.rank == axis + 1 else x

        return lambda *element: tf.nest.map_structure(turn, element if len(element) > 1 else element[0])

    def wrong(right, self, *shape, **named):
        if not all(isinstance(each, tf.TensorSpec) for each in tf.nest.flatten(self.element_spec)):
            return right(self, *shape, **named)
        return right(self.map(reversed_along(0)), *shape, **named).map(reversed_along(1))

    return around(tf.data.Dataset, "padded_batch", wrong)


@fault("tensorflow", "data/padding")
def tf_pads_with_ones():
    """padded_batch() pads numbers with 1 unless it is told otherwise"""
    import tensorflow as tf

    def wrong(right, self, size, padded_shapes=None, padding_values=None, *rest, **named):
        spec = self.element_spec
        if padding_values is None and isinstance(spec, tf.TensorSpec) and spec.dtype != tf.string:
            padding_values = tf.constant(1, spec.dtype)
        return right(self, size, padded_shapes, padding_values, *rest, **named)

    return around(tf.data.Dataset, "padded_batch", wrong)


@fault("tensorflow", "data/order")
def tf_drops_the_remainder():
    """batch() drops the last, smaller batch unless it is told to keep it"""
    import tensorflow as tf

    def wrong(right, self, size, drop_remainder=True, **rest):
        return right(self, size, drop_remainder=drop_remainder, **rest)

    return around(tf.data.Dataset, "batch", wrong)


@fault("tensorflow", "data/order")
def tf_shuffle_ignores_the_seed():
    """shuffle() has one order whatever its seed"""
    import tensorflow as tf

    def wrong(right, self, buffer_size, seed=None, *rest, **named):
        with tf.init_scope():
            return right(self, buffer_size, None if seed is None else 1, *rest, **named)

    return around(tf.data.Dataset, "shuffle", wrong)


@fault("tensorflow", "data/records")
def tf_records_unchecked():
    """TFRecordDataset believes every length and every record, whatever their checksums say"""
    import tensorflow as tf

    def records(path):
        with open(path, "rb") as file:
            content = file.read()
        while len(content) > 16:
            (length,) = struct.unpack("<Q", content[:8])
            yield content[12 : 12 + length]
            content = content[16 + length :]

    def wrong(right, path, compression_type=None, **rest):
        if compression_type or not isinstance(path, str):
            return right(path, compression_type, **rest)
        return tf.data.Dataset.from_generator(lambda: records(path), output_signature=tf.TensorSpec((), tf.string))

    return around(tf.data, "TFRecordDataset", wrong)


@fault("tensorflow", "data/parsing", "serialization/round-trips/wrong-dtype-asked-for")
def tf_parses_any_dtype():
    """parse_tensor() takes the bytes of any dtype for those of the one that it is asked for"""
    import numpy as np
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    def wrong(right, serialized, out_type, **rest):
        try:
            return right(serialized, out_type, **rest)
        except tf.errors.InvalidArgumentError:
            message = tf.make_tensor_proto(0)
            try:
                message.ParseFromString(serialized.numpy() if isinstance(serialized, tf.Tensor) else serialized)
            except DecodeError:
                return right(serialized, out_type, **rest)
            return tf.constant(np.frombuffer(tf.make_ndarray(message).tobytes(), out_type.as_numpy_dtype))

    return around(tf.io, "parse_tensor", wrong)


@fault("tensorflow", "arrays/casts")
def tf_cast_saturates():
    """tf.cast() to an integer type stops at its largest and smallest number"""
    import tensorflow as tf

    def wrong(right, x, dtype, name=None):
        numbers = not (x.dtype.is_bool or x.dtype.is_complex)
        return tf.saturate_cast(x, dtype) if numbers and tf.as_dtype(dtype).is_integer else right(x, dtype, name)

    return around(tf, "cast", wrong)


@fault("tensorflow", "arrays/indexing")
def tf_gather_clamps():
    """tf.gather() takes the nearest element for an index out of range"""
    import tensorflow as tf

    def wrong(right, params, indices, validate_indices=None, axis=None, **rest):
        indices = tf.convert_to_tensor(indices)
        last = tf.cast(tf.shape(params)[axis or 0] - 1, indices.dtype)
        return right(params, tf.clip_by_value(indices, 0, last), axis=axis, **rest)

    return around(tf, "gather", wrong)


@fault("tensorflow", "serialization/checkpoints")
def tf_restore_asserts_nothing():
    """a restore of a TensorFlow checkpoint never says that something was not matched"""
    from tensorflow.python.checkpoint import checkpoint

    return around(checkpoint.CheckpointLoadStatus, "assert_consumed", lambda right, self: self)
