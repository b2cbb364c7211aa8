"""Writes what the docs take from the code, so that it cannot go out of date.

    make docs                            # or python docs/generate.py
    python docs/generate.py --oracles    # also runs the oracle suite on all models

`quantities.md` and `fields.md` come from the declarations, the tables of
`performance.md` from benchmarks/last.json and peers.json, those of
`other-simulators.md` from docs/alignment.json, that of `verification.md` from the
oracles, that of `noise.md` from the stochastic schemes, `terms.md` from the functions
and classes of simstate.env, the pages of `reference/` from what each module exports.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import re
from pathlib import Path
from typing import Any

from simstate import EntityData, Quantity
from simstate.engine import FIELDS, Stage
from simstate.entity import Entity
from simstate.entity.dynamics import SceneDynamics
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
        "`sim.dynamics` is of the whole scene, `entity.dynamics` of one entity "
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
(float64 on native, float32 on warp). Quaternions are (w, x, y, z). `_w` is along world
axes, `_b` along the root link's; `link` is the origin of the body frame, `com` the
centre of mass. The same table as data:

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

What has no writer is computed from the state. Assigning to a quantity raises and names
the writer. When a quantity is current is on [the page on freshness](freshness.md).
"""
"""How the quantity reference begins."""

RAW_FIELDS = """# Raw fields

<!-- Written by docs/generate.py from simstate.engine.fields. -->

`sim.data` has {count} of MuJoCo's own fields under MuJoCo's names, live, for all
worlds, on both engines. Sizes are those of `MjModel`. State fields may be written in
place; `sim.state` has their rows side by side, in this order. A write ages everything
from the stage in the fifth column on: writing `ctrl` leaves positions as they are.

```python
from simstate import Simulation
from simstate.scene import models

sim = Simulation(models.spec("quadruped").compile(), num_envs=4)
sim.data.qvel[:, 4] = 1.0  # y of the angular velocity, BODY axes [rad/s]
print(tuple(sim.data.cvel.shape), tuple(sim.state.shape)[0])
# (4, 14, 6) 4
```
"""
"""How the table of raw fields begins."""


def table(headers: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [headers, ("---",) * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def quantities_page() -> str:
    """The quantity reference, from `EntityData.quantities`."""
    parts = [QUANTITIES.format(count=len(EntityData.quantities))]
    left = dict(EntityData.quantities)
    for title, starts in GROUPS.items():
        names = [name for name in left if name.startswith(starts)]
        rows = [_quantity_row(left.pop(name)) for name in names]
        headers = ("name", "shape", "point", "axes", "unit", "what", "writer")
        parts.append(f"## {title}\n\n{table(headers, rows)}")
    return "\n".join([*parts, _writers(), *map(_readings, READINGS.items())])


def _readings(section: tuple[str, tuple[type[Readings], str]]) -> str:
    """The table of a sensor's readings, from their declarations."""
    title, (owner, text) = section
    rows = [
        (f"`{name}`", f"`{r.shape_text}`", r.point, r.axes, r.unit, _plain(r.doc))
        for name, r in owner.readings.items()
    ]
    headers = ("name", "shape", "point", "axes", "unit", "what")
    return f"## {title}\n\n{text}\n\n{table(headers, rows)}"


def _quantity_row(q: Quantity) -> tuple[str, ...]:
    text = _plain(q.doc)
    writer = f"`{q.writer}`" if q.writer else "–"
    shape = f"`{q.shape_text}`"
    return f"`{q.name}`", shape, q.point_text, q.axes_text, q.unit, text, writer


def _plain(doc: str) -> str:
    """A docstring without shape and unit, which have columns of their own."""
    text = re.sub(r"\s+", " ", doc)
    text = re.sub(r"\s*[;,]?\s*\(num_envs[^)]*\)", "", text)
    return re.sub(r"\s*\[[^\]]*\]", "", text).strip()


def _writers() -> str:
    """Every writer of Entity with the first line of its docstring."""
    rows = [
        (f"`{name}`", (inspect.getdoc(method) or "").partition("\n")[0])
        for name, method in inspect.getmembers(Entity, inspect.isfunction)
        if name.startswith(("write_", "set_")) and name != "write_defaults_to_sim"
    ]
    return (
        "## Writers\n\n`env_ids` is None, an int, a slice, ints or a boolean mask, "
        "everywhere.\n\n" + table(("method of `Entity`", "what it writes"), rows)
    )


def fields_page() -> str:
    """The table of raw fields, from their declarations."""
    rows = [
        (
            f"`{name}`",
            f"`({', '.join(str(s) for s in ('num_envs', *field.shape))})`",
            "yes" if field.is_state else "–",
            "always current" if field.is_state else STAGES[field.stage],
            STAGES[field.stage] if field.is_state else "–",
            field.unit,
            field.axes or "–",
            re.sub(r"\s+", " ", field.doc),
        )
        for name, field in FIELDS.items()
    ]
    headers = (
        "field", "shape", "state", "current with", "a write ages", "unit", "axes",
        "what",
    )  # fmt: skip
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
        f"{facts['seconds']} s in all. The load before it began was {facts['load']}"
    )
    busy = facts["load"] > 0.25 * facts["cpus"]
    text += (
        ": other programs took part of the cores, so trust the ratios, which were "
        "measured in turns, and not the rates.\n\n"
        if busy
        else ".\n\n"
    )
    return text + table(("what", "simstate", "other", "ratio", "spread"), rows)


def peers_table() -> str:
    """Other simulators beside simstate, from what `make bench-peers` measured."""
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
    import verification
    from reference_pages import pages as reference_pages  # beside this script
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
        **reference_pages(),
    }
    (DOCS / "reference").mkdir(exist_ok=True)
    page = put((DOCS / "verification.md").read_text(), "runs", verification.table())
    pages["verification.md"] = (
        put(page, "oracles", oracle_table()) if args.oracles else page
    )
    for name, text in pages.items():
        (DOCS / name).write_text(text)
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
