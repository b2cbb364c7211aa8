"""`simstate report`: versions, machine and model, to paste into a bug report."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from importlib.metadata import requires
from typing import Any

import tyro

from simstate.base.mujoco_version import installed_versions
from simstate.cli.answer import Answer
from simstate.cli.inspect import summary
from simstate.cli.model_scene import scene_of
from simstate.cli.options import AnswerCommand

_VARIABLES = ("SIMSTATE_", "MUJOCO_", "WARP_", "OMP_", "CUDA_VISIBLE_DEVICES")
"""Prefixes of relevant environment variables."""


@dataclass
class ReportCommand(AnswerCommand):
    """Print versions, machine, engine and the contents of a model, for a bug report.

    Nothing is sent. The report contains no paths and no names of users or machines.

    Example: simstate report quadruped
    """

    model: tyro.conf.Positional[str | None] = None
    """The model that the report is about: a file or a name."""

    def execute(self) -> Answer:
        """Run the command; return the report."""
        from simstate.cli.inspection import inspect_scene

        facts = machine()
        found = inspect_scene(scene_of(self.model)) if self.model else None
        versions: dict[str, str] = packages()
        width = max(len(name) for name in versions)
        listed = (facts | versions).items()
        lines = [f"{name:<{width}}  {value}" for name, value in listed]
        facts["packages"] = versions
        if found:
            facts["model"] = found
            lines.append(summary("model", found))
        return Answer(facts, lines)


def machine() -> dict[str, Any]:
    """Return facts about the machine."""
    import torch

    from simstate.engine.core import description
    from simstate.engine.threads import available_cpus

    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    settings = {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(_VARIABLES) and not os.path.isabs(value)
    }
    return {
        "native": description(),
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "cores": available_cpus(),
        "gpu": ", ".join(names) or "none that torch sees",
        "settings": settings or "none",
    }


def packages() -> dict[str, str]:
    """Return the installed versions of simstate and its dependencies, by name."""
    lines = ["simstate", "mujoco-core", *(requires("simstate") or [])]
    # A requirement is a name, then extras, versions or markers.
    names = (re.split(r"[\s\[;<>=!~(]", line.strip(), maxsplit=1)[0] for line in lines)
    found = installed_versions(names)
    del found["python"]  # `machine` has it
    return found
