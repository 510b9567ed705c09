"""Layouts as pictures: every cell says which devices hold it."""

import re
import xml.etree.ElementTree as ET

import pytest

from conformance.drawing import layout_svg


def texts(svg: str) -> list[str]:
    return [element.text for element in ET.fromstring(svg).iter() if element.tag == "text"]


def title(svg: str) -> str:
    return ET.fromstring(svg).find("title").text


def test_a_matrix_is_rows_and_columns():
    svg = layout_svg({"slices": {"0": ["0:4", "0:8"], "1": ["0:4", "8:16"], "2": ["4:8", "0:8"], "3": ["4:8", "8:16"]}})
    assert texts(svg) == ["0", "1", "2", "3", "0:8", "8:16", "0:4", "4:8"]
    assert title(svg) == "device 0: [0:4, 0:8]; device 1: [0:4, 8:16]; device 2: [4:8, 0:8]; device 3: [4:8, 8:16]"
    assert svg.startswith("<svg")
    assert 'role="img"' in svg


def test_a_vector_is_a_bar():
    assert texts(layout_svg({"slices": {"0": ["0:3"], "1": ["3:5"]}})) == ["0", "1", "0:3", "3:5"]


def test_what_several_devices_hold_names_all_of_them():
    svg = layout_svg({"slices": {"0": ["0:2"], "1": ["0:2"], "11": ["2:4"], "10": ["2:4"]}})
    assert texts(svg)[:4] == ["0", "1", "10", "11"]
    assert len(set(re.findall(r'fill="(#\w+)"', svg))) == 4
    assert title(svg) == "devices 0 1: [0:2]; devices 10 11: [2:4]"


def test_a_scalar_is_one_cell():
    assert texts(layout_svg({"slices": {"0": [], "1": []}})) == ["0", "1"]


def test_slices_of_more_than_two_dimensions_are_listed():
    svg = layout_svg({"slices": {"0": ["0:1", "0:2", "0:3"], "1": ["1:2", "0:2", "0:3"]}})
    assert texts(svg) == ["device 0: [0:1, 0:2, 0:3]", "device 1: [1:2, 0:2, 0:3]"]


def test_a_device_that_holds_nothing_is_listed_as_such():
    svg = layout_svg({"slices": {"0": ["0:1"], "1": ["1:1"]}})
    assert texts(svg) == ["device 0: [0:1]", "device 1: [1:1] (nothing)"]


def test_uneven_pieces_keep_their_places():
    svg = layout_svg({"slices": {"0": ["0:3"], "1": ["3:6"], "2": ["6:9"], "3": ["9:10"]}})
    assert texts(svg)[4:] == ["0:3", "3:6", "6:9", "9:10"]


@pytest.mark.parametrize(
    "odd",
    [
        *(None, 3, "text", [], {}, {"slices": None}, {"slices": {}}, {"slices": {"0": None}}, {"slices": {"<b>": ["0:1"]}}),
        *(
            {"slices": {"0": ["<script>"]}},
            {"slices": {"0": ["0:1"], "1": []}},
            {"slices": {"0": [3]}},
            {"slices": {None: ["0:1"]}},
        ),
        {"slices": {str(d): [f"{d}:{d + 1}"] for d in range(99)}},
    ],
)
def test_what_is_no_layout_has_no_picture(odd):
    assert layout_svg(odd) == ""
