"""One direction of flow: a module imports only from those that the package lists before it."""

import ast
import re
from pathlib import Path

import conformance

PACKAGE = Path(conformance.__file__).parent
ORDER = re.findall(r"^    (\w+)  ", conformance.__doc__ or "", re.M)


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "conformance":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("conformance."):
            found.add(node.module.split(".")[1])
    return found - {"__version__", "dialects"}


def test_the_package_lists_every_module():
    assert sorted(ORDER) == sorted(path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__"))


def test_a_module_imports_only_what_comes_before_it():
    for position, name in enumerate(ORDER):
        assert imports(PACKAGE / f"{name}.py") <= set(ORDER[:position]), name


def test_what_runs_in_a_host_imports_nothing_of_the_package():
    for path in [PACKAGE / "host.py", *(PACKAGE / "runtimes").glob("*.py")]:
        assert imports(path) == set(), path


def test_no_module_but_the_runtimes_imports_a_framework():
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "runtimes":
            nodes = list(ast.walk(ast.parse(path.read_text())))
            names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
            names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
            assert not {name.split(".")[0] for name in names} & {"torch", "jax", "tensorflow"}, path
