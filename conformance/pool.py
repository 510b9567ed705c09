"""Hosts that run ahead: every framework in processes of its own, fed without waiting for whoever reads the answers."""

from __future__ import annotations

import collections
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import execnet

from conformance.chips import Chips
from conformance.framework import COMPANIONS, Framework, frameworks
from conformance.lower import Job
from conformance.selection import not_installed

BATCH = 8
"""Jobs in a message. A host has one to two of them in hand, so that it never waits for its parent."""
START_TIMEOUT = 180.0
STARTS = 2
"""Times that a host may fail to start: something else may have ended the first one."""
HOSTS = 8
"""Hosts alive at once, where there are fewer cores: enough for the frameworks that come along."""
MEMORY_LIMIT = 3 * 2**30
"""A host that has grown beyond this is replaced: JAX, for one, keeps every shape that it compiled."""
WORTH_A_SECOND_HOST = 1.5
"""Start another host for a framework when what is left would take this many times its start."""

REFERENCE = "reference"
"""The lane of the jobs that compute expected values: NumPy, in this interpreter."""

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "TOKENIZERS_PARALLELISM": "false",
    "TPU_SKIP_MDS_QUERY": "1",
}


class Answer(NamedTuple):
    """What came of a job: ``seen`` with an observation, or ``crashed``, ``timed-out`` or ``not-run`` with a text."""

    kind: str
    observation: dict[str, Any]
    text: str = ""
    seconds: float = 0.0


class Environment(NamedTuple):
    """What a host said of its process."""

    python: str
    packages: dict[str, str]


class HostFailed(Exception):
    """A host could not be started; the text says why, for the user."""

    def __init__(self, text: str, *, missing: bool = False) -> None:
        super().__init__(text)
        self.missing = missing
        """The framework is not installed: its checks were not run, and nothing is broken."""


class Lane:
    """Jobs for hosts of one kind."""

    def __init__(self, name: str, framework: Framework, spec: str, device: str, several: bool) -> None:
        self.name = name
        self.framework = framework
        self.spec = spec
        self.device = device
        self.several = several
        """Whether the jobs need several devices."""
        self.waiting: collections.deque[tuple[int, Job]] = collections.deque()
        self.hosts = 0
        self.ready: list[Host] = []
        """Hosts that were started to see whether they can be, and are not used yet."""
        self.done = 0
        self.seconds = 0.0
        self.start_seconds = 1.0
        self.failed_starts = 0

    @property
    def left(self) -> float:
        """Seconds that the waiting jobs will take one host, as far as it can be told."""
        return len(self.waiting) * (self.seconds / self.done if self.done else 0.05)


class Pool:
    """Runs jobs on hosts, keeps the answers until they are asked for, and outlives whatever happens to a host."""

    def __init__(self, hosts: dict[str, str], device: str = "cpu", cores: int | None = None) -> None:
        self.hosts = hosts
        self.device = device
        self.cores = cores or _cores()
        self.environments: dict[str, Environment] = {}
        self._chips = Chips(device)
        self._lanes: dict[tuple[str, bool], Lane] = {}
        self._answers: dict[int, Answer] = {}
        self._changed = threading.Condition()
        self._next = 0
        self._closed = False
        self._groups: set[execnet.Group] = set()

    def require(self, names: Iterable[str]) -> None:
        """Start a host of each of these frameworks. Raises HostFailed that says of each why it does not start.

        One that is not installed is no reason, unless its interpreter was chosen for it.
        """
        reasons = []
        for name in names:
            lane = self._lane(name, False)
            chips = self._chips.take(False)
            try:
                lane.ready.append(self._start(lane, chips))
            except HostFailed as failed:
                if not failed.missing:
                    reasons.append(str(failed))
                elif name in self.hosts:
                    reasons.append(f"there is no {name} where it was looked for ({lane.spec})")
            finally:
                self._chips.give(chips)
            if self.device != "cpu":  # or it would keep the chip from others until its turn comes
                self._end_ready(lane)
        if reasons:
            raise HostFailed("\n".join(reasons))

    def submit(self, lane: str, jobs: Iterable[Job]) -> list[int]:
        """Queue jobs for the framework of this name (or REFERENCE); their numbers, to ask for the answers by."""
        numbers = []
        with self._changed:
            for job in jobs:
                self._next += 1
                numbers.append(self._next)
                self._lane(lane, bool(job.devices)).waiting.append((self._next, job))
            self._start_waiting()
        return numbers

    def answer(self, number: int) -> Answer:
        """Wait for the answer of a job, and forget it."""
        with self._changed:
            while number not in self._answers:
                self._changed.wait(1.0)
            return self._answers.pop(number)

    def peek(self, number: int) -> Answer:
        """Wait for the answer of a job that others will ask for as well."""
        answer = self.answer(number)
        self._put(number, answer)
        return answer

    def close(self) -> None:
        """End all hosts at once."""
        with self._changed:
            self._closed = True
            groups = list(self._groups)
        for lane in self._lanes.values():
            self._end_ready(lane)
        for group in groups:
            group.terminate(timeout=0.5)

    def _end_ready(self, lane: Lane) -> None:
        while lane.ready:
            host = lane.ready.pop()
            self._groups.discard(host.group)
            host.end()

    def _lane(self, name: str, several: bool) -> Lane:
        key = (name, several)
        if key not in self._lanes:
            framework = frameworks()["numpy" if name == REFERENCE else name]
            spec = execnet_spec("" if name == REFERENCE else self.hosts.get(name, ""))
            device = "cpu" if name == REFERENCE else self.device
            self._lanes[key] = Lane(name, framework, spec, device, several)
        return self._lanes[key]

    def _start_waiting(self) -> None:
        """A host for each lane that waits and has none, in the order in which they came, as far as there is room."""
        for lane in self._lanes.values():
            busy = sum(each.hosts for each in self._lanes.values())
            if lane.waiting and not lane.hosts and busy < max(self.cores, HOSTS) and self._room(lane):
                self._start_thread(lane)

    def _room(self, lane: Lane) -> bool:
        return lane.name == REFERENCE or self._chips.room(lane.several)

    def _start_thread(self, lane: Lane) -> None:
        lane.hosts += 1
        chips = [] if lane.name == REFERENCE else self._chips.take(lane.several)
        threading.Thread(target=self._serve, args=(lane, chips), daemon=True, name=f"host {lane.name}").start()

    def _serve(self, lane: Lane, chips: list[str]) -> None:
        """Keep one host of the lane busy until nothing waits, then help another lane where that pays."""
        try:
            while lane.waiting and not self._closed:
                try:
                    self._use_one_host(lane, chips)
                except HostFailed as failed:
                    lane.failed_starts += 1
                    if failed.missing or lane.failed_starts == STARTS:
                        self._give_up(lane, Answer("not-run" if failed.missing else "crashed", {}, str(failed)))
        finally:
            with self._changed:
                lane.hosts -= 1
                self._chips.give(chips)
                if not self._closed:
                    self._start_waiting()
                    self._help_another()

    def _help_another(self) -> None:
        if sum(lane.hosts for lane in self._lanes.values()) >= self.cores:
            return
        longest = max(self._lanes.values(), key=lambda lane: lane.left / (lane.hosts + 1))
        if longest.left / (longest.hosts + 1) > WORTH_A_SECOND_HOST * longest.start_seconds and self._room(longest):
            self._start_thread(longest)

    def _use_one_host(self, lane: Lane, chips: list[str]) -> None:
        """Feed one host until nothing waits or it has to go. Whatever it leaves unanswered waits again."""
        with self._changed:
            ready = lane.ready.pop() if lane.ready else None
        host = ready or self._start(lane, chips)
        flying: collections.deque[tuple[int, Job]] = collections.deque()
        renew = worked = False
        try:
            while True:
                if len(flying) <= BATCH and not renew:
                    with self._changed:
                        batch = [lane.waiting.popleft() for _ in range(min(BATCH, len(lane.waiting)))]
                    flying.extend(batch)
                    host.send(batch)
                if not flying:
                    return
                number, job = flying[0]
                reply = host.receive(job.timeout, number)
                flying.popleft()
                if isinstance(reply, Answer):
                    self._put(number, reply)
                    return
                if reply.pop("spoiled"):
                    renew = True
                    if worked:  # an earlier job may be to blame: once more, as the first of another host
                        flying.appendleft((number, job))
                        return
                worked = True
                renew = renew or reply.pop("memory") > MEMORY_LIMIT
                self._count(lane, reply["seconds"])
                self._put(number, _answer(reply))
        finally:
            with self._changed:
                lane.waiting.extendleft(reversed(flying))
                self._groups.discard(host.group)
            host.end()

    def _start(self, lane: Lane, chips: list[str]) -> Host:
        started = time.perf_counter()
        group = execnet.Group()
        with self._changed:
            if self._closed:
                raise HostFailed("the run was ended")
            self._groups.add(group)
        host = Host(group, lane, self._chips.environment(chips) if lane.spec.startswith("popen") else {})
        lane.start_seconds = time.perf_counter() - started
        with self._changed:
            self.environments.setdefault(lane.name, host.environment)
        return host

    def _count(self, lane: Lane, seconds: float) -> None:
        lane.done += 1
        lane.seconds += seconds

    def _give_up(self, lane: Lane, answer: Answer) -> None:
        with self._changed:
            while lane.waiting:
                number, _ = lane.waiting.popleft()
                self._answers[number] = answer
            self._changed.notify_all()

    def _put(self, number: int, answer: Answer) -> None:
        with self._changed:
            self._answers[number] = answer
            self._changed.notify_all()


class Host:
    """One process with one framework."""

    def __init__(self, group: execnet.Group, lane: Lane, environment: dict[str, str]) -> None:
        """Start it, with these variables beside those that every host has. Raises HostFailed with a text for the user."""
        self.group = group
        self.log = ""
        framework = lane.framework
        settings = {
            "device": lane.device,
            "several": lane.several,
            "environment": ENVIRONMENT | environment,
            "runtime": module_source(framework.runtime),
            "packages": [*framework.distributions, *COMPANIONS],
        }
        try:
            self.gateway = group.makegateway(lane.spec)
            self.channel = self.gateway.remote_exec(module_source("conformance.host"))
            self.channel.send(json.dumps(settings))
            hello = json.loads(self.channel.receive(START_TIMEOUT))
        except (OSError, EOFError, execnet.RemoteError, execnet.HostNotFound, ValueError) as error:
            group.terminate(timeout=0.5)
            ended = isinstance(error, (EOFError, BrokenPipeError)) or "closed" in str(error)
            said = "it ended before it answered; is it a Python?" if ended else _last_line(error)
            raise HostFailed(f"the host of {lane.name} did not start ({lane.spec}): {said}") from None
        except execnet.TimeoutError as error:
            group.terminate(timeout=0.5)
            raise HostFailed(f"the host of {lane.name} did not answer within {START_TIMEOUT:.0f} s ({lane.spec})") from error
        if "failed" in hello:
            group.terminate(timeout=0.5)
            if hello["missing"] and f"'{framework.name}'" in hello["failed"]:
                raise HostFailed(not_installed(framework.name), missing=True)
            raise HostFailed(f"{framework.name} does not start ({lane.spec}): {hello['failed']}")
        self.log = hello["log"]
        self.environment = Environment(hello["python"], hello["packages"])

    def send(self, jobs: list[tuple[int, Job]]) -> None:
        """Hand over jobs. JSON of the standard library, since NaN and infinities must survive."""
        try:
            if jobs:
                self.channel.send(json.dumps([job.message(number) for number, job in jobs]))
        except OSError:
            pass  # it has died; receiving will say so

    def receive(self, timeout: float, number: int) -> Any:
        """The reply to this job; or an Answer that says how the host failed to give one."""
        started = time.perf_counter()
        try:
            reply = json.loads(self.channel.receive(timeout))
            return reply if reply["id"] == number else Answer("crashed", {}, "the host answered another job")
        except execnet.TimeoutError:
            return Answer("timed-out", {}, self._wrote() or f"no answer within {timeout:g} s", timeout)
        except (EOFError, OSError, execnet.RemoteError) as error:
            said = self._wrote() or (_last_line(error) if isinstance(error, execnet.RemoteError) else "")
            said = said or f"the process ended without a word{self._status()}"
            return Answer("crashed", {}, said, time.perf_counter() - started)

    def _status(self) -> str:
        """With which exit status it ended, or by which signal, where the process is one of this machine."""
        process: subprocess.Popen[bytes] | None = getattr(self.gateway._io, "popen", None)
        try:
            status = process.wait(5) if process else None
        except subprocess.TimeoutExpired:
            status = None
        if status is None:
            return ""
        return f", by {signal.Signals(-status).name}" if status < 0 else f", with exit status {status}"

    def end(self) -> None:
        self.group.terminate(timeout=0.5)
        if self.log:
            Path(self.log).unlink(missing_ok=True)

    def _wrote(self) -> str:
        """The last lines that the host wrote; nothing where its files are out of reach, on another machine."""
        try:
            return "\n".join(Path(self.log).read_text(errors="replace").strip().splitlines()[-60:])
        except OSError:
            return ""


def module_source(name: str) -> str:
    """The text of a module, which is found and not imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.origin:
        raise HostFailed(f"there is no module {name!r} to send to a host")
    return Path(spec.origin).read_text(encoding="utf-8")


def execnet_spec(text: str) -> str:
    """An execnet specification; the path of an interpreter means that interpreter, nothing means this one."""
    if not text:
        return f"popen//python={sys.executable}"
    return text if "=" in text or "//" in text else f"popen//python={text}"


def _answer(reply: dict[str, Any]) -> Answer:
    seconds = reply.pop("seconds")
    del reply["id"]
    if "not_run" in reply:
        return Answer("not-run", {}, reply["not_run"], seconds)
    return Answer("seen", reply, "", seconds)


def _last_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else ""


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
