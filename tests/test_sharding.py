"""Frameworks with one fault each on several devices, which the cases must see; and real ranks beside those of one process."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conformance import library, pool
from conformance.host import __file__ as host_file
from conformance.pool import REFERENCE, Pool
from conformance.record import record

FAULTS = {
    "two devices exchanged": (
        "jax",
        """
        made = jax.sharding.Mesh

        def exchanged(devices, names):
            flat = np.array(devices).reshape(-1)
            flat[[2, 5]] = flat[[5, 2]]
            return made(flat.reshape(devices.shape), names)

        jax.sharding.Mesh = exchanged
        """,
        [
            "placement/two-axes[]",
            "placement/axes-exchanged[]",
            "placement/one-axis[rows-by-x]",
            "resharding/every-pair[grid-whole]",
        ],
    ),
    "axes exchanged": (
        "jax",
        """
        made = jax.sharding.PartitionSpec
        jax.sharding.PartitionSpec = lambda *axes: made(*reversed(axes))
        """,
        ["placement/two-axes[]", "placement/axes-exchanged[]", "placement/one-axis[columns-by-y]"],
    ),
    "a layout that is asked for ignored": (
        "jax",
        """
        jax.lax.with_sharding_constraint = lambda x, layout: x
        """,
        ["programs/constraint-inside[exchanged]", "resharding/every-pair[rows-whole]", "matmul/asked-for[]"],
    ),
    "a sum forgotten": (
        "torch",
        """
        from torch.distributed.tensor import Partial

        Partial._reduce_value = lambda self, tensor, mesh, dimension: tensor
        """,
        ["resharding/partial-sums[whole]", "matmul/three-in-a-row[]", "per-device/parts-declared[]"],
    ),
    "everything gathered": (
        "torch",
        """
        from torch.distributed.tensor import DTensor, Replicate

        redistribute = DTensor.redistribute
        DTensor.redistribute = lambda x, mesh, placements: redistribute(x, mesh, [Replicate(), Replicate()])
        """,
        ["programs/constraint-inside[rows]", "resharding/every-pair[grid-rows]", "matmul/asked-for[]"],
    ),
    "gathered and split again": (
        "torch",
        """
        from torch.distributed.tensor import DTensor, Replicate

        def product(a, b):
            a = a.redistribute(a.device_mesh, [Replicate(), Replicate()]).redistribute(a.device_mesh, a.placements)
            return torch.Tensor.__matmul__(a, b)

        DTensor.__matmul__ = product
        """,
        ["matmul/communication[free]", "matmul/communication[contraction-alike]"],
    ),
    "one replica that is not like the others": (
        "torch",
        """
        import torch.distributed.tensor

        distribute = torch.distributed.tensor.distribute_tensor

        def distribute_tensor(*arguments):
            made = distribute(*arguments)
            made.to_local()._local_tensors[7].add_(1)
            return made

        torch.distributed.tensor.distribute_tensor = distribute_tensor
        """,
        ["placement/replicated[vector]", "placement/one-axis[rows-by-x]", "placement/two-axes[]"],
    ),
    "a layout forgotten": (
        "tensorflow",
        """
        from tensorflow.experimental import dtensor

        dtensor.relayout = lambda x, layout: x
        """,
        ["placement/two-axes[]", "placement/one-axis[rows-by-y]", "programs/constraint-inside[exchanged]"],
    ),
}
"""fault -> framework, what is done to it once it is imported, and the checks that must see it."""


def checks(framework: str, names: list[str]):
    """The checks ``topic/case[row]`` on a framework's first mode that runs them, each with its case's card."""
    found = []
    for name in names:
        topic, _, rest = name.partition("/")
        case, _, row = rest.rstrip("]").partition("[")
        unit = library.unit(library.cases_path() / "sharding" / f"{topic}.yaml")
        fitting = [c for c in unit.checks if (c.framework, c.way, c.row) == (framework, "", row)]
        found.append(next((c, unit.card(c)) for c in fitting if unit.card(c).identity == f"sharding/{topic}/{case}"))
    return found


def seen(framework: str, names: list[str]) -> dict[str, object]:
    """name -> the record of that check."""
    hosts = Pool({})
    try:
        wanted = checks(framework, names)
        numbers = hosts.submit(framework, [check.job for check, _ in wanted])
        norms = [hosts.submit(REFERENCE, [check.reference])[0] if check.reference else 0 for check, _ in wanted]
        made = {}
        for name, (check, card), number, norm in zip(names, wanted, numbers, norms, strict=True):
            made[name] = record(check, card, hosts.answer(number), hosts.answer(norm) if norm else None, {}).line
        return made
    finally:
        hosts.close()


@pytest.mark.parametrize("framework", ["jax", "torch", "tensorflow"])
def test_a_healthy_framework_passes(framework):
    names = sorted({name for mine, _, names in FAULTS.values() if mine == framework for name in names})
    assert {name: line.outcome for name, line in seen(framework, names).items() if not line.passed} == {}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(fault, monkeypatch):
    framework, change, names = FAULTS[fault]
    source = pool.module_source

    def faulty(name: str) -> str:
        # The runtime stays as it is: what it imports is not.
        changed = f"\n\nhealthy = start\n\n\ndef start(device, several):\n    healthy(device, several)\n{change[1:]}"
        changed = "\n".join(line[4:] if line.startswith("        ") else line for line in changed.splitlines())
        return source(name) + (changed if name == f"conformance.runtimes.{framework}" else "")

    monkeypatch.setattr(pool, "module_source", faulty)
    lines = seen(framework, names)
    assert {name: line.observation for name, line in lines.items() if line.passed} == {}
    # By what was observed, that is: the framework has computed, and raised nothing of its own.
    assert {name: line for name, line in lines.items() if "results" not in line.observation} == {}


RANKS = """
import json, os, sys, types

import numpy as np
import torch, torch.distributed
import torch.multiprocessing as processes


def work(rank, jobs, runtime_source, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[3])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=8)
    runtime, host = types.ModuleType("runtime"), types.ModuleType("host")
    exec(compile(runtime_source, "runtime.py", "exec"), runtime.__dict__)
    exec(compile(open(sys.argv[2]).read(), "host.py", "exec"), host.__dict__)
    host.np = np
    answers = []
    for job in jobs:
        grid = runtime.mesh(job["mesh"], job["order"])
        space = {"mesh": grid}
        exec(job["source"], space)
        for name, spec in job["inputs"].items():
            array, dtype = host.array_of(name, spec)
            space[name] = runtime.place(array, dtype, grid, spec["split"], spec["partial"] or {})
        result = eval(job["steps"][0][1], space)
        mine = {"placements": str(result.placements), "local": result.to_local().tolist(), "shape": list(result.to_local().shape)}
        everyone = [None] * 8
        torch.distributed.all_gather_object(everyone, mine)
        answers.append(everyone)
    if rank == 0:
        json.dump(answers, open(f"{folder}/answers.json", "w"))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    given = json.load(open(sys.argv[1]))
    processes.spawn(work, (given["jobs"], given["runtime"], os.path.dirname(sys.argv[1])), nprocs=8)
"""

SAME = [
    *("placement/two-axes[]", "placement/one-axis[columns-by-x]", "placement/two-axes-on-one-dimension[x-then-y]"),
    *("sizes/uneven[ten]", "sizes/uneven[three]", "sizes/uneven-twice[]", "resharding/partial-sums[split]"),
    *("resharding/every-pair[exchanged-grid]", "matmul/split-contraction[grid-rows]", "matmul/idle-axis[]"),
    *("matmul/three-in-a-row[]", "propagation/reductions[max]", "propagation/along-a-split-dimension[softmax]"),
    *("propagation/two-layouts[grid-and-exchanged]", "propagation/lookup[]", "gradients/whole-weight[]"),
]


@pytest.mark.slow
def test_eight_processes_hold_what_eight_ranks_of_one_process_hold(tmp_path):
    wanted = checks("torch", SAME)
    jobs = [check.job.message(number) for number, (check, _) in enumerate(wanted)]
    (tmp_path / "ranks.py").write_text(RANKS)
    (tmp_path / "jobs.json").write_text(json.dumps({"jobs": jobs, "runtime": pool.module_source("conformance.runtimes.torch")}))
    command = [sys.executable, tmp_path / "ranks.py", tmp_path / "jobs.json", Path(host_file), str(20000 + os.getpid() % 20000)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, env=environment, check=True, timeout=600, capture_output=True)
    real = json.loads((tmp_path / "answers.json").read_text())
    hosts = Pool({})
    try:
        numbers = hosts.submit("torch", [check.job for check, _ in wanted])
        answers = [hosts.answer(number).observation for number in numbers]
    finally:
        hosts.close()
    for name, ranks, answer in zip(SAME, real, answers, strict=True):
        layout, (result,) = answer["layout"], answer["results"]
        whole = np.frombuffer(base64.b64decode(result["bytes"]), result["dtype"]).reshape(result["shape"])
        for device, rank in enumerate(ranks):
            bounds = layout["slices"][str(device)]
            part = whole[tuple(slice(*map(int, each.split(":"))) for each in bounds)]
            held = np.array(layout["shards"][str(device)]) if "shards" in layout else part
            assert rank["shape"] == list(part.shape), (name, device)
            np.testing.assert_allclose(np.array(rank["local"]).reshape(rank["shape"]), held, rtol=1e-6, err_msg=name)
            assert rank["placements"] == ranks[0]["placements"], name
