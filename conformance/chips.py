"""The accelerators of this machine, and which of them a host sees: one each, as long as its jobs need no more."""

from __future__ import annotations

import collections
import os
import re
from pathlib import Path

_NAMED = {"cuda": "CUDA_VISIBLE_DEVICES", "tpu": "TPU_VISIBLE_CHIPS"}
"""What tells a process which of them are its own."""

_FILES = {"cuda": ("/dev", r"nvidia(\d+)"), "tpu": ("/dev", r"accel(\d+)")}
_VFIO = ("/dev/vfio", r"(\d+)")
"""Where newer machines have their TPUs."""


class Chips:
    """The chips of a device, and how many hosts have each. A GPU may be shared by hosts; a TPU has one process at a time."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.users = collections.Counter(dict.fromkeys(visible(device), 0))

    def room(self, whole: bool) -> bool:
        """Whether another host can have a chip, or all of them."""
        if self.device != "tpu":
            return True
        free = [chip for chip, users in self.users.items() if not users]
        return len(free) == len(self.users) if whole else bool(free)

    def take(self, whole: bool) -> list[str]:
        """The chips of one more host: those with the fewest hosts first."""
        taken = list(self.users) if whole else sorted(self.users, key=lambda chip: self.users[chip])[:1]
        self.users.update(taken)
        return taken

    def give(self, taken: list[str]) -> None:
        """Take them back from a host that has ended."""
        self.users.subtract(taken)

    def environment(self, taken: list[str]) -> dict[str, str]:
        """Variables by which a process sees these chips alone; none where it may see all that there are."""
        if len(taken) in (0, len(self.users)):
            return {}
        alone = {"TPU_CHIPS_PER_PROCESS_BOUNDS": "1,1,1", "TPU_PROCESS_BOUNDS": "1,1,1"} if self.device == "tpu" else {}
        return {_NAMED[self.device]: ",".join(taken), **alone}


def visible(device: str) -> list[str]:
    """The names of this machine's chips, as far as this process may see them; one where they cannot be told apart."""
    named = os.environ.get(_NAMED.get(device, ""), "")
    if named:
        return named.split(",")
    places = [_FILES[device], _VFIO] if device == "tpu" else [_FILES[device]] if device in _FILES else []
    for folder, pattern in places:
        names = [match[1] for file in Path(folder).glob("*") if (match := re.fullmatch(pattern, file.name))]
        if names:
            return sorted(names, key=int)
    return ["0"]
