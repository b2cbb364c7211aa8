"""Noise: its streams, what it moves, and how position noise stays on the manifold."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy.linalg import expm
from scipy.spatial.transform import Rotation
from scipy.stats import kstest
from tests.inside import processes_of
from tests.raised import raises

from simstate import Simulation
from simstate.base.errors import InvalidInputError, ShapeError, UnknownNameError
from simstate.integrate import (
    DRI1,
    RK4,
    RS1,
    SMEA,
    SOSRA,
    SOSRI,
    SRA1,
    SRIW1,
    EulerHeun,
    EulerMaruyama,
    OrnsteinUhlenbeck,
    PlatenWeak2,
    QPosState,
    RKMilstein,
    W2Ito1,
)
from simstate.world import Ledger
from simstate.world.random import WorldRandom

ALL = [EulerMaruyama, EulerHeun, RKMilstein, SRA1, SRIW1, PlatenWeak2]
ALL += [DRI1, RS1, W2Ito1, SMEA]  # of every form one
ATTITUDE_MODES = ["lie", "high_order", "manifold"]
CPU = torch.device("cpu")

MIXED = """
<mujoco>
  <option timestep="0.01" gravity="0 0 0"/>
  <worldbody>
    <body>
      <joint name="rail" type="slide" axis="1 0 0"/>
      <geom type="sphere" size="0.1" mass="1"/>
      <body pos="0 0 1">
        <joint name="ball" type="ball"/>
        <geom type="sphere" size="0.1" mass="1"/>
        <body pos="0 0 1">
          <joint name="hinge" axis="0 1 0"/>
          <geom type="box" size="0.1 0.2 0.3" mass="1"/>
        </body>
      </body>
    </body>
    <body pos="5 0 0">
      <freejoint name="free"/>
      <geom type="sphere" size="0.1" mass="1"/>
    </body>
  </worldbody>
</mujoco>
"""
"""A ball joint behind a slide, a free joint behind a hinge: qpos is x q θ p q."""
TWO_SLIDES = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body><joint type="slide" axis="1 0 0"/>
      <geom type="sphere" size="0.1" mass="1"/></body>
    <body pos="0 9 0"><joint type="slide" axis="0 0 1"/>
      <geom type="sphere" size="0.1" mass="3"/></body>
  </worldbody>
</mujoco>
"""
QUATERNIONS, RATES = (slice(1, 5), slice(9, 13)), (slice(1, 4), slice(8, 11))


class Constant:
    """The same diffusion always: block → (sources, width)."""

    def __init__(self, **blocks):
        self.blocks = {
            name: torch.as_tensor(g, dtype=torch.float64) for name, g in blocks.items()
        }
        self.num_sources = next(iter(self.blocks.values())).shape[0]

    def diffusion(self, t, sim):
        return {
            name: g.expand(sim.num_envs, *g.shape) for name, g in self.blocks.items()
        }


def make(scheme, num_envs=4, xml=MIXED, h=0.01, **options):
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.timestep = h
    return Simulation(model, num_envs, integrator=scheme, **options)


def only(joint_slice, diagonal):
    """Diffusion of three sources, one for each of three dofs; (3, 11)."""
    g = np.zeros((3, 11))
    g[:, joint_slice] = np.diag(diagonal)
    return g


def rotations(qpos, where):
    return Rotation.from_quat(qpos[:, where].numpy(), scalar_first=True)


# ---------------------------------------------------------------------- streams


def test_streams_are_standard_normal_and_independent():
    """Over worlds, over draws, over the numbers of a draw, and over seeds."""
    draws, worlds, count = 1000, 6, 5
    a, b = (WorldRandom(Ledger(worlds, CPU), seed) for seed in (3, 4))
    first = torch.stack([a.normal(slice(None), count) for _ in range(draws)]).numpy()
    second = torch.stack([b.normal(slice(None), count) for _ in range(draws)]).numpy()
    assert kstest(first.ravel(), "norm").pvalue > 1e-3
    columns = [
        first[:-1].reshape(draws - 1, -1),
        first[1:].reshape(draws - 1, -1)[:, :8],
        second[:-1].reshape(draws - 1, -1)[:, :8],
    ]
    correlation = np.corrcoef(np.concatenate(columns, axis=1).T)
    off = correlation[~np.eye(len(correlation), dtype=bool)]
    assert np.abs(off).max() < 5 / np.sqrt(draws)


def ou_run(seed=0, num_envs=4, scheme=SRIW1, **options):
    sim = make(scheme(), num_envs, seed=seed, **options)
    sim.add_process(OrnsteinUhlenbeck("gust", [0.5, 0.0], 0.5, 1.0))
    sim.add_noise(Constant(qvel=np.eye(2, 11), qpos=0.1 * np.eye(2, 11)))
    return sim


def values(sim):
    parts = [sim.data.qpos, sim.data.qvel, processes_of(sim)[0].value]
    return torch.cat(parts, dim=1).clone()


@pytest.mark.parametrize(
    "scheme", [EulerMaruyama, SRIW1, PlatenWeak2, DRI1, RS1, W2Ito1]
)
def test_seeds_and_batches(scheme):
    sims = [ou_run(1, 4, scheme), ou_run(1, 4, scheme), ou_run(2, 4, scheme)]
    sims.append(ou_run(1, 1, scheme))
    for sim in sims:
        sim.step(3)
    same, again, other, alone = map(values, sims)
    assert torch.equal(same, again)
    assert torch.equal(same[:1], alone)
    noisy = [0, 1, 14, 24, 25]
    if scheme.strong_order:
        assert ((same - other)[:, noisy] != 0).all()
        assert len(set(same[:, -1].tolist())) == 4  # each world has its own
    else:  # of a few outcomes some come up again
        assert ((same - other)[:, noisy] != 0).any(dim=0).all()
        assert len(set(same[:, -1].tolist())) > 1


def test_a_restored_snapshot_meets_the_same_noise():
    sim = ou_run()
    sim.step(2)
    kept = sim.snapshot()
    sim.step(3)
    want = values(sim)
    sim.restore(kept)
    sim.step(3)
    assert torch.equal(values(sim), want)


def test_only_worlds_that_step_count_steps_and_evaluations():
    sim = ou_run()
    sim.step(3, [2, 0])
    counts = sim.integration.statistics
    assert counts.accepted.tolist() == [3, 0, 3, 0]
    assert (counts.evaluations > 0).tolist() == [True, False, True, False]


def test_a_reset_does_not_change_the_noise_of_other_worlds():
    sim, other = ou_run(), ou_run()
    for each in (sim, other):
        each.step(2)
    sim.reset([1])
    assert processes_of(sim)[0].value[1].tolist() == [0.5, 0.0]
    for each in (sim, other):
        each.step(2)
    rest = [0, 2, 3]
    assert torch.equal(values(sim)[rest], values(other)[rest])
    assert not torch.equal(values(sim)[1], values(other)[1])


# --------------------------------------------------- noise on numbers of the state


def test_brownian_velocity_is_exact_with_the_integral_of_the_noise():
    """v = σ W, x = σ ∫W for SRA1, whatever the step."""
    sigma, h, steps, n = 0.7, 0.1, 5, 3
    rng = np.random.default_rng(0)
    w, z = rng.normal(size=(2, steps, n, 1))
    sim = make(SRA1(), n, h=h)
    sim.add_noise(Constant(qvel=sigma * np.eye(1, 11, 0)))
    # The rail is the root of a tree at rest, and its coordinate is x.
    sim.integration.prescribe_noise(torch.tensor(w), torch.tensor(z))
    sim.step(steps)
    before = np.cumsum(w, axis=0) - w
    np.testing.assert_allclose(sim.data.qvel[:, 0], sigma * w.sum(0)[:, 0], atol=1e-13)
    want = sigma * (z + h * before).sum(0)[:, 0]
    np.testing.assert_allclose(sim.data.qpos[:, 0], want, atol=1e-13)


@pytest.mark.parametrize("scheme", [SRA1, SOSRA, SRIW1, SOSRI])
def test_brownian_velocity_has_the_variances_of_the_closed_form(scheme):
    """One step of v = σ W, x = σ ∫W: Var v = σ² h, Var x = σ² h³/3, Cov = σ² h²/2.

    With 40,000 worlds of two like numbers each, five standard errors are 2.5 %.
    """
    sigma, h, n = 0.7, 0.25, 40_000
    sim = make(scheme(), n, xml=TWO_SLIDES, h=h, seed=3)
    sim.add_noise(Constant(qvel=sigma * np.eye(2)))
    sim.step()
    # Scaled to unit variances, so that they say the same for both and for each step.
    v = sim.data.qvel.numpy() / (sigma * np.sqrt(h))
    x = sim.data.qpos.numpy() / (sigma * np.sqrt(h**3 / 3))
    spread = 5 * np.sqrt(2 / (2 * n))
    assert spread < 0.026
    apart = 2 * x - np.sqrt(3) * v  # what of x does not follow from v
    for got, want in ((v * v, 1), (x * x, 1), (v * x, np.sqrt(3) / 2), (apart**2, 1)):
        assert got.mean() == pytest.approx(want, rel=spread)
    assert abs((apart * v).mean()) < spread
    other = np.array([(v[:, 0] * v[:, 1]).mean(), (x[:, 0] * x[:, 1]).mean()])
    assert (np.abs(other) < 5 / np.sqrt(n)).all()  # each has a source of its own


def test_one_source_moves_two_blocks_alike():
    sim = make(EulerMaruyama(), 64)
    process = OrnsteinUhlenbeck("own", [0.0], 1e9, 1e-9)
    sim.add_process(process)
    g = np.zeros((2, 11))
    g[0, 0] = 2.0
    sim.add_noise(Constant(qvel=g, own=[[-3.0], [4.0]]))
    sim.step(4)
    speed, own = sim.data.qvel[:, 0], process.value[:, 0]
    rest = (own + 1.5 * speed) / 4.0  # what the second source did
    assert float(speed.std()) == pytest.approx(2 * 0.2, rel=0.4)
    assert float(rest.std()) == pytest.approx(0.2, rel=0.4)
    sim = make(EulerMaruyama(), 64)
    process = OrnsteinUhlenbeck("own", [0.0], 1e9, 1e-12)
    sim.add_process(process)
    sim.add_noise(Constant(qvel=g[:1], own=[[-3.0]]))
    sim.step(4)
    torch.testing.assert_close(
        process.value[:, 0], -1.5 * sim.data.qvel[:, 0], rtol=0, atol=1e-9
    )


# ------------------------------------------------------------ noise on attitudes


@pytest.mark.parametrize("attitude", ATTITUDE_MODES)
@pytest.mark.parametrize("scheme", ALL)
def test_position_noise_keeps_quaternions_unit(scheme, attitude):
    sim = make(scheme(attitude=attitude), 16)
    g = 4.0 * np.random.default_rng(2).normal(size=(2, 11))
    sim.add_noise(Constant(qpos=g))
    sim.data.qvel[:] = 3.0
    sim.step(6)
    for where in QUATERNIONS:
        norms = sim.data.qpos[:, where].norm(dim=1)
        assert float((norms - 1).abs().max()) < 1e-12
        assert float(sim.data.qpos[:, where.start].std()) > 0.1  # they did move


@pytest.mark.parametrize("attitude", ATTITUDE_MODES)
def test_small_position_noise_turns_by_its_variance(attitude):
    """σ² t about each body axis, on a ball joint and on a free one, each its own."""
    n, steps, h = 2048, 8, 0.01
    sigma = np.array([0.05, 0.1, 0.15])
    for joint in (0, 1):
        sim = make(EulerMaruyama(attitude=attitude), n)
        sim.add_noise(Constant(qpos=only(RATES[joint], sigma)))
        before = sim.data.qpos.clone()
        sim.step(steps)
        turned = rotations(sim.data.qpos, QUATERNIONS[joint]).as_rotvec()
        want = np.diag(sigma**2 * steps * h)
        spread = np.sqrt((np.outer(np.diag(want), np.diag(want)) + want**2) / n)
        assert (np.abs(np.cov(turned.T) - want) < 4.5 * spread).all()
        rest = [i for i in range(13) if not 0 <= i - QUATERNIONS[joint].start < 4]
        assert torch.equal(sim.data.qpos[:, rest], before[:, rest])


def test_large_position_noise_forgets_the_attitude_as_brownian_motion_does():
    """E[R] after n steps of a Gaussian rotation vector, in closed form."""
    n, steps, h, sigma = 4096, 5, 0.1, 1.0
    sim = make(EulerMaruyama(), n, h=h)
    sim.add_noise(Constant(qpos=only(RATES[1], [sigma] * 3)))
    sim.step(steps)
    matrices = rotations(sim.data.qpos, QUATERNIONS[1]).as_matrix()
    e = sigma**2 * h
    want = ((1 + 2 * (1 - e) * np.exp(-e / 2)) / 3) ** steps * np.eye(3)
    spread = matrices.std(axis=0) / np.sqrt(n)
    assert (np.abs(matrices.mean(axis=0) - want) < 4 * spread).all()


@pytest.mark.parametrize("attitude", ATTITUDE_MODES)
@pytest.mark.parametrize("scheme", ALL)
def test_position_noise_in_a_turning_body_converges_in_distribution(scheme, attitude):
    """E[R] = exp(t (ω̂ + ½ σ̂²)): one step, by quadrature over the noise, order ≥ 1."""
    omega, axis = np.array([0.0, 1.0, 0.5]), np.array([0.8, 0.0, 0.0])
    nodes = [np.polynomial.hermite_e.hermegauss(8)] * 2
    if scheme.tableau.variables not in ("gaussian", "platen"):
        three = np.sqrt(3) * np.array([-1.0, 0.0, 1.0]), np.array([1, 4, 1])
        nodes = [three, (np.array([-1.0, 1.0]), np.array([1, 1]))]
    (x, weights_x), (y, weights_y) = nodes
    weight = np.outer(weights_y, weights_x).ravel()
    weight = weight / weight.sum()
    first, second = (a.ravel()[None, :, None] for a in np.meshgrid(x, y))
    g = np.zeros((1, 11))
    g[0, RATES[1]] = axis

    def hat(v):
        return np.cross(np.eye(3), v)

    errors = []
    for h in (0.1, 0.05):
        w = first * np.sqrt(h)
        z = h / 2 * (w + second * np.sqrt(h / 3))
        sim = make(scheme(attitude=attitude), len(weight), h=h)
        sim.add_noise(Constant(qpos=g))
        sim.data.qvel[:, RATES[1]] = torch.tensor(omega)
        sim.integration.prescribe_noise(torch.tensor(w), torch.tensor(z))
        sim.step()
        mean = np.einsum(
            "n,nij->ij", weight, rotations(sim.data.qpos, QUATERNIONS[1]).as_matrix()
        )
        errors.append(np.abs(mean - expm(h * (hat(omega) + hat(axis) @ hat(axis) / 2))))
    errors = [error.max() for error in errors]
    assert errors[1] < 6e-4
    assert np.log2(errors[0] / errors[1]) > 1.8


@pytest.mark.parametrize("attitude", ATTITUDE_MODES)
def test_pseudo_step_moves_as_mujoco_integrates_positions(attitude):
    """`QPosState.propagate` with a rate and noise: mj_integratePos of their sum."""
    model = mujoco.MjModel.from_xml_string(MIXED)
    rng = np.random.default_rng(5)
    rate, g, w = rng.normal(size=11), rng.normal(size=(2, 11)), rng.normal(size=2)
    start = model.qpos0.copy()
    mujoco.mj_integratePos(model, start, rng.normal(size=11), 1.0)
    small = 1e-4 if attitude == "high_order" else 1.0  # linear, then renormalised
    want = start.copy()
    mujoco.mj_integratePos(model, want, 0.1 * rate * small + small * w @ g, 1.0)
    state = QPosState(torch.tensor(start)[None], attitude)
    state.configure(model)
    state.set_derivative(torch.tensor(rate * small)[None])
    state.set_diffusion(torch.tensor(g * small)[None])
    state.propagate(0.1, pseudo_step=torch.tensor(w)[None])
    np.testing.assert_allclose(state.value[0], want, rtol=0, atol=1e-11)


def test_pseudo_step_of_a_wrong_shape_leaves_the_state():
    model = mujoco.MjModel.from_xml_string(MIXED)
    state = QPosState(torch.tensor(model.qpos0)[None].clone())
    state.configure(model)
    with raises(ShapeError, name="pseudo_step"):
        state.propagate(0.1, pseudo_step=torch.zeros(1, 1))
    state.set_diffusion(torch.ones(1, 2, 11, dtype=torch.float64))
    with raises(ShapeError, name="pseudo_step"):
        state.propagate(0.1, pseudo_step=torch.zeros(1, 3))
    with raises(ShapeError, name="diffusion"):
        state.set_diffusion(torch.ones(1, 11))
    assert torch.equal(state.value[0], torch.tensor(model.qpos0))


@pytest.mark.parametrize("scheme", [EulerHeun, DRI1, W2Ito1])
def test_both_engines_move_alike_with_prescribed_noise(make_sim, scheme):
    """Position, velocity and activation noise at once, to the engine's precision."""
    ends = []
    rng = np.random.default_rng(6)
    w = torch.tensor(0.06 * rng.normal(size=(3, 2, 2)))
    for kind in ("native", "warp"):
        sim = make_sim(kind, 2, integrator=scheme())
        rng = np.random.default_rng(7)
        sizes = {"qpos": sim.model.nv, "qvel": sim.model.nv, "act": sim.model.na}
        blocks = {k: 0.3 * rng.normal(size=(2, v)) for k, v in sizes.items()}
        sim.add_noise(Constant(**blocks))
        sim.integration.prescribe_noise(w, w * 0.002)
        start = sim.data.qpos.clone()
        sim.step(3)
        assert (sim.data.qpos != start).all()
        ends.append([sim.data.qpos.clone(), sim.data.qvel.clone(), sim.data.act])
    for got, want in zip(*ends, strict=True):
        torch.testing.assert_close(got.double(), want.double(), rtol=2e-4, atol=2e-4)


# ----------------------------------------------------------------------- errors


class Gusts(Constant):
    pass


def test_noise_under_a_deterministic_scheme_names_both():
    sim = make(RK4())
    with raises(InvalidInputError, name="Gusts"):
        sim.add_noise(Gusts(qvel=np.eye(1, 11)))
    sim.step()  # and it is not left half added
    with raises(InvalidInputError, name="Gusts"):
        make(None).add_noise(Gusts(qvel=np.eye(1, 11)))


def test_the_error_spells_names_as_they_are():
    with raises(InvalidInputError, name="Gusts"):
        make(RK4()).add_noise(Gusts(qvel=np.eye(1, 11)))


@pytest.mark.parametrize(
    ("blocks", "error", "match"),
    [
        ({"qwel": np.eye(1, 11)}, UnknownNameError, "qwel"),
        ({"act": np.eye(1, 1)}, UnknownNameError, "act"),
        ({"qpos": np.eye(1, 13)}, ShapeError, "diffusion"),
        (
            {"qvel": np.full((1, 11), np.nan)},
            InvalidInputError,
            "diffusion",
        ),
    ],
)
def test_a_bad_diffusion_leaves_the_state(blocks, error, match):
    sim = make(SRIW1())
    sim.add_noise(Gusts(qvel=np.eye(1, 11)))
    sim.step(2)
    before, slots = sim.state.clone(), sim.snapshot().slots
    sim.add_noise(Gusts(**blocks))
    with raises(error, name=match) as caught:
        sim.step()
    assert "Gusts" in str(caught.value)
    assert torch.equal(sim.state, before)
    for name, values in sim.snapshot().slots.items():
        assert torch.equal(values, slots[name]), name


def test_bad_noise_objects_and_increments():
    sim = make(SRIW1())
    with raises(InvalidInputError, name="noise"):
        sim.add_noise(object())
    sim.add_noise(Gusts(qvel=np.eye(2, 11)))
    prescribe = sim.integration.prescribe_noise
    good = torch.zeros(3, 4, 2)
    for bad in (good[0], good[:, :3], good[..., :1]):
        with raises(ShapeError, name="Noise"):
            prescribe(bad)
    with pytest.raises(ShapeError):
        prescribe(good, good[..., :1])
    with raises(InvalidInputError, name="Noise"):
        prescribe(good, good[:2])
    with raises(InvalidInputError, name="Noise"):
        prescribe(good / 0)
    sim.step()  # none of it was kept: the noise is random
    assert float(sim.data.qvel[:, :2].abs().min()) > 0


def test_prescribed_noise_is_followed_by_random_noise():
    sim = make(EulerMaruyama())
    sim.add_noise(Gusts(qvel=np.eye(1, 11)))
    sim.integration.prescribe_noise(torch.full((2, 4, 1), 0.5))
    sim.step(2)
    assert sim.data.qvel[:, 0].tolist() == [1.0] * 4
    sim.step()
    assert len(set(sim.data.qvel[:, 0].tolist())) == 4


def test_a_step_that_raised_gives_its_increments_back():
    sim = make(EulerMaruyama())
    noise = Gusts(qvel=np.full((1, 11), np.nan))
    sim.add_noise(noise)
    sim.integration.prescribe_noise(torch.tensor([1.0, 2.0]).repeat(4, 1).T[..., None])
    with raises(InvalidInputError, name="diffusion"):
        sim.step()
    noise.blocks["qvel"] = torch.eye(1, 11, dtype=torch.float64)
    sim.step()
    assert sim.data.qvel[:, 0].tolist() == [1.0] * 4


def test_increments_of_no_steps_are_refused():
    sim = make(EulerMaruyama())
    sim.add_noise(Gusts(qvel=np.eye(1, 11)))
    with pytest.raises(InvalidInputError):
        sim.integration.prescribe_noise(torch.zeros(0, 4, 1))


def test_increments_for_fewer_sources_than_there_are_now_are_refused():
    sim = make(EulerMaruyama())
    sim.add_noise(Gusts(qvel=np.eye(1, 11)))
    sim.integration.prescribe_noise(torch.zeros(1, 4, 1))
    sim.add_noise(Gusts(qvel=np.eye(1, 11)))
    with pytest.raises(InvalidInputError):
        sim.step()


def test_every_seed_that_a_simulation_takes_seeds_its_noise():
    """The same seed the same path, another one another: large ones too."""
    ends = []
    for seed in (0, 1, 7, 2**40, 2**62, 2**63, 2**63 + 1, 2**64 - 1):
        twice = []
        for _ in range(2):
            sim = make(EulerMaruyama(), seed=seed)
            sim.add_noise(Gusts(qvel=np.eye(1, 11)))
            sim.step(2)
            twice.append(sim.data.qvel[:, 0].clone())
        assert torch.equal(*twice)
        ends += twice[0].tolist()
    assert len(set(ends)) == len(ends) == 8 * 4  # nor are any two worlds alike
    with raises(InvalidInputError, name="seed"):
        make(EulerMaruyama(), seed=-1)


@pytest.mark.parametrize("scheme", [EulerMaruyama, SRIW1, W2Ito1])
def test_seeding_some_worlds_leaves_the_noise_of_the_others(scheme):
    """World 2 of three is reseeded; 0 and 1 continue as in a twin."""
    sim, twin = ou_run(1, 3, scheme), ou_run(1, 3, scheme)
    other = ou_run(9, 3, scheme)
    for each in (sim, twin, other):
        each.step(2)
    sim.rng.seed(9, torch.tensor([2]))
    same = ou_run(9, 3, scheme)  # not yet stepped: its noise is at its start
    same.set_states(sim.get_states())
    gust = processes_of(same)[0]
    gust.value.copy_(processes_of(sim)[0].value)
    for each in (sim, twin, same):
        each.step(3)
    assert torch.equal(values(sim)[:2], values(twin)[:2])
    assert not torch.equal(values(sim)[2], values(twin)[2])
    torch.testing.assert_close(values(sim)[2], values(same)[2], rtol=0, atol=1e-14)
