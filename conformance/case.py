"""The types that a case file is made of. The JSON Schema for editors is generated from them."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

Id = Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="lower-case words joined by hyphens")]
Names = str | list[str]
Number = bool | int | float
Literal = Number | str | list[Any] | dict[str, Any] | None
Device = Annotated[str, Meta(pattern="^[0-9]+$", description="the number of a device")]
Bounds = Annotated[str, Meta(pattern=r"^([0-9]+:[0-9]+|\$.*)$", description="start:stop")]
Memory = Annotated[str, Meta(pattern="^(argument|output|temporary|alias)$", description="what takes memory")]
Size = Annotated[int, Meta(ge=1)]
Partial = dict[str, Annotated[str, Meta(description="how the parts are reduced: sum, avg, max, min or product")]] | str
Split = list[str | list[str] | None] | str
NotNegative = Annotated[float, Meta(ge=0)]


class Spec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What must be seen for an outcome to be the one. Every part that is given must hold."""

    value: Annotated[Literal | UnsetType, Meta(description="the result: a literal, or `reference` (NumPy in float64)")] = UNSET
    values: Annotated[list[Any] | str | UnsetType, Meta(description="the result of each call of a scenario")] = UNSET
    every: Annotated[Number | str | UnsetType, Meta(description="what every element of the result equals")] = UNSET
    rows: Annotated[list[Any] | str | UnsetType, Meta(description="what every row (last axis) of the result equals")] = UNSET
    shape: Annotated[list[Any] | str | UnsetType, Meta(description="the result's shape; of several, a list of them")] = UNSET
    dtype: Annotated[Names | UnsetType, Meta(description="the result's dtype; of several, a list of them")] = UNSET
    traces: Annotated[list[int] | str | UnsetType, Meta(description="traces at each call")] = UNSET
    graphs: Annotated[list[int] | str | UnsetType, Meta(description="graphs handed to the backend compiler at each call")] = UNSET
    compiles: Annotated[list[int] | str | UnsetType, Meta(description="executables built at each call")] = UNSET
    agree: Annotated[bool | UnsetType, Meta(description="whether all results are one and the same, and finite")] = UNSET
    raises: Annotated[Names | UnsetType, Meta(description="the error is an instance of a class of one of these names")] = UNSET
    matching: Annotated[str | UnsetType, Meta(description="a regular expression found in the error's text")] = UNSET
    step: Annotated[int | UnsetType, Meta(description="the step (from 0) at which the error is raised")] = UNSET
    split: Annotated[Split | UnsetType, Meta(description="the mesh axis, or axes, that split each dimension of the result")] = (
        UNSET
    )
    partial: Annotated[Partial | UnsetType, Meta(description="mesh axes over which the result is still to be reduced")] = UNSET
    local_shape: Annotated[list[int] | str | UnsetType, Meta(description="the shape of the slice on each device")] = UNSET
    slices: Annotated[
        dict[Device, list[Bounds] | str] | str | UnsetType,
        Meta(description="device number -> start:stop of the global array, per dimension"),
    ] = UNSET
    shards: Annotated[dict[Device, Any] | str | UnsetType, Meta(description="device number -> the values that it holds")] = UNSET
    devices: Annotated[list[int] | str | UnsetType, Meta(description="the devices that hold something of the result")] = UNSET
    collectives: Annotated[list[str] | str | UnsetType, Meta(description="the kinds of communication between devices")] = UNSET
    entry: Annotated[str | UnsetType, Meta(description="a regular expression found in the head of the compiled module")] = UNSET
    memory: Annotated[dict[Memory, int | str] | UnsetType, Meta(description="bytes that the compiled program takes")] = UNSET
    linear: Annotated[dict[str, str] | UnsetType, Meta(description="the linear program that jvp yields")] = UNSET
    cotangents: Annotated[dict[str, float] | UnsetType, Meta(description="each cotangent as transposition runs backward")] = UNSET

    def items(self) -> list[tuple[str, Any]]:
        """The parts that are given, by the names of this type."""
        pairs = [(name, getattr(self, name)) for name in Spec.__struct_fields__]
        return [(name, value) for name, value in pairs if value is not UNSET]


class Tolerance(Struct, frozen=True, forbid_unknown_fields=True):
    """A case's own tolerance, with the reason that it needs one."""

    because: str
    rtol: NotNegative = 0.0
    atol: NotNegative = 0.0


class Deviation(Spec, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A framework's known departure from the norm, named and explained."""

    target: str
    outcome: Id
    because: str
    where: Annotated[dict[str, list[Any]], Meta(description="parameter -> its values, or the names or numbers of its rows")] = (
        msgspec.field(default_factory=dict)
    )
    reference: str = ""


class Unsupported(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A framework that has no such thing; that it still has not is verified."""

    target: str
    because: str
    absent: Annotated[str, Meta(description="an expression that fails while the framework lacks it, such as torch.linalg.foo")]


class Input(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How an input is made: an array by shape, dtype and fill or value; or a Python value; or a tree of inputs."""

    shape: list[int | str] | str | UnsetType = UNSET
    dtype: str | UnsetType = UNSET
    fill: Annotated[str | UnsetType, Meta(description="normal, uniform, arange, zeros, ones or integers")] = UNSET
    value: Annotated[Literal | UnsetType, Meta(description="a literal, broadcast to the shape; or `arange`")] = UNSET
    split: Annotated[Split | UnsetType, Meta(description="the mesh axis, or axes in order, that split each dimension")] = UNSET
    partial: Annotated[Partial | UnsetType, Meta(description="mesh axes along which each device holds a part")] = UNSET
    python: Annotated[Literal | UnsetType, Meta(description="a Python value, not an array")] = UNSET
    items: Annotated[list[AnyInput] | str | UnsetType, Meta(description="a Python list of inputs")] = msgspec.field(
        default=UNSET, name="list"
    )
    parts: Annotated[list[AnyInput] | str | UnsetType, Meta(description="a Python tuple of inputs")] = msgspec.field(
        default=UNSET, name="tuple"
    )
    entries: Annotated[Inputs | str | UnsetType, Meta(description="a Python dict of inputs")] = msgspec.field(
        default=UNSET, name="dict"
    )


AnyInput = Input | Number | str | list[Any]
Inputs = dict[str, AnyInput]


class Step(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One step of a scenario; exactly one of its parts."""

    call: Annotated[str | dict[str, str], Meta(description="an expression, or one per framework; its result is observed")] = ""
    rebind: Annotated[Inputs, Meta(description="gives names of `state` new values")] = msgspec.field(default_factory=dict)
    do: Annotated[str | dict[str, str], Meta(description="statements, or some per framework; nothing is observed")] = ""

    def text(self, framework: str) -> str:
        """What is called or done on a framework."""
        said = self.call or self.do
        return said if isinstance(said, str) else said[framework]


class Native(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The body of a function in a framework's own words; in a case with steps, definitions."""

    code: str
    uses: Annotated[list[str], Meta(description="companion libraries, such as flax>=0.12")] = msgspec.field(default_factory=list)


class Variant(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The same case on one framework with other options of its tracing function."""

    id: Id
    target: str
    with_: dict[str, Any] = msgspec.field(name="with")
    expect: str


class Case(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One behaviour: its claim is a sentence that can be true or false."""

    id: Id
    claim: Annotated[str, Meta(min_length=10)]
    why: Annotated[str, Meta(description="why it matters, in a sentence")] = ""
    reference: Names = ""
    parametrize: dict[str, list[Any] | dict[str, Any]] = msgspec.field(default_factory=dict)
    inputs: Inputs = msgspec.field(default_factory=dict)
    state: Annotated[Inputs, Meta(description="globals of the functions that `define` defines")] = msgspec.field(
        default_factory=dict
    )
    mesh: Annotated[dict[str, Size], Meta(description="named axes of devices and their sizes")] = msgspec.field(
        default_factory=dict
    )
    devices: Annotated[
        int | list[int], Meta(description="how many devices a case without a mesh needs; or those of the mesh, row by row")
    ] = 0
    program: Annotated[str, Meta(description="an expression, or statements that return")] = ""
    closed_form: Annotated[str, Meta(description="a program that NumPy runs in float64: what `reference` means here")] = ""
    native: dict[str, str | Native] = msgspec.field(default_factory=dict)
    define: Annotated[str, Meta(description="functions of a scenario or a derivation")] = ""
    trace: Annotated[str, Meta(description="the function that is traced")] = ""
    steps: list[Step] = msgspec.field(default_factory=list)
    at: Annotated[Inputs, Meta(description="the point of a derivation")] = msgspec.field(default_factory=dict)
    observe: Annotated[str, Meta(pattern="^derivation$")] = ""
    modes: Annotated[list[str], Meta(description="only these modes")] = msgspec.field(default_factory=list)
    frameworks: Annotated[list[str], Meta(description="only these frameworks")] = msgspec.field(default_factory=list)
    x64: Annotated[bool, Meta(description="JAX with 64-bit types enabled")] = False
    outcomes: Annotated[dict[Id, Spec], Meta(min_length=1)] = msgspec.field(default_factory=dict)
    expect: Annotated[dict[str, Any], Meta(description="what must be seen; with `outcomes`, selector -> the outcome's name")] = (
        msgspec.field(default_factory=dict)
    )
    deviations: list[Deviation] = msgspec.field(default_factory=list)
    unsupported: list[Unsupported] = msgspec.field(default_factory=list)
    variants: list[Variant] = msgspec.field(default_factory=list)
    tolerance: Tolerance | UnsetType = UNSET
    timeout: Annotated[float, Meta(gt=0, description="seconds")] = 60.0

    @property
    def device_count(self) -> int:
        """How many devices it needs; 0 where it is not about devices."""
        return math.prod(self.mesh.values()) if self.mesh else self.devices if isinstance(self.devices, int) else 0


class Topic(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One file of cases."""

    title: str
    cases: list[Case]
    reference: Names = ""


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a case file, for editors and for the loader."""
    (reference,), definitions = msgspec.json.schema_components([Topic], ref_template="#/$defs/{name}")
    # What `expect` holds depends on `outcomes`, which a Python type cannot say.
    _, spec = msgspec.json.schema_components([Spec], ref_template="#/$defs/{name}")
    definitions = {**spec, **definitions}
    by_selector = {"type": "object", "additionalProperties": {"type": "string"}}
    definitions["Case"]["if"] = {"required": ["outcomes"]}
    definitions["Case"]["then"] = {"properties": {"expect": by_selector}}
    definitions["Case"]["else"] = {"properties": {"expect": {"$ref": "#/$defs/Spec"}}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A file of conformance cases",
        **reference,
        "$defs": definitions,
    }


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
