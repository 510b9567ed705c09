"""Targets and selectors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from conformance.target import MODES, Selector, Target, most_specific

JAX = Target("jax", "compiled", "cpu")

frameworks = st.sampled_from(["torch", "jax", "my-framework", "x_1"])
devices = st.sampled_from(["cpu", "cuda", "tpu-v5"])
RELEASES = ["2", "2.4", "2.5", "2.5.1", "2.6"]
BOUNDS = [
    *(f"{operator}{release}" for operator in ("<", "<=", "==", "!=", ">=", ">") for release in RELEASES),
    *("==2.5.*", "!=2.5.*", "~=2.5", "~=2.5.1", "<2.5.post1", ">=2.6rc1", ">2.5.dev1"),
]
VERSIONS = [Version(f"{major}.{minor}.{micro}") for major in (1, 2, 3) for minor in range(8) for micro in range(3)]
bounds = st.lists(st.sampled_from(BOUNDS), min_size=1, max_size=3).map(",".join)


@given(frameworks, st.sampled_from(MODES), devices)
def test_a_target_reads_back_as_it_is_written(framework: str, mode: str, device: str) -> None:
    for target in (Target(framework, mode, device), Target(framework, mode, device, "tape")):
        assert Target.parse(str(target)) == target


@given(st.none() | frameworks, st.none() | bounds, st.none() | bounds, st.none() | st.sampled_from(MODES), st.none() | devices)
def test_a_selector_keeps_each_of_its_parts(
    framework: str | None, versions: str | None, beside: str | None, mode: str | None, device: str | None
) -> None:
    versions, beside = (versions, beside) if framework else (None, None)
    text = (framework or "any") + (versions or "") + (f"+flax{beside}" if beside else "")
    text += (f":{mode}" if mode else "") + (f"@{device}" if device else "")
    companion = "flax" if beside else ""
    assert Selector.parse(text) == Selector(framework, None, versions or "", companion, beside or "", mode, device)


def test_a_way_is_more_specific_than_its_framework() -> None:
    tape = Target("torch", "eager", "cpu", "tape")
    assert str(tape) == "torch/tape:eager@cpu"
    assert Selector.parse("torch").covers(tape)
    assert Selector.parse("torch/tape>=2.5").covers(tape)
    assert not Selector.parse("torch/tape").covers(tape._replace(way=""))
    assert most_specific([Selector.parse("torch"), Selector.parse("torch/tape")]) == [Selector.parse("torch/tape")]
    with pytest.raises(ValueError, match="ways need a framework"):
        Selector.parse("any/tape")


@pytest.mark.parametrize("text", ["jax", "any", "jax:compiled", "any:compiled", "any@cpu", "jax>=0.5:compiled@cpu"])
def test_a_selector_covers_what_it_leaves_out(text: str) -> None:
    assert Selector.parse(text).covers(JAX)


@pytest.mark.parametrize("text", ["torch", "jax:eager", "any:eager", "any@tpu", "jax@cuda"])
def test_a_selector_does_not_cover_what_it_excludes(text: str) -> None:
    assert not Selector.parse(text).covers(JAX)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a target selector"),
        ("Torch", "is not a target selector"),
        ("torch:", "is not a target selector"),
        (":eager", "is not a target selector"),
        ("torch@", "is not a target selector"),
        ("torch >=2", "is not a target selector"),
        ("jax:fast", "unknown mode 'fast'"),
        ("torch>=", "is not a version specifier"),
        ("torch>=x", "is not a version specifier"),
        ("torch===odd", "is not a version specifier"),
        ("any>=2", "versions need a framework"),
        ("any+flax>=0.12", "versions need a framework"),
        ("jax+flax", "is not a target selector"),
        ("jax+flax>=x", "is not a version specifier"),
    ],
)
def test_what_is_no_selector_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Selector.parse(text)


@pytest.mark.parametrize("text", ["jax", "jax:eager", "jax@cpu", "any:eager@cpu", "jax>=0.5:eager@cpu"])
def test_what_leaves_out_a_part_is_no_target(text: str) -> None:
    with pytest.raises(ValueError, match="is not a target"):
        Target.parse(text)


@pytest.mark.parametrize(("version", "admitted"), [("2.4.9", False), ("2.5", True), ("2.5.1+cpu", True), ("2.6.0.dev3", True)])
def test_versions_are_bounded(version: str, admitted: bool) -> None:
    assert Selector.parse("torch>=2.5").admits({"torch": Version(version), "flax": Version("1")}) is admitted


@pytest.mark.parametrize(
    ("jax", "flax", "admitted"),
    [("0.9", "0.12.8", True), ("0.9", "0.12.9", False), ("0.10", "0.12.8", False), ("0.9", None, False)],
)
def test_versions_of_a_library_beside_the_framework_are_bounded(jax: str, flax: str | None, admitted: bool) -> None:
    versions = {"jax": Version(jax)} | ({"flax": Version(flax)} if flax else {})
    assert Selector.parse("jax<0.10+flax<0.12.9").admits(versions) is admitted


def test_an_unknown_version_counts_as_the_newest() -> None:
    assert Selector.parse("torch>=99").admits({})
    assert not Selector.parse("torch<99").admits({})


@given(bounds, bounds)
def test_whether_versions_overlap_is_what_trying_them_all_says(a: str, b: str) -> None:
    left, right = Selector.parse(f"torch{a}"), Selector.parse(f"torch{b}")
    if any(left.admits({"torch": version}) and right.admits({"torch": version}) for version in VERSIONS):
        assert left.overlaps(right)
        assert right.overlaps(left)


@pytest.mark.parametrize(
    ("a", "b", "overlap"),
    [
        ("torch>=2.5", "torch<2.5", False),
        ("torch>2.5", "torch<2.6", True),  # 2.5.1
        ("torch!=2.5.*", "torch>=2.5,<3", True),  # 2.6
        ("torch==2.5.*", "torch>=2.6", False),
        ("torch>=2.5.post1", "torch<2.5.dev0", False),
        ("torch", "torch<2", True),
        ("jax+flax<0.12", "jax+flax>=0.12", False),
        ("jax+flax<0.12", "jax+optax>=0.2", True),
        ("jax<0.5+flax<0.12", "jax>=0.5+flax<0.12", False),
    ],
)
def test_versions_overlap(a: str, b: str, overlap: bool) -> None:
    assert Selector.parse(a).overlaps(Selector.parse(b)) is overlap


def test_the_most_specific_selector_wins() -> None:
    fitting = [Selector.parse(text) for text in ("any", "jax", "jax:compiled", "jax:compiled@cpu")]
    assert most_specific(fitting) == [Selector.parse("jax:compiled@cpu")]


def test_selectors_that_cannot_be_ordered_tie() -> None:
    fitting = [Selector.parse(text) for text in ("any", "jax", "any:compiled")]
    assert most_specific(fitting) == fitting[1:]
    versions = [Selector.parse(text) for text in ("torch>=2.5", "torch<3")]
    assert most_specific(versions) == versions
