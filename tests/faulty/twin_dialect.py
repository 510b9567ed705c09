"""The twin's dialect: it says the vocabulary in the vocabulary's own words."""

from conformance.framework import Counting, Framework
from conformance.vocabulary import FUNCTIONS, TRANSFORMS

FRAMEWORK = Framework(
    name="twin",
    distributions=("faulty-frameworks",),
    runtime="twin_runtime",
    module="twin",
    imports="import numpy as np\nimport twin",
    same=frozenset(FUNCTIONS) - TRANSFORMS,
    rows={},
    names={"newaxis": "None"},
    preludes={},
    modes={"eager": "", "compiled": "twin.compile(FUNCTION)"},
    array="twin.array(ARRAY)",
    cast="",
    counting=Counting(before="", function="FUNCTION", swap=("", ""), read="{'traces': FUNCTION.traces}"),
    lacks={"bfloat16": "twin.bfloat16"},
)
