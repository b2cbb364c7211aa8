"""A state machine of the public API: each call is also made on plain MuJoCo.

Hypothesis draws sequences of calls on three worlds, and reduces one that fails to the
fewest calls. On native the states are compared bit for bit. Warp is another engine:
there the plain worlds take over the state of the simulation after each step.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import mujoco
import numpy as np
import torch
import warp as wp
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.inside import columns_of
from tests.world.api_worlds import DIRECTIONS, FIELDS, NUM_ENVS, START, make, plain_of
from torch import Tensor

from simstate import SimStateError, StaleReadError
from simstate.data.replay import replay
from simstate.record import Recorder, Recording
from simstate.state import Snapshot

WORLD = st.integers(0, NUM_ENVS - 1)
ANY = st.integers(0, 10**6)
"""Chooses an element: the remainder by the number of them."""
NUMBER = st.integers(-500, 500).map(lambda k: k / 1000)
TURN = st.tuples(NUMBER, NUMBER, NUMBER).map(lambda v: [0.9, *v])
"""A quaternion that is not normalised."""
VECTOR = st.tuples(NUMBER, NUMBER, NUMBER)
DERIVED = ("xpos", "xipos", "cvel", "subtree_com", "site_xpos")
CONTACT_TIMES = ("air_time", "contact_time", "last_air_time", "last_contact_time",
                 "greatest_force")  # fmt: skip


@st.composite
def worlds_in_a_form(draw: st.DrawFn) -> tuple[object, list[int]]:
    """Some worlds in one of the forms of `env_ids`, and their ids."""
    ids = draw(st.permutations(range(NUM_ENVS)))[: draw(st.integers(1, NUM_ENVS))]
    mask = torch.zeros(NUM_ENVS, dtype=torch.bool)
    mask[ids] = True
    return draw(
        st.sampled_from(
            [
                (None, list(range(NUM_ENVS))),
                (mask, sorted(ids)),
                (slice(ids[0], None), list(range(ids[0], NUM_ENVS))),
                (list(ids), list(ids)),
                (torch.tensor(ids), list(ids)),
                (np.array(ids), list(ids)),
            ]
        )
    )


WORLDS = worlds_in_a_form()


class ApiMachine(RuleBasedStateMachine):
    """Calls on a simulation and on its twin in plain MuJoCo."""

    engine: ClassVar[str] = "native"
    freshness: ClassVar[str] = "auto"
    with_sensors: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.sim = self.make()
        self.exact = self.engine == "native"
        self.plain = plain_of(self.sim)
        self.robot = self.sim.scene["model"]
        self.memory = self.sim.memory("fuzz", (2,))
        self.prefix = "model/" if self.with_sensors else ""
        """Start of the names of elements in the scene's model."""
        self.kept: list[tuple[Snapshot, Any, list[int]]] = []
        self.recorder: Recorder | None = None
        self.recorded: list[Tensor] = []
        """Positions that the open recording must have."""
        self.folder = tempfile.TemporaryDirectory(prefix="simstate-api-")

    def make(self) -> Any:
        """Return the worlds that a sequence starts with."""
        return make(self.engine, self.freshness, self.with_sensors)

    def teardown(self) -> None:
        """End an open recording, and compare it."""
        if self.recorder is not None:
            self.stop_recording()
        self.folder.cleanup()

    @invariant()
    def is_the_same_as_plain_mujoco(self) -> None:
        got, want = self.sim.state.double().numpy(), self.plain.rows()
        if self.exact:
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(self.memory.numpy(), self.plain.memory)
        if self.plain.watched:
            limbs = self.sim.contacts["limbs"]
            clocks = [limbs.read(name).numpy() for name in CONTACT_TIMES]
            want = self.plain.clocks
            np.testing.assert_allclose(np.stack(clocks, axis=1), want, 1e-9, 1e-9)

    # Steps, resets and snapshots.

    @rule(n=st.integers(1, 3), worlds=WORLDS)
    def step(self, n: int, worlds: tuple[object, list[int]]) -> None:
        env_ids, ids = worlds
        self.sim.step(n, env_ids)
        self.plain.step(n, ids)
        if not self.exact:
            columns = columns_of(self.sim)
            for world in ids:
                row, want = self.row(world), self.plain.row(world)
                for name in ("time", "qpos", "qvel", "act"):
                    part = columns[name]
                    np.testing.assert_allclose(row[part], want[part], 2e-3, 2e-2)
                self.plain.write_row(world, row)
        if self.recorder is not None:
            self.recorded.append(self.sim.data.qpos.clone())

    @rule(worlds=WORLDS)
    def reset(self, worlds: tuple[object, list[int]]) -> None:
        env_ids, ids = worlds
        self.sim.reset(env_ids)
        self.plain.reset(ids)
        if not self.exact:
            self.adopt(ids)

    @rule(worlds=WORLDS, by_file=st.booleans())
    def save(self, worlds: tuple[object, list[int]], by_file: bool) -> None:
        env_ids, ids = worlds
        snapshot = self.sim.snapshot(env_ids)
        if by_file:
            path = Path(self.folder.name) / "saved.npz"
            snapshot.save(path)
            snapshot = Snapshot.load(path)
        self.kept.append((snapshot, self.plain.snapshot(), ids))

    @precondition(lambda self: self.kept)
    @rule(which=ANY, order=st.permutations(range(NUM_ENVS)))
    def restore(self, which: int, order: list[int]) -> None:
        snapshot, plain, taken = self.kept[which % len(self.kept)]
        given = order[: len(taken)]
        self.sim.restore(snapshot, given)
        self.plain.restore(plain, taken, given)

    @rule()
    def rebuild(self) -> None:
        """Go on with plain worlds that have nothing but what the slots hold."""
        if self.exact:
            self.plain.rebuild(self.sim.snapshot().slots, columns_of(self.sim))

    # Writes.

    @rule(name=st.sampled_from(FIELDS), world=WORLD, which=ANY, change=NUMBER,
          way=st.integers(0, 6))  # fmt: skip
    def raw_write(
        self, name: str, world: int, which: int, change: float, way: int
    ) -> None:
        field = getattr(self.sim.data, name)
        flat = which % field[0].numel()
        element = (world, *np.unravel_index(flat, field.shape[1:]))
        self._write_raw(name, field, element, flat, float(field[element]) + change, way)
        row = self.plain.row(world)
        stored = float(getattr(self.sim.data, name)[element])
        row[columns_of(self.sim)[name].start + flat] = stored
        self.plain.write_row(world, row)

    def _write_raw(
        self, name: str, field: Tensor, element: tuple[Any, ...], flat: int,
        value: float, way: int,
    ) -> None:  # fmt: skip
        if way == 0:
            field[element] = value
        elif way == 1:
            field[element[0]].view(-1)[flat] = value
        elif way == 2:
            at = tuple(torch.tensor(int(k)) for k in element)
            field.index_put_(at, torch.tensor(value, dtype=field.dtype))
        elif way == 3:
            start = columns_of(self.sim)[name].start
            self.sim.state[element[0], start + flat] = value
        else:  # not counted by torch: the next call must find it
            if way == 4:
                field.numpy()[element] = value
            elif way == 5:
                field.data[element] = value
            else:
                wp.init()
                wp.to_torch(wp.from_torch(field, requires_grad=False))[element] = value
            self.sim.forward()

    @rule(worlds=WORLDS, pos=NUMBER, vel=NUMBER)
    def write_joints(self, worlds: tuple[object, list[int]], pos: float, vel: float):
        env_ids, ids = worlds
        rows = [[pos + 0.1 * k] for k in range(len(ids))]
        self.robot.write_joint_state_to_sim(rows, [[vel]] * len(ids), env_ids=env_ids)
        for k, world in enumerate(ids):
            joint = self.plain.datas[world].joint(f"{self.prefix}shoulder")
            joint.qpos = np.float64(self.cast(rows[k][0]))
            joint.qvel = np.float64(self.cast(vel))

    @rule(worlds=WORLDS, pos=VECTOR, turn=TURN, lin=VECTOR, ang=VECTOR,
          at_com=st.booleans())  # fmt: skip
    def write_root(
        self, worlds: tuple[object, list[int]], pos: tuple[float, ...],
        turn: list[float], lin: tuple[float, ...], ang: tuple[float, ...], at_com: bool,
    ) -> None:  # fmt: skip
        env_ids, ids = worlds
        place = [pos[0], pos[1], 0.8 + pos[2]]
        self.robot.write_root_link_pose_to_sim([[*place, *turn]] * len(ids), env_ids)
        write = (
            self.robot.write_root_com_velocity_to_sim if at_com
            else self.robot.write_root_link_velocity_to_sim
        )  # fmt: skip
        write([[*lin, *ang]] * len(ids), env_ids)
        for world in ids:
            self.plain.place_root(world, place, turn, lin, ang, at_com)
            row, want = self.row(world), self.plain.row(world)
            tolerance = 1e-12 if self.exact else 1e-5
            np.testing.assert_allclose(row, want, tolerance, tolerance)
        self.adopt(ids)

    @rule(worlds=WORLDS, force=VECTOR, torque=VECTOR, ctrl=NUMBER, act=NUMBER)
    def write_inputs(
        self, worlds: tuple[object, list[int]], force: tuple[float, ...],
        torque: tuple[float, ...], ctrl: float, act: float,
    ) -> None:  # fmt: skip
        env_ids, ids = worlds
        many = len(ids)
        self.robot.write_external_wrench_to_sim(
            [[force]] * many, [[torque]] * many, [2], env_ids
        )
        self.robot.write_ctrl_to_sim([[ctrl]] * many, [1], env_ids)
        self.robot.write_act_to_sim([[act]] * many, env_ids=env_ids)
        self.robot.set_joint_position_target([[ctrl]] * many, env_ids=env_ids)
        for world in ids:
            data = self.plain.datas[world]
            data.xfrc_applied[3] = [self.cast(v) for v in (*force, *torque)]
            data.ctrl[:] = 2 * self.cast(ctrl), self.cast(ctrl)  # of gear 2
            data.act[0] = self.cast(act)

    @rule(worlds=WORLDS, value=NUMBER)
    def set_state(self, worlds: tuple[object, list[int]], value: float) -> None:
        env_ids, ids = worlds
        value = self.cast(value)
        state = {"robots": {"model": {"dof_pos": {"shoulder": value}}}}
        self.sim.set_states(state, env_ids)
        for world in ids:
            self.plain.datas[world].joint(f"{self.prefix}shoulder").qpos = value

    @rule(worlds=WORLDS, source=WORLD, change=NUMBER)
    def write_rows(
        self, worlds: tuple[object, list[int]], source: int, change: float
    ) -> None:
        env_ids, ids = worlds
        row = self.sim.state[source].clone()
        row[1] += change
        self.sim.write_state(row[None], env_ids)
        for world in ids:
            self.plain.write_row(world, row.double().numpy().copy())

    @rule(
        name=st.sampled_from(("body_mass", "body_ipos", "dof_damping", "geom_size")),
        which=ANY, world=WORLD, by_hand=st.booleans(),
    )  # fmt: skip
    def parameter(self, name: str, which: int, world: int, by_hand: bool) -> None:
        tensor = self.sim.expand(name)
        element = (1 + which % (tensor.shape[1] - 1),)
        if tensor.ndim == 3:
            element += (which % tensor.shape[2],)
        value = self.cast(float(tensor[(world, *element)]) + 0.01)
        if by_hand:
            tensor[(world, *element)] = value
        else:
            values = tensor[[world]][:, [element[0]]].clone()
            values[(0, 0, *element[1:])] = value
            self.sim.write_parameter(name, values, [element[0]], [world])
        self.plain.write_parameter(world, name, element, value)

    @rule(world=WORLD, value=NUMBER)
    def remember(self, world: int, value: float) -> None:
        self.memory[world, 1] = value
        self.plain.memory[world, 1] = float(self.memory[world, 1])

    # Recordings.

    @precondition(lambda self: self.recorder is None)
    @rule(every_sample_a_block=st.booleans())
    def start_recording(self, every_sample_a_block: bool) -> None:
        path = Path(self.folder.name) / "run.simrec"
        every = 0.003 if every_sample_a_block else None
        self.recorder = self.sim.record(path, fields=["qpos"], snapshot_every=every)
        self.recorded = [self.sim.data.qpos.clone()]

    @precondition(lambda self: self.recorder is not None)
    @rule()
    def stop_recording(self) -> None:
        assert self.recorder is not None
        self.recorder.close()
        with Recording(self.recorder.path) as found:
            assert found.is_whole
            assert torch.equal(found["qpos"], torch.stack(self.recorded))
            if self.exact:
                again = replay(found, self.make())
                assert again.is_same, str(again)
        self.recorder = None

    # Reads.

    @rule(world=WORLD, which=ANY, name=st.sampled_from(DERIVED))
    def read(self, world: int, which: int, name: str) -> None:
        data, robot = self.plain.evaluated(world), self.robot.data
        self.close(lambda: getattr(self.sim.data, name)[world], getattr(data, name))
        body = 1 + which % (self.sim.model.nbody - 1)
        for read, kind in (
            (lambda: robot.body_link_vel_w, mujoco.mjtObj.mjOBJ_XBODY),
            (lambda: robot.body_com_vel_w, mujoco.mjtObj.mjOBJ_BODY),
        ):
            want = self.plain.velocity(world, body, kind)
            self.close(lambda read=read: read()[world, body - 1], want)
        self.close(lambda: robot.joint_pos[world], data.qpos[7:8])

    @rule(world=WORLD)
    def read_acceleration(self, world: int) -> None:
        self.sim.forward()
        data = self.plain.evaluated(world)
        self.close(lambda: self.sim.data.qacc[world], data.qacc, 1e-2)
        self.close(lambda: self.sim.data.sensordata[world], data.sensordata, 1e-2)

    @rule(world=WORLD, which=ANY)
    def read_dynamics(self, world: int, which: int) -> None:
        model, data = self.plain.models[world], self.plain.evaluated(world)
        body = 1 + which % (model.nbody - 1)
        name, matrix = self.robot.body_names[body - 1], np.zeros((6, model.nv))
        mujoco.mj_jacBody(model, data, matrix[:3], matrix[3:], body)
        self.close(lambda: self.robot.jacobian(name)[world], matrix)
        full = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, full)
        self.close(lambda: self.sim.dynamics.mass_matrix[world], full)
        mujoco.mj_energyPos(model, data)
        potential = data.energy[:1].copy()
        self.close(lambda: self.sim.dynamics.potential_energy[[world]], potential)
        if self.exact:
            count = np.array([float(data.ncon)])
            table = lambda: self.sim.contact_table([world])  # noqa: E731
            self.close(lambda: torch.tensor([float(len(table()))]), count)

    @precondition(lambda self: self.with_sensors)
    @rule(world=WORLD)
    def read_rays(self, world: int) -> None:
        start, want = self.plain.cast(
            world, "model/upper", START, DIRECTIONS, ("model/upper", "model/lower")
        )
        scan = self.sim.rays["scan"]
        self.close(lambda: scan.distance[world], want)
        self.close(lambda: scan.origin_w[world], np.tile(start, (3, 1)))

    @rule(which=ANY)
    def mistake(self, which: int) -> None:
        wrong = self._mistakes()
        try:
            wrong[which % len(wrong)]()
        except SimStateError:
            return
        raise AssertionError(f"mistake {which % len(wrong)} was accepted")

    def _mistakes(self) -> list[Callable[[], object]]:
        nan = float("nan")
        return [
            lambda: self.robot.write_joint_position_to_sim([[0.1, 0.2]]),
            lambda: self.robot.write_joint_position_to_sim([[nan]]),
            lambda: self.robot.write_root_link_pose_to_sim([[0.0] * 7]),
            lambda: self.robot.write_joint_state_to_sim([[0.1]], [[nan]]),
            lambda: self.sim.step(0),
            lambda: self.sim.step(1, [NUM_ENVS]),
            lambda: self.sim.reset([0, 0]),
            lambda: self.sim.expand("body_masss"),
            lambda: self.sim.write_parameter("body_mass", [[nan]], [1]),
            lambda: self.sim.set_states([{"robots": {"model": {"pos": [1.0]}}}]),
            lambda: self.sim.write_state(torch.zeros(1, 3, dtype=self.sim.dtype)),
            lambda: self.sim.memory("fuzz", (5,)),
            lambda: self.sim.data.qposs,
            lambda: self.robot.find_joints("shoulderr"),
        ]

    # What rules share.

    def row(self, world: int) -> np.ndarray:
        """Return a copy of the state of a world."""
        return self.sim.state[world].double().numpy().copy()

    def adopt(self, ids: list[int]) -> None:
        """Give plain worlds the state of the simulation, which was compared."""
        for world in ids:
            self.plain.write_row(world, self.row(world))

    def cast(self, value: float) -> float:
        """Return the value as the engine's dtype holds it."""
        return float(torch.tensor(value, dtype=self.sim.dtype))

    def close(
        self, read: Callable[[], Tensor], want: np.ndarray, warp: float = 2e-3
    ) -> None:
        """Compare a read with MuJoCo's value; a stale one after a forward pass."""
        try:
            got = read()
        except StaleReadError:
            assert self.freshness == "strict"
            self.sim.forward()
            got = read()
        scale = 1.0 + np.abs(want).max(initial=0.0)
        error = np.abs(got.double().numpy() - want.reshape(got.shape)).max(initial=0.0)
        assert error <= (1e-11 if self.exact else warp) * scale
