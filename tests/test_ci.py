"""What the documentation of the gate tells others to put into their CI is valid, and does what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from conformance.cli import _parser

ROOT = Path(__file__).parent.parent
FILES = {
    "action.yml": "vendor.github-actions",
    "docs/ci/github.yml": "vendor.github-workflows",
    "docs/ci/github-shards.yml": "vendor.github-workflows",
    "docs/ci/gitlab.yml": "vendor.gitlab-ci",
    "docs/ci/pages.yml": "vendor.github-workflows",
}


@pytest.mark.parametrize(("file", "schema"), FILES.items())
def test_a_file_is_as_its_published_schema_says(file, schema):
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(ROOT / file)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def commands(text: str) -> list[str]:
    """The calls of the command in a text, without what a shell adds to them."""
    text = re.sub(r"\$\{\{.*?\}\}", "X", re.sub(r"\\\n\s*", " ", text))
    found = re.findall(
        r"^\s*(?:- |run: |- run: |show it: )?(conformance (?:run|gate|merge|baseline|bisect|report|repro) .*)$", text, re.M
    )
    return [re.split(r" (?:\|\||>|&&) ", command)[0] for command in found]


@pytest.mark.parametrize("file", [*FILES, "docs/gate.md", "docs/publishing.md", "README.md"])
def test_every_command_that_is_shown_can_be_parsed(file):
    found = commands((ROOT / file).read_text())
    assert found or file == "docs/ci/github.yml"
    for command in found:
        words = [word for word in shlex.split(command, comments=True)[1:] if word != "${words[@]}"]
        words = words[: words.index("--")] if "--" in words else words
        _parser().parse_args(words)


ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
INPUTS = {"PACKAGE": "jax", "PIN_FILE": "requirements.txt", "BASELINE": "", "CANDIDATE": ""}


def step(name: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (script,) = [each["run"] for each in ACTION["runs"]["steps"] if each["name"] == name]
    said = {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary"), "GITHUB_BASE_REF": "main"}
    # As GitHub starts it.
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env={**os.environ, **said, **environment}, capture_output=True, text=True)


@pytest.fixture
def pull_request(tmp_path: Path) -> Path:
    """A repository with a bump of jax, and the one that it was cloned from."""
    git = ["git", "-c", "user.name=n", "-c", "user.email=e"]
    origin = tmp_path / "origin"
    origin.mkdir()
    (origin / "requirements.txt").write_text("flax==0.12.8\njax==0.9.2  # pinned\njaxlib==0.9.2\n")
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], cwd=origin, check=True)
    subprocess.run([*git, "clone", "-q", str(origin), str(tmp_path / "mine")], check=True)
    (tmp_path / "mine/requirements.txt").write_text("flax==0.12.8\r\nJAX == 0.10.2\r\njaxlib==0.10.2\r\n")
    return tmp_path / "mine"


def test_the_action_finds_both_releases(pull_request):
    done = step("Which releases", pull_request, **INPUTS)
    assert done.returncode == 0, done.stderr
    assert (pull_request / "output").read_text() == "baseline=jax==0.9.2\ncandidate=JAX==0.10.2\n"


def test_the_action_takes_what_it_is_told(tmp_path):
    said = {"PACKAGE": "", "BASELINE": "old.jsonl", "CANDIDATE": "jax==0.10.2"}
    assert step("Which releases", tmp_path, **{**INPUTS, **said}).returncode == 0
    assert (tmp_path / "output").read_text() == "baseline=old.jsonl\ncandidate=jax==0.10.2\n"


def test_the_action_says_where_nothing_is_pinned(pull_request):
    done = step("Which releases", pull_request, **{**INPUTS, "PACKAGE": "torch"})
    assert done.returncode == 4
    assert "::error::requirements.txt does not pin torch as package==version" in done.stdout


@pytest.mark.parametrize(("status", "changed"), [(0, "changed=false\n"), (1, "changed=true\n"), (2, "")])
def test_the_action_s_status_is_that_of_the_gate(status, changed, tmp_path):
    program = tmp_path / "bin/conformance"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > words\nmkdir -p out; echo text > out/gate.md\nexit {status}\n')
    program.chmod(0o755)
    said = {
        "BASELINE": "jax==1",
        "CANDIDATE": "jax==2",
        "COMPANIONS": "flax==0.12.8\noptax==1\n",
        "PATHS": "my cases/",
        "CONTRACT": "",
    }
    done = step("Gate", tmp_path, **said, OUTPUT="out", PATH=f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == status, done.stderr
    words = (tmp_path / "words").read_text().splitlines()
    assert words[:8] == ["gate", "jax==1", "jax==2", "--with", "flax==0.12.8", "--with", "optax==1", "--path"]
    assert words[8] == "my cases/"
    assert (tmp_path / "summary").read_text() == "text\n"
    output = tmp_path / "output"
    assert (output.read_text() if output.exists() else "") == changed
