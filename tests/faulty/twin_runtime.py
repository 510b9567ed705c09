"""The twin inside a host."""

import contextlib

import twin


def start(device, several):
    if device != "cpu":
        raise RuntimeError(f"twin computes on the cpu, not on {device!r}")


def computes_on():
    return "cpu"


def scope(x64):
    return contextlib.nullcontext()


def put(array, dtype):
    return twin.array(array)


def get(value):
    return (value.data, value.dtype.name) if isinstance(value, twin.Array) else None


def wrap(function, mode, options, counter):
    wrapped = twin.compile(function, **options)
    if counter:
        counter.wrapped = wrapped
    return wrapped


def forget():
    pass  # every wrapped function has a cache of its own


class Counter:
    """Traces, as the wrapped function counts them itself."""

    def __init__(self, function):
        self.function = function

    def read(self):
        return {"traces": self.wrapped.traces}
