"""Parts of an identification by closed forms: windows, states, information, files."""

from __future__ import annotations

import json

import mujoco
import numpy as np
import pytest
import scipy.stats
import torch

from simstate import Simulation
from simstate.base.errors import InvalidInputError
from simstate.record import LogColumn
from simstate.study.identification.fit_report import draw_curves, write_report
from simstate.study.identification.fitted_model import fitted_model
from simstate.study.identification.fitted_parameters import FittedParameters
from simstate.study.identification.free_parameters import FreeParameter, parse_free
from simstate.study.identification.information import information, reduced
from simstate.study.identification.signals import Signal, Signals
from simstate.study.identification.window_states import (
    States,
    measured_states,
    state_noise,
)
from simstate.study.identification.windows import Windows, cut_windows

STEP = 0.01


def column(name: str, time, values, names=()) -> LogColumn:
    values = np.asarray(values, float)
    values = values[:, None] if values.ndim == 1 else values
    return LogColumn(name, np.asarray(time, float), values, tuple(names))


def signal(col: LogColumn, *addresses: tuple[str, int]) -> Signal:
    width = col.values.shape[1]
    return Signal(
        col, lambda: torch.zeros(0), tuple(range(width)), addresses or (("", 0),)
    )


def signals(*outputs: Signal, control: LogColumn | None = None) -> Signals:
    return Signals(outputs, control, ())


# Windows.


def test_windows_hold_each_sample_once_at_its_place():
    rng = np.random.default_rng(0)
    time = 0.3 + np.cumsum(rng.uniform(0.002, 0.012, 300))
    values = rng.normal(size=(300, 2))
    one = signals(signal(column("q", time, values), ("", 0), ("", 0)))
    windows = cut_windows((one,), STEP, 0.2)
    assert windows.steps == 20
    assert len(windows) == int((time[-1] - time[0]) / 0.2)
    np.testing.assert_allclose(windows.start, time[0] + 0.2 * np.arange(len(windows)))
    (found,) = windows.samples
    at = windows.start[found.window] + (found.step + found.part) * STEP
    inside = time <= windows.start[-1] + 0.2 + 1e-9
    np.testing.assert_allclose(at, time[inside], atol=1e-9)
    np.testing.assert_array_equal(found.values, values[inside])
    assert ((found.part >= 0.0) & (found.part < 1.0)).all()
    assert found.step.max() <= 20
    assert windows.is_continued.tolist() == [True] * (len(windows) - 1) + [False]


def test_samples_at_time_steps_are_exactly_there():
    time = 0.5 + np.arange(101) * STEP
    one = signals(signal(column("q", time, np.arange(101.0))))
    windows = cut_windows((one,), STEP, 0.25)
    (found,) = windows.samples
    assert len(windows) == 4
    assert not found.part.any()
    # The first sample of a log is in its first window, those at ends in the earlier.
    assert found.step[:27].tolist() == [*range(26), 1]
    assert found.window[:27].tolist() == [0] * 26 + [1]
    assert found.values[:, 0].tolist() == list(range(101))


def test_windows_of_several_logs_end_with_their_log():
    logs = tuple(
        signals(signal(column("q", start + np.arange(n) * 0.02, np.arange(n))))
        for start, n in ((0.0, 56), (7.0, 81))
    )
    windows = cut_windows(logs, STEP, 0.5)
    assert windows.log == (0, 0, 1, 1, 1)
    np.testing.assert_allclose(windows.start, [0.0, 0.5, 7.0, 7.5, 8.0])
    assert windows.is_continued.tolist() == [True, False, True, True, False]
    (found,) = windows.samples
    firsts = [found.values[found.window == w][0, 0] for w in range(5)]
    assert firsts == [0.0, 26.0, 0.0, 26.0, 51.0]
    part = windows.select(slice(-2, None))
    assert part.log == (1, 1)
    np.testing.assert_allclose(part.start, [7.5, 8.0])
    # A window after another log's starts with its own first sample.
    assert part.samples[0].values[0, 0] == 25.0


def test_the_length_of_windows_by_default():
    time = np.arange(401) * 0.02
    one = signals(signal(column("q", time, time)))
    assert cut_windows((one,), STEP, None).steps == 100  # at most 1 s
    short = signals(signal(column("q", time[:81], time[:81])))
    assert cut_windows((short,), STEP, None).steps == 20  # an eighth of 1.6 s
    slow = signals(signal(column("q", np.arange(16) * 0.1, np.arange(16))))
    assert cut_windows((slow,), STEP, None).steps == 40  # four samples


@pytest.mark.parametrize(
    ("seconds", "fits"),
    [(0.8, True), (0.81, True), (0.83, False), (0.08, True), (0.07, False),
     (0.004, False)],
)  # fmt: skip
def test_windows_fit_twice_and_have_four_samples(seconds, fits):
    time = np.arange(81) * 0.02
    one = signals(signal(column("q", time, time)))
    if fits:
        cut_windows((one,), STEP, seconds)
    else:
        with pytest.raises(InvalidInputError):
            cut_windows((one,), STEP, seconds)


def test_windows_are_where_all_columns_are():
    q = signal(column("q", np.arange(100) * 0.02, np.arange(100)))
    v = signal(column("v", 0.1 + np.arange(80) * 0.02, np.arange(80)))
    ctrl = column("ctrl", 0.2 + np.arange(14) * 0.1, np.arange(14))
    windows = cut_windows((signals(q, v, control=ctrl),), STEP, 0.3)
    # From the first command to a tenth of a second after the last one.
    np.testing.assert_allclose(windows.start, 0.2 + 0.3 * np.arange(4))
    apart = signal(column("v", 9.0 + np.arange(80) * 0.02, np.arange(80)))
    with pytest.raises(InvalidInputError):
        cut_windows((signals(q, apart),), STEP, 0.3)


@pytest.mark.parametrize("delay", [0.0, 0.013, 0.3])
def test_commands_are_means_of_held_values(delay):
    rng = np.random.default_rng(1)
    time = np.cumsum(rng.uniform(0.01, 0.05, 60))
    values = rng.normal(size=(60, 2))
    ctrl = column("ctrl", time, values)
    start = np.array([time[0] - 0.1, 0.5, time[-1] - 0.05])
    windows = Windows((signals(control=ctrl),), (0, 0, 0), start, 10, STEP)
    found = windows.controls(delay)
    assert found.shape == (3, 10, 2)
    for w, start in enumerate(windows.start):
        for k in range(10):
            fine = start - delay + (k + (np.arange(4000) + 0.5) / 4000) * STEP
            held = np.clip(np.searchsorted(time, fine, "right") - 1, 0, 59)
            np.testing.assert_allclose(found[w, k], values[held].mean(0), atol=2e-3)
    none = Windows((signals(),), (0, 0), np.zeros(2), 10, STEP)
    assert none.controls(0.0).shape == (2, 10, 0)


MODEL = """
<mujoco><worldbody>
  <body><freejoint name="base"/><geom size="0.1" mass="1"/>
    <body pos="0.2 0 0"><joint name="hip" axis="0 1 0"/><geom size="0.1" mass="2"/>
      <body pos="0.2 0 0"><joint name="knee" axis="0 1 0"/><geom size="0.05" mass="3"/>
    </body></body></body>
</worldbody></mujoco>
"""


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(MODEL)


def test_states_are_those_of_the_motion(model):
    """Parabolas of time are found exactly; rates of what has no velocity, too."""
    time = np.arange(200) * 0.01
    base = 0.3 + 0.5 * time - 0.2 * time**2
    hip, knee = 0.1 + 0.7 * time + 0.4 * time**2, -0.2 + 0.3 * time
    q = signal(
        column("q", time, np.stack([base, hip, knee], 1)),
        ("qpos", 1), ("qpos", 7), ("qpos", 8),
    )  # fmt: skip
    v = signal(column("v", time, 5.0 + time), ("qvel", 7))
    default = np.array([0.4, 0.0, 0.6, 0.5, 0.5, 0.5, 0.5, 0.0, 0.0])
    start = np.array([0.0, 0.55, 1.4])
    windows = Windows((signals(q, v),), (0, 0, 0), start, 20, STEP)
    found = measured_states(windows, model, default)
    assert found.width == 2 * model.nv
    for w, t in enumerate(start):
        wanted = default.copy()
        wanted[[1, 7, 8]] = (0.3 + 0.5 * t - 0.2 * t**2, 0.1 + 0.7 * t + 0.4 * t**2,
                             -0.2 + 0.3 * t)  # fmt: skip
        np.testing.assert_allclose(found.qpos[w], wanted, atol=1e-9)
        rates = np.zeros(model.nv)
        rates[[1, 6, 7]] = 0.5 - 0.4 * t, 0.7 + 0.8 * t, 5.0 + t
        np.testing.assert_allclose(found.qvel[w], rates, atol=1e-6)


def test_attitudes_of_either_sign_are_one_state(model):
    time = np.arange(60) * 0.01
    half = 0.4 * time
    quat = np.stack([np.cos(half), np.sin(half), 0 * time, 0 * time], 1)
    quat[29:] *= -1.0
    q = signal(column("root_quat", time, quat), *(("qpos", k) for k in range(3, 7)))
    assert q.is_quaternion
    windows = Windows((signals(q),), (0,), np.array([0.3]), 5, STEP)
    found = measured_states(windows, model, np.zeros(9))
    wanted = np.array([np.cos(0.12), np.sin(0.12), 0.0, 0.0])
    assert abs(found.qpos[0, 3:7] @ wanted) == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(found.qvel[0, 3:6], [0.8, 0.0, 0.0], atol=1e-4)


def test_a_sudden_motion_is_not_averaged():
    time = np.arange(60) * 0.01
    values = np.where(time < 0.3, 0.0, 30.0 * (time - 0.3))
    q = signal(column("q", time, values), ("qpos", 0))
    text = (
        "<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>"
    )
    model = mujoco.MjModel.from_xml_string(text)
    windows = Windows((signals(q),), (0,), np.array([0.34]), 5, STEP)
    found = measured_states(windows, model, np.zeros(1))
    assert found.qpos[0, 0] == pytest.approx(1.2, abs=0.02)
    assert found.qvel[0, 0] == pytest.approx(30.0, rel=0.05)


def test_noise_of_states_is_that_of_what_measures_them(model):
    time = np.arange(50) * 0.02
    q = signal(column("q", time, np.zeros((50, 3))),
               ("qpos", 2), ("qpos", 4), ("qpos", 8))  # fmt: skip
    v = signal(column("v", time, np.zeros((50, 1))), ("qvel", 6))
    windows = Windows((signals(q, v),), (0,), np.zeros(1), 5, STEP)
    found = state_noise(windows, model, [np.array([0.1, 0.2, 0.3]), np.array([7.0])])
    pos, vel = np.full(8, 1e-3), np.full(8, 1e-3 * 50)
    pos[2], pos[4], pos[7] = 0.1, 0.2, 0.3
    vel[2], vel[4], vel[7], vel[6] = 5.0, 10.0, 15.0, 7.0
    np.testing.assert_allclose(found, np.concatenate([pos, vel]))


def test_noise_of_a_signal_is_that_of_its_third_differences():
    rng = np.random.default_rng(2)
    time = np.arange(5000) * 0.01
    smooth = np.stack([np.sin(time), 0 * time + 2.0], 1)
    noisy = signal(column("q", time, smooth + rng.normal(0, [0.1, 0.02], (5000, 2))))
    np.testing.assert_allclose(noisy.noise(), [0.1, 0.02], rtol=0.05)
    clean = signal(column("q", time, smooth))
    floor = 1e-5 * smooth.std(0) + 1e-9
    np.testing.assert_allclose(clean.noise(), floor, rtol=1e-9)
    few = signal(column("q", time[:7], 100.0 * smooth[:7]))
    spread = 100.0 * smooth[:7].std(0)
    np.testing.assert_allclose(few.noise(), np.maximum(0.01 * spread, 1e-9), rtol=1e-9)


def test_the_width_of_states():
    states = States(np.zeros((2, 9)), np.zeros((2, 8)), np.zeros((2, 3)))
    assert states.width == 19


# Information.


def free(name: str, unit: str = "kg", nominal: float = 2.0, **changes) -> FreeParameter:
    given = {"kind": "field", "low": 0.0, "high": 10.0, "attribute": "mass"}
    return FreeParameter(name, unit=unit, nominal=nominal, **{**given, **changes})


def test_covariance_and_intervals_are_those_of_least_squares():
    rng = np.random.default_rng(3)
    parameters = [free("a"), free("b", nominal=0.5), free("c", "m", attribute="com")]
    scales = np.array([2.0, 0.5, 1.0])
    jacobian, residual = rng.normal(size=(40, 5)), rng.normal(size=40)
    theta = np.array([3.0, 0.2, -0.4])
    found = information(parameters, theta, residual, jacobian, 0.9)
    # By the parameters themselves, with two nuisance columns.
    plain = jacobian / np.append(scales, [1.0, 1.0])
    variance = residual @ residual / 35
    wanted = variance * np.linalg.inv(plain.T @ plain)[:3, :3]
    np.testing.assert_allclose(found.covariance, wanted, rtol=1e-6)
    factor = scipy.stats.t.ppf(0.95, 35)
    np.testing.assert_allclose(found.widths, factor * np.sqrt(np.diag(wanted)))
    assert found.unknown == ()
    assert found.is_known.all()


def test_information_without_nuisance_is_a_schur_complement():
    rng = np.random.default_rng(4)
    jacobian = rng.normal(size=(20, 6)) * [1.0, 1e4, 1e-3, 5.0, 1e3, 1.0]
    jacobian[:, 5] = jacobian[:, 4]  # the same nuisance twice
    first, rest = jacobian[:, :3], jacobian[:, 3:5]
    cross = rest.T @ first
    wanted = first.T @ first - cross.T @ np.linalg.solve(rest.T @ rest, cross)
    np.testing.assert_allclose(reduced(jacobian, 3), wanted, rtol=1e-6)
    jacobian[:, 1] = 0.0
    assert not reduced(jacobian, 3)[1].any()


@pytest.mark.parametrize(
    ("columns", "units", "said"),
    [
        ((1.0, -1.0), ("kg", "kg"), "difference"),
        ((1.0, 1.0), ("kg", "kg"), "sum"),
        ((1.0, 1.0), ("kg", "N"), "product"),
        ((1.0, -1.0), ("kg", "N"), "ratio"),
        ((1.0, -0.3), ("kg", "N"), "combination"),
    ],
)
def test_combinations_that_a_log_does_not_determine(columns, units, said):
    """Residuals depend on a·p + b·q only, and on a third parameter."""
    rng = np.random.default_rng(5)
    parameters = [free("p", units[0]), free("q", units[1]), free("r")]
    both = rng.normal(size=60)
    jacobian = np.stack([columns[0] * both, columns[1] * both, rng.normal(size=60)], 1)
    residual = 0.01 * rng.normal(size=60)
    found = information(parameters, np.full(3, 2.0), residual, jacobian, 0.95)
    (sentence,) = found.unknown
    assert sentence.startswith("p and q: only ")
    assert said in sentence
    assert found.is_known.tolist() == [False, False, True]
    assert found.widths[2] < 0.1
    assert found.widths[0] > 1e3


def test_three_parameters_and_one_alone_that_nothing_determines():
    rng = np.random.default_rng(6)
    parameters = [free(name) for name in "pqrs"]
    both = rng.normal(size=60)
    jacobian = np.stack([both, both, both, 0.0 * both], 1)
    residual = 0.01 * rng.normal(size=60)
    found = information(parameters, np.full(4, 2.0), residual, jacobian, 0.95)
    assert found.unknown[0].startswith("s: this log has no information")
    assert all(text.startswith(("p", "q")) for text in found.unknown[1:])
    assert not found.is_known.any()


def test_scales_and_starts_of_parameters():
    assert free("a", nominal=3.0).scale == 3.0
    assert free("a", nominal=0.4).scale == 0.4
    assert free("a", nominal=0.0).scale == 1.0
    assert free("a", nominal=3.0, attribute="com").scale == 1.0
    assert free("a", nominal=3.0, kind="delay").scale == 1.0
    assert free("a", nominal=3.0).start == 3.0
    assert free("a", nominal=-1.0).start == pytest.approx(0.01)
    assert free("a", nominal=10.0).start == pytest.approx(9.99)


# Distributions of parameters.


@pytest.fixture(scope="module")
def sim(model) -> Simulation:
    return Simulation(model, 3)


@pytest.fixture(scope="module")
def fitted(sim) -> FittedParameters:
    parameters = parse_free(sim, "joints hip knee: damping 0 .. 4, armature 0 .. 2")
    assert len(parameters) == 4
    mean = np.array([1.0, 2.0, 0.5, 1.5])
    root = np.diag([0.1, 0.2, 0.05, 0.1])
    root[1, 0], root[3, 2] = 0.3, -0.08
    return FittedParameters(tuple(parameters), mean, root @ root.T)


def test_draws_have_mean_and_covariance_and_stay_in_bounds(fitted):
    normals = torch.randn(20000, 4, generator=torch.Generator().manual_seed(0))
    drawn = fitted.sample(normals).numpy()
    np.testing.assert_allclose(drawn.mean(0), fitted.mean, atol=0.02)
    np.testing.assert_allclose(np.cov(drawn.T), fitted.covariance, atol=0.01)
    far = fitted.sample(torch.tensor([[99.0] * 4, [-99.0] * 4])).numpy()
    np.testing.assert_allclose(far[:, 1], [4.0, 0.0])
    wide = FittedParameters(fitted.parameters, fitted.mean, 1e12 * np.eye(4))
    (draw,) = wide.draws().values()
    made = draw.make(torch.eye(4, dtype=torch.float64))
    spans = np.array([one.high - one.low for one in fitted.parameters])
    np.testing.assert_allclose(np.diag(made.numpy()) - fitted.mean, spans, rtol=1e-6)
    none = FittedParameters(fitted.parameters, fitted.mean, np.zeros((4, 4)))
    np.testing.assert_allclose(none.sample(normals[:5]), [fitted.mean] * 5, atol=1e-6)


def test_draws_are_written_to_each_world(fitted, model):
    sim = Simulation(model, 3)
    values = torch.tensor([[1.0, 2.0, 0.5, 1.5], [0.3, 0.4, 0.1, 0.2]])
    assert fitted.write(sim, values, [2, 0]) == []
    by_name = {one.name: k for k, one in enumerate(fitted.parameters)}
    for joint, dof in (("hip", 6), ("knee", 7)):
        for what, field in (
            ("damping", "dof_damping"), ("armature", "dof_armature")
        ):  # fmt: skip
            (k,) = [k for n, k in by_name.items() if joint in n and what in n]
            written = sim.expand(field)[:, dof].tolist()
            nominal = float(getattr(model, field)[dof])
            wanted = [values[1, k], nominal, values[0, k]]
            assert written == pytest.approx([float(x) for x in wanted])


def test_a_delay_is_written_to_all_actuators_with_a_history():
    xml = """<mujoco><option timestep="0.01"/><worldbody>
      <body><joint name="a"/><geom size=".1"/>
      <body><joint name="b" damping="2"/><geom size=".1" pos=".1 0 0"/></body></body>
      </worldbody><actuator><motor joint="a" delay="0.03" nsample="N"/>
      <motor joint="b" delay="0.02" nsample="5"/></actuator></mujoco>"""
    values = torch.tensor([[0.04, 1.5], [0.01, 0.5]])
    for samples, missing in (("4", []), ("3", ["delay"])):
        model = mujoco.MjModel.from_xml_string(xml.replace("N", samples))
        sim = Simulation(model, 3)
        parameters = tuple(parse_free(sim, "delay 0 .. 0.04; joint b: damping"))
        fitted = FittedParameters(parameters, np.array([0.02, 1.0]), np.eye(2))
        assert fitted.write(sim, values, [2, 0]) == missing
        assert sim.expand("dof_damping")[:, 1].tolist() == [0.5, 2.0, 1.5]
        delays = [[0.01] * 2, [0.03, 0.02], [0.04] * 2]
        wanted = [[0.03, 0.02]] * 3 if missing else delays
        np.testing.assert_allclose(sim.expand("actuator_delay"), wanted, rtol=1e-6)


def test_a_file_holds_the_distribution(fitted, tmp_path):
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(fitted.to_json()))
    found = FittedParameters.load(path)
    assert found.parameters == fitted.parameters
    np.testing.assert_array_equal(found.mean, fitted.mean)
    np.testing.assert_array_equal(found.covariance, fitted.covariance)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "simstate parameters 2"}, {"mean": [1.0, 2.0]},
        {"covariance": [[1.0]]}, {"mean": [1.0, 2.0, None, 1.0]},
        {"mean": [1.0, 2.0, float("nan"), 1.0]},
        {"covariance": [[float("inf")] * 4] * 4}, {"parameters": [{}]},
    ],
)  # fmt: skip
def test_files_that_hold_no_distribution(fitted, tmp_path, change):
    path = tmp_path / "fit.json"
    path.write_text(json.dumps({**fitted.to_json(), **change}))
    with pytest.raises(InvalidInputError):
        FittedParameters.load(path)
    with pytest.raises(InvalidInputError):
        FittedParameters.load(tmp_path / "none.json")


def test_a_fitted_model_has_the_values_and_its_constants(sim, model):
    parameters = parse_free(sim, "joint knee: armature")
    found = fitted_model(model, parameters, np.array([0.7]))
    assert found.dof_armature[7] == 0.7
    assert model.dof_armature[7] != 0.7
    wanted = mujoco.MjModel.from_xml_string(
        MODEL.replace('name="knee"', 'name="knee" armature="0.7"')
    )
    np.testing.assert_allclose(found.dof_invweight0, wanted.dof_invweight0)


# The report.


class FakeFit:
    """A fit whose numbers are all different."""

    def __init__(self) -> None:
        time = np.array([0.2, 0.1, 0.3])
        log = np.arange(6.0).reshape(3, 2)
        self.curves = {"q": (time, log, log + 10.0, log + 20.0)}


def test_curves_are_drawn_in_the_order_of_time():
    figure = draw_curves(FakeFit())
    (axes,) = figure.get_axes()
    lines = axes.get_lines()
    assert len(lines) == 6
    for k, line in enumerate(lines):
        assert line.get_xdata().tolist() == [0.1, 0.2, 0.3]
        component, kind = divmod(k, 3)
        start = 10.0 * kind + component
        assert line.get_ydata().tolist() == [start + 2, start, start + 4]
    colours = [line.get_color() for line in lines]
    assert colours[0] == colours[1] == colours[2] != colours[3]
    assert axes.get_title(loc="left").startswith("q:")
    assert axes.get_xlabel() == "time [s]"


def test_the_report_is_a_page(tmp_path):
    fit = FakeFit()
    fit.confidence, fit.estimates, fit.fitted, fit.held_out = 0.9, (), (), ()
    fit.undetermined, fit.warnings, fit.notes = ("<b>",), (), ("told",)
    fit.mjcf_changes = lambda: ["<joint a='1'/>"]
    write_report(fit, tmp_path / "a.html", "A & B")
    page = (tmp_path / "a.html").read_text()
    assert "<h1>A &amp; B</h1>" in page
    assert "90 % from" in page
    assert "<li>&lt;b&gt;</li>" in page
    assert "Warnings" not in page
    assert "&lt;joint a=" in page
    assert "<li>told</li>" in page
