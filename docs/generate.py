"""Writes the parts of the docs that come from the code or from measurements.

    make docs                            # or python docs/generate.py
    python docs/generate.py --oracles    # also runs the oracle suite on all models

`quantities.md` and `fields.md` come from the declarations, the tables of
`performance.md` from benchmarks/last.json and peers.json, those of
`other-simulators.md` from docs/alignment.json, that of `verification.md` from the
oracles, that of `noise.md` from the stochastic schemes, `terms.md` from the functions
and classes of simstate.env, the pages of `reference/` from what each module exports,
`robots.md` from docs/robots.json. Results of trained tasks, between comments in any
page, are those that `simstate tasks` prints.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import re
from pathlib import Path
from typing import Any

from markdown_tables import note, table

from simstate import EntityData, Quantity
from simstate.engine import FIELDS, Stage
from simstate.entity import Entity
from simstate.entity.dynamics import SceneDynamics
from simstate.env import tasks
from simstate.integrate import STOCHASTIC_SCHEMES, Stochastic
from simstate.scene import EntityCfg, SceneCfg, models
from simstate.sensors import ContactSensor, RaySensor
from simstate.simulators import SIMULATORS
from simstate.study import oracles
from simstate.world.declared import Readings

DOCS = Path(__file__).parent
LAST_BENCH = DOCS.parent / "benchmarks" / "last.json"
LAST_PEERS = DOCS.parent / "benchmarks" / "peers.json"
ALIGNMENT = DOCS / "alignment.json"
ENGINES = ("native", "warp")
GROUPS = {
    "Root": ("root_", "projected_gravity", "heading", "default_root"),
    "Bodies": ("body_", "mocap_"),
    "Joints": ("joint_", "default_joint", "soft_joint", "encoder", "ball_joint"),
    "Geoms and sites": ("geom_", "site_"),
    "Tendons": ("tendon_",),
    "Actuators, forces and constraints": ("",),
}
"""Headings of the quantity reference, with how the names below them begin."""

READINGS: dict[str, tuple[type[Readings], str]] = {
    "Contact sensors": (
        ContactSensor,
        "`sim.contacts[name]`, declared by `SceneCfg(contacts={name: ContactCfg(…)})`. "
        "Forces are **on** the named element. See [Contacts](contacts.md).",
    ),
    "Rays": (
        RaySensor,
        "`sim.rays[name]`, declared by `SceneCfg(rays={name: RayCastCfg(…)})`. See "
        "[Rays](rays.md).",
    ),
    "Dynamics": (
        SceneDynamics,
        "`sim.dynamics` refers to the entire scene, `entity.dynamics` to one entity "
        "(without `potential_energy`). See [Dynamics](dynamics.md).",
    ),
}
"""What has readings: the heading of its table, its class, and a line on it."""

STAGES = {
    Stage.STATE: "always current",
    Stage.POSITION: "position",
    Stage.VELOCITY: "velocity",
    Stage.ACCELERATION: "acceleration",
}


QUANTITIES = """# Quantities

<!-- Written by docs/generate.py from EntityData.quantities. -->

`entity.data` has {count} quantities, for all worlds at once, in the engine's dtype
(float64 on native, float32 on warp). Quaternions are (w, x, y, z). `_w` denotes world
axes and `_b` the axes of the root link; `link` denotes the origin of the body frame and
`com` the centre of mass. The same table is available as data:

```python
from simstate import EntityData

q = EntityData.quantities["root_com_lin_vel_b"]
print(q.point_text, "|", q.axes_text, "|", q.unit, "|", q.shape_text)
# centre of mass | root link | m/s | (num_envs, 3)
print(q.reads, q.stage.name)
# ('xipos', 'xquat', 'subtree_com', 'cvel') VELOCITY
```

```bash
simstate quantities --subject root --frame b --unit m/s
```

Quantities without a writer are computed from the state. Assigning to a quantity raises
an error that names the writer. [Freshness](freshness.md) describes when a quantity is
current.
"""
"""First part of the quantity reference."""

RAW_FIELDS = """# Raw fields

<!-- Written by docs/generate.py from simstate.engine.fields. -->

`sim.data` has {count} of MuJoCo's own fields under MuJoCo's names, live, for all
worlds, on both engines. Sizes are those of `MjModel`. State fields may be written in
place; `sim.state` holds their rows side by side, in this order. A write outdates
everything from the given stage on: writing `ctrl` does not affect positions.

```python
from simstate import Simulation
from simstate.scene import models

sim = Simulation(models.spec("quadruped").compile(), num_envs=4)
sim.data.qvel[:, 4] = 1.0  # y of the angular velocity, BODY axes [rad/s]
print(tuple(sim.data.cvel.shape), tuple(sim.state.shape)[0])
# (4, 14, 6) 4
```
"""
"""First part of the table of raw fields."""


def quantities_page() -> str:
    """The quantity reference, from `EntityData.quantities`."""
    parts = [QUANTITIES.format(count=len(EntityData.quantities))]
    left = dict(EntityData.quantities)
    for title, starts in GROUPS.items():
        names = [name for name in left if name.startswith(starts)]
        rows = [_quantity_row(left.pop(name)) for name in names]
        headers = ("quantity", "shape", "point", "axes", "unit")
        parts.append(f"## {title}\n\n{table(headers, rows)}")
    return "\n".join([*parts, _writers(), *map(_readings, READINGS.items())])


def _readings(section: tuple[str, tuple[type[Readings], str]]) -> str:
    """The table of a sensor's readings, from their declarations."""
    title, (owner, text) = section
    rows = [
        (
            f"`{name}`{note(_plain(r.doc))}",
            f"`{r.shape_text}`",
            r.point,
            r.axes,
            r.unit,
        )
        for name, r in owner.readings.items()
    ]
    headers = ("reading", "shape", "point", "axes", "unit")
    return f"## {title}\n\n{text}\n\n{table(headers, rows)}"


def _quantity_row(q: Quantity) -> tuple[str, ...]:
    text = _plain(q.doc) + (f" Writer: `{q.writer}`." if q.writer else "")
    name = f"`{q.name}`{note(text)}"
    return name, f"`{q.shape_text}`", q.point_text, q.axes_text, q.unit


def _plain(doc: str) -> str:
    """A docstring without shape and unit, which have separate columns."""
    text = re.sub(r"\s+", " ", doc)
    text = re.sub(r"\s*[;,]?\s*\(num_envs[^)]*\)", "", text)
    return re.sub(r"\s*\[[^\]]*\]", "", text).strip()


def _writers() -> str:
    """Every writer of Entity with the first line of its docstring."""
    rows = [
        (f"`{name}`{note((inspect.getdoc(method) or '').splitlines()[0])}",)
        for name, method in inspect.getmembers(Entity, inspect.isfunction)
        if name.startswith(("write_", "set_")) and name != "write_defaults_to_sim"
    ]
    return (
        "## Writers\n\n`env_ids` is None, an int, a slice, ints or a boolean mask, "
        "everywhere.\n\n" + table(("method of `Entity`",), rows)
    )


def fields_page() -> str:
    """The table of raw fields, from their declarations."""
    rows = [
        (
            f"`{name}`{note(' '.join(field.doc.split()))}",
            f"`({', '.join(str(s) for s in ('num_envs', *field.shape))})`",
            "yes" if field.is_state else "–",
            "always current" if field.is_state else STAGES[field.stage],
            STAGES[field.stage] if field.is_state else "–",
            field.unit,
            field.axes or "–",
        )
        for name, field in FIELDS.items()
    ]
    headers = ("field", "shape", "state", "current with")
    headers += ("a write outdates", "unit", "axes")
    return RAW_FIELDS.format(count=len(FIELDS)) + "\n" + table(headers, rows)


def oracle_table() -> str:
    """The worst error of each law over all shipped models, on each engine."""
    worst: dict[tuple[str, str], oracles.Check] = {}
    for engine in ENGINES:
        for model in models.NAMES:
            entities = {model: EntityCfg(model=model)}
            scene = SceneCfg(entities=entities, ground=None, timestep=None)
            for check in oracles.check(scene, engine).worst():
                known = worst.get((engine, check.law))
                if known is None or not known.error >= check.error:
                    worst[engine, check.law] = check
            print(f"  {model} on {engine}")
    rows = [
        (law, engine, _size(c.error), _size(c.tolerance), f"{c.entity}, `{c.quantity}`")
        for (engine, law), c in worst.items()
    ]
    headers = ("law", "engine", "worst error", "allowed", "where")
    return table(headers, rows)


def _size(error: float) -> str:
    """An error as it stands in the table; what is exact says so."""
    return "0 (bit for bit)" if error == 0 else f"{error:.0e}"


def bench_table() -> str:
    """The last benchmark's table, and the machine that it ran on."""
    last = json.loads(LAST_BENCH.read_text())
    facts = last["machine"]
    rows = [tuple(cell.replace("|", "/") for cell in row) for row in last["rows"]]
    text = (
        f"{facts['date']}: {facts['processor']}, {facts['cpus']} CPUs, Python "
        f"{facts['python']}, MuJoCo {facts['mujoco']}, torch {facts['torch']}; "
        f"{facts['seconds']} s in total. The load at the start was {facts['load']}"
    )
    busy = facts["load"] > 0.25 * facts["cpus"]
    text += (
        ": other programs used part of the cores, so trust the ratios, which were "
        "measured in turns, rather than the rates.\n\n"
        if busy
        else ".\n\n"
    )
    return text + table(("what", "simstate", "other", "ratio", "spread"), rows)


def peers_table() -> str:
    """Other simulators next to simstate, as measured by `make bench-peers`."""
    last = json.loads(LAST_PEERS.read_text())
    facts = last["machine"]
    rows: list[tuple[str, ...]] = []
    for row in last["rows"]:
        if row["reason"]:
            rows.append((row["peer"], f"not measured: {row['reason']}", "", "", "", ""))
            continue
        worlds = f"{row['worlds']:,}"
        if row["peer_worlds"] != row["worlds"]:
            worlds += f", theirs {row['peer_worlds']}"
        rows.append(
            (
                f"{row['peer']} {row['version']}",
                row["what"],
                worlds,
                f"{row['simstate']:,.0f}",
                f"{row['other']:,.0f}",
                f"{row['simstate'] / row['other']:.2f}",
            )
        )
    text = (
        f"{facts['date']}: {facts['cpus']} CPUs, load {facts['load']}, Python "
        f"{facts['python']}; one thread each, per CPU second.\n\n"
    )
    return text + table(
        ("peer", "what [per CPU second]", "worlds", "simstate", "peer", "ratio"), rows
    )


def alignment_tables() -> str:
    """How far each simulator agrees with MuJoCo, from what `make align` measured."""
    kept = json.loads(ALIGNMENT.read_text())
    parts: list[str] = []
    for name, entry in SIMULATORS.items():
        order = sorted(kept["models"], key=lambda model: model not in models.NAMES)
        rows = [
            _alignment_row(model, kept["models"][model][name])
            for model in order
            if name in kept["models"][model]
        ]
        if rows:
            of = next(f[name] for f in kept["models"].values() if name in f)
            versions = ", ".join(f"{p} {v}" for p, v in of["packages"].items())
            headers = ("model", "kinematics", "size", "step", "remains", "causes")
            headers += ("off by 1 cm",)
            text = f"### {entry.title}\n\nMuJoCo {of['mujoco']}, {versions}.\n\n"
            parts.append(text + table(headers, rows))
    if "policy" in kept:
        parts.append(_policy_table(kept["policy"]))
    return "\n".join(parts)


_CONTACTS = "step with contacts"


def _alignment_row(model: str, found: dict[str, Any]) -> tuple[str, ...]:
    if "skipped" in found:
        return (model, "", "", "", "", f"not taken: {found['skipped']}", "")
    rows = found["rows"]
    steps = [r for q, r in rows.items() if q.startswith("step") and q != _CONTACTS]
    remains = max((r["remainder"] for r in rows.values()), default=0.0)
    lost = [q for q, r in rows.items() if r["verdict"] == "unexplained"]
    causes = "; ".join(found["causes"]) or "none needed"
    at = found["run"]["horizons"]["0.01"]
    off = "never" if at is None else f"after {at:.2g} s"
    if found["run"]["ended"]:
        off += f"; diverged after {found['run']['seconds']:.2g} s"
    return (
        model,
        f"{found['kinematics']:.0e}",
        f"{max((r['size'] for r in steps), default=0.0):.0e}",
        f"{max((r['difference'] for r in steps), default=0.0):.0e}",
        f"{remains:.0e}",
        causes + (f"; UNEXPLAINED: {', '.join(lost)}" if lost else ""),
        off,
    )


def _policy_table(figures: dict[str, Any]) -> str:
    """A policy trained on native, in every simulator that it was played in."""
    first = next(iter(figures.values()))
    rows = [
        (
            SIMULATORS[name].title,
            str(f["num_envs"]),
            f"{f['seconds']:g}",
            str(f["falls"]),
            str(f["diverged"]),
            *(f"{error:.3f}" for error in f["errors"].values()),
        )
        for name, f in ((n, figures[n]) for n in SIMULATORS if n in figures)
    ]
    headers = ("simulator", "worlds", "time [s]", "worlds that fell", "diverged")
    headers += tuple(f"mean error of {name} [m/s]" for name in first["errors"])
    text = (
        f"### A policy in each\n\n`{first['task']}`, trained on native for 340 "
        "updates (`--train.entropy-coef 0.005 --train.init-noise-std 0.8`). MJX, which "
        "is slow on a CPU, played it in fewer worlds and for less time.\n\n"
    )
    return text + table(headers, rows)


def put(page: str, marker: str, text: str) -> str:
    """A page with what stands between two comments replaced."""
    begin, end = f"<!-- {marker} -->\n", f"<!-- end of {marker} -->"
    head, _, rest = page.partition(begin)
    return f"{head}{begin}\n{text}\n{end}{rest.partition(end)[2]}"


NOISE_KINDS = {
    "any": "any",
    "paired": "two sources, or diagonal",
    "diagonal": "one source, or diagonal",
    "additive": "additive",
}


def schemes_table() -> str:
    """The stochastic schemes with their orders and costs."""
    rows = [_scheme_row(scheme) for scheme in STOCHASTIC_SCHEMES.values()]
    headers = ("scheme", "calculus", "noise", "strong", "weak", "ODE", "f", "g")
    return table(headers, rows)


def _scheme_row(scheme: type[Stochastic]) -> tuple[str, ...]:
    one, two, three = (scheme.tableau.num_evaluations(n) for n in (1, 2, 3))
    each = three[1] - two[1]
    first = two[1] - 2 * each
    of_g = f"{first} + {each} k" if each else f"{first}"
    if one[1] != first + each:  # mixed stages come with the second source
        of_g = f"{one[1]}, or {of_g}"
    name = f"`{scheme.name}`"
    if scheme.also_called:
        name += f" ({scheme.also_called})"
    return (
        name,
        "both" if scheme.noise == "additive" else scheme.calculus,
        NOISE_KINDS[scheme.noise],
        f"{scheme.strong_order:g}" if scheme.strong_order else "–",
        f"{scheme.weak_order:g}",
        f"{scheme.deterministic_order}",
        f"{one[0]}",
        of_g,
    )


def noise_page() -> str:
    """noise.md with the present table."""
    return put((DOCS / "noise.md").read_text(), "schemes", schemes_table())


def performance_page() -> str:
    """performance.md with the present table."""
    page = put((DOCS / "performance.md").read_text(), "bench", bench_table())
    return put(page, "peers", peers_table())


def other_simulators_page() -> str:
    """other-simulators.md with the present tables."""
    old = (DOCS / "other-simulators.md").read_text()
    return put(old, "alignment", alignment_tables())


def results_table(names: list[str]) -> str:
    """The results of trained tasks, as `simstate tasks` prints them."""
    found = [tasks.find(name) for name in names]
    rows = [
        (
            f"`{task.name}`",
            str(task.train_cfg().iterations),
            f"{task.core_seconds or '–'}",
            task.trained,
        )
        for task in found
    ]
    return table(("task", "updates", "core-seconds", "measured by `play`"), rows)


def with_results(page: str) -> str:
    """A page with the present results between its comments "results of A, B"."""
    for names in re.findall(r"<!-- results of (.*) -->", page):
        page = put(page, f"results of {names}", results_table(names.split(", ")))
    return page


def throughput(model: str) -> dict[int, float]:
    """World-steps per second by number of worlds, of the last benchmark."""
    figures = json.loads(LAST_BENCH.read_text())["figures"]
    found = {
        int(match[1]): value
        for name, value in figures.items()
        if (match := re.fullmatch(rf"{model} (\d+): world-steps/s", name))
        and math.isfinite(value)
    }
    return dict(sorted(found.items()))


def main() -> None:
    """Write the pages."""
    import verification  # these are next to this script
    from reference_pages import pages as reference_pages
    from robot_pages import robots_page
    from term_pages import terms_page

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracles", action="store_true", help="run the oracle suite")
    args = parser.parse_args()
    pages = {
        "quantities.md": quantities_page(),
        "fields.md": fields_page(),
        "performance.md": performance_page(),
        "other-simulators.md": other_simulators_page(),
        "noise.md": noise_page(),
        "terms.md": terms_page(),
        "robots.md": robots_page(),
        **reference_pages(),
    }
    (DOCS / "reference").mkdir(exist_ok=True)
    page = put((DOCS / "verification.md").read_text(), "runs", verification.table())
    pages["verification.md"] = (
        put(page, "oracles", oracle_table()) if args.oracles else page
    )
    for path in sorted(DOCS.glob("*.md")):
        text = pages.get(path.name, path.read_text())
        if "<!-- results of " in text:
            pages[path.name] = with_results(text)
    for name, text in pages.items():
        (DOCS / name).write_text(text)
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
