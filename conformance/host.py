"""Runs in the framework's own process: takes jobs, answers observations. Needs NumPy and the standard library only.

This file is sent as text to any Python from 3.9 on, so it imports nothing of the package. What a framework
does is known by a runtime, a module that is sent along; its functions are described in docs/adding-a-framework.md.
"""

import base64
import contextlib
import faulthandler
import functools
import io
import json
import linecache
import os
import platform
import re
import signal
import sys
import tempfile
import time
import types
import zlib
from importlib import metadata

LIMIT = 4000  # characters of an error's text
PRINTED = 20000  # characters that a job may print as evidence
KEPT = 1000  # sources that are kept for those who read them


def serve(channel):
    """Answer jobs until the channel closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its hosts
    settings = json.loads(channel.receive())
    log = _redirect_output()
    process, out, err = os.getpid(), sys.stdout, sys.stderr
    os.environ.update(settings["environment"])
    try:
        global np
        import numpy as np

        runtime = _module("conformance_runtime", settings["runtime"])
        runtime.start(settings["device"], settings["several"])
        _computes_on(runtime, settings["device"])
    except BaseException as error:  # whatever keeps a framework from starting is told to the user
        channel.send(
            json.dumps({"failed": f"{type(error).__name__}: {error}"[:LIMIT], "missing": isinstance(error, ImportError)})
        )
        return
    channel.send(json.dumps({"log": log, "python": platform.python_version(), "packages": _versions(settings["packages"])}))
    for text in channel:
        for job in json.loads(text):
            os.ftruncate(2, 0)  # so that what the log holds was written by the job in hand
            started = time.perf_counter()
            reply = run(runtime, job)
            if os.getpid() != process:
                os._exit(0)  # a job forked, and this is the child: it has no answers to give
            out.flush()
            err.flush()
            reply["id"] = job["id"]
            reply["seconds"] = time.perf_counter() - started
            reply["memory"] = _resident()
            reply["spoiled"] = _is_spoiled(runtime, reply)
            channel.send(json.dumps(reply))


def _computes_on(runtime, device):
    """Raises RuntimeError where the framework computes on something else than what was asked for, and would not say so."""
    if "-" not in device and runtime.computes_on() != device:
        raise RuntimeError(f"it was told to compute on {device}, and computed on {runtime.computes_on()}")


def _is_spoiled(runtime, reply):
    """Whether what was seen comes of an earlier job that the framework cannot get over."""
    said = reply.get("raised", {}).get("message", "") + reply.get("unobservable", "")
    return hasattr(runtime, "is_spoiled") and runtime.is_spoiled(said)


def run(runtime, job):
    """The observation of one job."""
    missing = _missing(job["uses"])
    if missing:
        return {"not_run": missing}
    if job["absent"]:
        return {"absent": _absent(job)}
    if job["devices"] and job["devices"] > runtime.devices():
        return {"not_run": f"needs {job['devices']} devices; there are {runtime.devices()}"}
    observation = {"results": []}
    printed = _Printed()
    step = -1
    try:
        with runtime.scope(job["x64"]), contextlib.redirect_stdout(printed):
            if job["mesh"]:
                job["grid"] = runtime.mesh(job["mesh"], job["order"])
            made = {name: _make(runtime, name, spec, job) for name, spec in job["inputs"].items()}
            space = _namespace(job, {name: _make(runtime, name, spec, job) for name, spec in job["state"].items()})
            if job["mesh"]:
                space["mesh"] = job["grid"]
            if job["observe"] == "derivation":
                observation["derivation"] = runtime.derive(space[job["trace"]], made)
                return observation
            counter = _trace(runtime, job, space)
            space.update(made)
            for kind, payload in job["steps"]:
                step += 1
                _step(runtime, job, kind, payload, space, counter, observation)
    except Unobservable as error:
        observation["unobservable"] = str(error)
    except Exception as error:  # whatever the code under test raises is what is to be observed
        observation["raised"] = {
            "classes": [c.__name__ for c in type(error).__mro__ if c is not object],
            "message": _plain(str(error)),
            "step": step,
        }
    if printed.getvalue():
        observation["printed"] = _plain(printed.getvalue(), PRINTED)
    return observation


class _Printed(io.StringIO):
    """What a job prints; the log gets it too, for a job that crashes."""

    def __init__(self):
        super().__init__()
        self.log = sys.stdout

    def write(self, text):
        self.log.write(text)
        return super().write(text)


def _trace(runtime, job, space):
    """Wrap the function under test for the job's mode; what counts for it, if anything is to be counted."""
    name = job["trace"]
    if not name:
        return None
    counter = None
    if job["count"]:
        runtime.forget()
        counter = runtime.Counter(space[name])
        space[name] = counter.function
    space[name] = runtime.wrap(space[name], job["mode"], job["options"], counter)
    return counter


def _step(runtime, job, kind, payload, space, counter, observation):
    if kind == "rebind":
        space.update({name: _make(runtime, name, spec, job) for name, spec in payload.items()})
        return
    if kind == "do":
        exec(_python(payload, "step", "exec"), space)
        return
    before = counter.read() if counter else {}
    with runtime.collectives() if job["collectives"] and job["mode"] != "aot" else contextlib.nullcontext() as seen:
        result = eval(_python(payload, "step", "eval"), space)
    if job["mode"] == "aot":  # it was compiled, and has not run
        observation.update(result)
        return
    if seen is not None:
        observation["collectives"] = sorted(set(seen))
    observation["results"].append(_observed(runtime, result, job))
    for name, count in (counter.read() if counter else {}).items():
        observation.setdefault(name, []).append(count - before[name])
    if counter and hasattr(counter, "reasons"):
        observation.setdefault("reasons", []).append([_plain(reason) for reason in counter.reasons()])
    if job["devices"] and (found := runtime.layout(result)):
        observation["layout"] = described(found)


class Unobservable(Exception):
    """A result that cannot be brought back; the code under test has raised nothing."""


def _observed(runtime, result, job):
    try:
        return encode(_Distributed(runtime) if job["devices"] else runtime, result)
    except Exception as error:  # whatever a framework raises of its own result
        raise Unobservable(f"a {type(result).__name__} cannot be observed: {_plain(str(error))}") from None


def _plain(message, limit=LIMIT):
    """A text without what differs between two runs."""
    message = message[: 2 * limit].encode("utf-8", "backslashreplace").decode()
    for pattern, plain in UNSTEADY:
        message = pattern.sub(plain, message)
    return message[:limit]


def _sorted(found):
    """A set of texts, printed in the order of its texts."""
    return found[1] + ", ".join(sorted(found[2].split(", "))) + found[3]


# Here rather than with the runtimes, for one framework's text may hold another's: Keras speaks everywhere, and JAX calls TensorFlow.
UNSTEADY = [
    (re.compile(pattern), plain)
    for pattern, plain in (
        # places of files; AutoGraph keeps the conversion of an equal function, under the file that it was first met in
        (r'[^\s"\']*(?:site-packages|lib/python3\.\d+)/', ""),
        (r"[\w./-]*/__autograph_generated_file\w+\.py", "program.py"),
        (r"\bconformance/\d+/[\w./-]+\.py", "program.py"),
        # orders of sets
        (r"(with these attrs: \[)([^]]*)(])", _sorted),
        (r"(\{)('[^'{}]*'(?:, '[^'{}]*')+)(})", _sorted),
        # running numbers of TensorFlow's functions and of Keras' layers, and those that are long enough to be of no count
        (r"(_(?:inference|forward|backward)_\w+?|\bpyfunc)_\d+(?=\b|__)", r"\1"),
        (r"\b\d{12,}\b", "..."),
        (r"[\w./-]*/tmp[a-z0-9_]{8}\b", "/tmp/..."),
        (r"\b(sequential|functional|dense|dropout)_\d+\b", r"\1"),
        # this host itself
        (r'\n *File "[^"]*(?:<remote exec>|execnet|threading\.py).*(?:\n    .*)?', ""),
        (r'("<remote exec>"):\d+:\d+ to \d*:\d+', r"\1"),
        # addresses
        (r"\b0x[0-9a-f]{6,}", "0x..."),
    )
]


_loaded = 0
_compiled = {}


def _namespace(job, state):
    """Execute a job's source as a module of its own. It is registered so that inspect, AutoGraph and Dynamo can read it."""
    # Dynamo remembers what it learnt by file and line, so that what is traced gets a file of its own each time.
    code = None if job["trace"] else _compiled.get(job["source"])
    if code is None:
        code = _compile(job["source"], job["filename"])
    # Under a name that can be imported, as Dynamo does for functions that it meets outside the module it began in.
    module = sys.modules["program"] = types.ModuleType("program")
    module.__dict__.update(state)
    exec(code, module.__dict__)
    return module.__dict__


def _python(text, filename, mode):
    # Not with what this module itself, or the one that runs it, imports from the future.
    return compile(text, filename, mode, dont_inherit=True)


def _compile(source, filename):
    global _loaded
    _loaded += 1
    filename = f"conformance/{_loaded}/{filename}"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    code = _python(source, filename, "exec")
    _compiled[source] = code
    if len(_compiled) > KEPT:
        linecache.cache.pop(_compiled.pop(next(iter(_compiled))).co_filename, None)
    return code


def _absent(job):
    """Whether the expression fails, as it does while the framework lacks what it names."""
    space = _namespace(job, {})
    try:
        eval(job["absent"], space)
    except (AttributeError, ImportError):
        return True
    return False


def _missing(uses):
    """Why a companion library keeps the job from running, or nothing."""
    for need in uses:
        try:
            found = metadata.version(need["name"])
        except metadata.PackageNotFoundError:
            return f"needs {need['name']}{need['versions']}"
        if need["versions"]:
            try:
                from packaging.specifiers import SpecifierSet
            except ImportError:
                return f"needs packaging, to tell whether {need['name']} {found} is {need['versions']}"
            if not SpecifierSet(need["versions"]).contains(found, prereleases=True):
                return f"needs {need['name']}{need['versions']}, found {found}"
    return ""


# --- inputs: the same for ever and everywhere


def _make(runtime, name, spec, job):
    if "python" in spec:
        return spec["python"]
    if "list" in spec:
        return [_make(runtime, f"{name}.{i}", child, job) for i, child in enumerate(spec["list"])]
    if "tuple" in spec:
        return tuple(_make(runtime, f"{name}.{i}", child, job) for i, child in enumerate(spec["tuple"]))
    if "dict" in spec:
        return {key: _make(runtime, f"{name}.{key}", child, job) for key, child in spec["dict"].items()}
    array, dtype = array_of(name, spec)
    if job["float64"]:
        return widen(array)
    if spec.get("split") is not None:
        return runtime.place(array, dtype, job["grid"], spec["split"], spec["partial"] or {})
    return runtime.put(array, dtype)


def array_of(name, spec):
    """The NumPy array that an input's description means, and the name of its dtype. bfloat16 values come as float32."""
    shape = None if spec["shape"] is None else tuple(spec["shape"])
    if spec["value"] is not None and spec["value"] != "arange":
        value = np.asarray(spec["value"])
        if value.dtype == object or value.dtype.kind in "US":
            value = np.asarray(numbers(spec["value"]))
        dtype = spec["dtype"] or {"b": "bool", "i": "int32", "f": "float32", "c": "complex64"}[value.dtype.kind]
        array = value if shape is None else np.broadcast_to(value, shape)
    else:
        dtype = spec["dtype"] or "float32"
        array = filled(name, shape, dtype, "arange" if spec["value"] == "arange" else spec["fill"])
    if dtype == "bfloat16":
        return to_bfloat16(array), dtype
    return np.array(array, dtype="bool" if dtype == "bool" else dtype, order="C"), dtype


def filled(name, shape, dtype, fill):
    """Numbers by a fixed recipe. RandomState is frozen, so the same seed gives the same numbers for ever (NEP 19)."""
    size = int(np.prod(shape, dtype=np.int64))
    random = _random()
    random.seed(seed_of(name, shape))
    if not fill:
        fill = "normal" if "float" in dtype or "complex" in dtype else "integers"
    if fill == "arange":
        flat = np.arange(size)
    elif fill in ("zeros", "ones"):
        flat = np.full(size, float(fill == "ones"))
    elif fill == "integers":
        flat = random.randint(0, 2, size) if dtype == "bool" else random.randint(0 if dtype[0] == "u" else -4, 5, size)
    elif dtype.startswith("complex"):
        flat = random.standard_normal(size) + 1j * random.standard_normal(size)
    else:
        flat = random.standard_normal(size) if fill == "normal" else random.random_sample(size)
    return flat.reshape(shape)


@functools.lru_cache(maxsize=None)
def _random():
    return np.random.RandomState()  # one for all, for making one takes longer than most checks


def seed_of(name, shape):
    """The seed of an input's numbers: a checksum of its name and shape."""
    return zlib.crc32(f"{name}:{','.join(map(str, shape))}".encode())


def to_bfloat16(array):
    """float32 values rounded to the nearest bfloat16, ties to even."""
    exact = np.array(array, dtype=np.float32, order="C")
    bits = exact.reshape(-1).view(np.uint32).astype(np.uint64)  # no scalar, of which NumPy 1 would make a float
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return np.where(np.isfinite(exact), rounded.astype(np.uint32).view(np.float32).reshape(exact.shape), exact)


def widen(array):
    """Floating point in double precision; the rest as it is."""
    kinds = {"f": np.float64, "c": np.complex128}
    return array.astype(kinds[array.dtype.kind]) if array.dtype.kind in kinds else array


def numbers(value):
    """A nested list in which complex numbers are written as text."""
    if isinstance(value, list):
        return [numbers(child) for child in value]
    return complex(value) if isinstance(value, str) else value


# --- results


def encode(runtime, value):
    """A result as JSON: arrays as dtype, shape and bytes; Python values by type; lists and dicts as they are."""
    found = runtime.get(value)
    if found is None and isinstance(value, (np.ndarray, np.generic)):
        found = np.asarray(value), np.asarray(value).dtype.name
    if found is not None:
        array, dtype = found
        data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
        return {"dtype": dtype, "shape": list(array.shape), "bytes": data}
    if isinstance(value, str):
        value = value.encode("utf-8", "backslashreplace").decode()
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"python": type(value).__name__, "data": value}
    if isinstance(value, (list, tuple)):
        return [encode(runtime, child) for child in value]
    if isinstance(value, dict):
        return {"dict": {str(key): encode(runtime, child) for key, child in value.items()}}
    return {"python": type(value).__name__, "data": {"repr": _plain(repr(value))}}  # equal to no literal


# --- what is spread over several devices


class _Distributed:
    """Brings arrays back whole, from what each device holds of them."""

    def __init__(self, runtime):
        self.runtime = runtime

    def get(self, value):
        found = self.runtime.layout(value)
        return (assembled(found)[0], found["dtype"]) if found else self.runtime.get(value)


def assembled(layout):
    """The global array, and whether each device holds its slice of it. Parts that are still to be reduced are reduced."""
    parts, right = {}, True
    for _, bounds, part, array in layout["shards"]:
        whole, known = parts.setdefault(part, (np.zeros(layout["shape"], array.dtype), np.zeros(layout["shape"], bool)))
        here = tuple(slice(start, stop) for start, stop in bounds)
        if whole[here].shape != array.shape:
            raise ValueError(f"a device holds an array of shape {list(array.shape)} as its slice {bounds}")
        twice = known[here]
        right = right and bool(np.all((whole[here] == array) | (array != array) | ~twice))
        whole[here] = np.where(twice, whole[here], array)
        known[here] = True
    if not all(known.all() for _, known in parts.values()):
        raise ValueError("no device holds all of the array's elements")
    stack = np.stack([whole for whole, _ in parts.values()])
    (how,) = set(layout["partial"].values()) or {"sum"}  # of one part, where nothing is to be reduced
    return getattr(stack, _REDUCTIONS[how])(axis=0).astype(stack.dtype), right and not layout["partial"]


_REDUCTIONS = {"sum": "sum", "avg": "mean", "max": "max", "min": "min", "product": "prod"}


def described(layout):
    """A layout in one form for all frameworks. The shards' values are there where they are not slices of the result."""
    shards = sorted(layout["shards"], key=lambda shard: shard[0])
    said = {
        "axes": layout["axes"],
        "split": None if layout["split"] is None else [_axes(axes) for axes in layout["split"]],
        "partial": layout["partial"],
        "local_shape": [list(shape) for shape in sorted({array.shape for *_, array in shards})],
        "slices": {str(device): [f"{start}:{stop}" for start, stop in bounds] for device, bounds, _, _ in shards},
    }
    if not assembled(layout)[1]:
        said["shards"] = {str(device): array.tolist() for device, _, _, array in shards}
    return said


def _axes(axes):
    """No axis, one, or several in order: None, a name, a list of names."""
    names = [axes] if isinstance(axes, str) else list(axes or ())
    return names[0] if len(names) == 1 else names or None


# --- the process


def _redirect_output():
    """Send all output, that of libraries too, to a file: what a crashed job wrote last can then be read."""
    fd, path = tempfile.mkstemp(prefix="conformance-host-", suffix=".log")
    os.set_blocking(fd, True)
    os.close(fd)
    log = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.stdout = os.fdopen(os.dup(1), "w", buffering=1)
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    faulthandler.enable(sys.stderr)
    _be_the_first_to_go()
    return path


def _be_the_first_to_go():
    """Where memory runs out, the kernel should end this process and not the one that keeps the results."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("900")
    except OSError:
        pass


def _resident():
    """Resident memory in bytes, or 0 where it is not known."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _versions(names):
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return found


def _module(name, source):
    module = types.ModuleType(name)
    linecache.cache[f"{name}.py"] = (len(source), None, source.splitlines(True), f"{name}.py")
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    sys.modules[name] = module
    return module


if __name__ == "__channelexec__":
    serve(channel)  # noqa: F821 (execnet provides it)
