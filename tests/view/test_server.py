"""Who may connect, and what a client can not do."""

from __future__ import annotations

import http.client
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.inside import (
    callbacks_of,
    controls_of,
    handled_messages,
    num_requests,
    server_of,
    server_thread,
)
from tests.raised import raises
from tests.view.client import Client
from tests.view.scenes import make_sim, run_on, run_until
from websockets.exceptions import InvalidStatus

from simstate import Simulation
from simstate.base.errors import InvalidInputError
from simstate.view.server import shown_host
from simstate.view.session import LONGEST, MOST_REQUESTS
from simstate.view.viewer import Viewer


@pytest.fixture(scope="module")
def sim() -> Simulation:
    return make_sim(1)


@pytest.fixture
def viewer(sim: Simulation) -> Iterator[Viewer]:
    with sim.view(port=0, playing=False) as viewer:
        yield viewer


@pytest.fixture
def secret(sim: Simulation) -> Iterator[Viewer]:
    with sim.view(port=0, playing=False, host="127.0.0.2", token="") as viewer:
        yield viewer


def get(viewer: Viewer, path: str, **headers: str) -> tuple[int, bytes]:
    at = urlsplit(viewer.url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_it_listens_on_loopback_alone(viewer: Viewer) -> None:
    assert server_of(viewer).get_host() == "127.0.0.1"
    assert viewer.url.startswith("http://localhost:")
    assert get(viewer, at(viewer))[0] == 200


def at(viewer: Viewer) -> str:
    """The path of the page, which is the token."""
    return urlsplit(viewer.url).path


def test_every_address_has_a_token(sim: Simulation, viewer: Viewer) -> None:
    """Also on loopback, which all users of the machine reach."""
    assert len(at(viewer)) > 16
    assert get(viewer, "/")[0] == 403
    with pytest.raises(InvalidStatus):
        Client(viewer.url.replace(at(viewer), "/"))
    with sim.view(port=0, playing=False) as other:
        assert at(other) != at(viewer)
    with sim.view(port=0, playing=False, token="my-own_1") as own:
        assert own.url.endswith("/my-own_1/")
    for wrong in ("../x", "a/b", "é"):
        with raises(InvalidInputError, name="token"):
            sim.view(port=0, token=wrong)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_the_address_for_all_interfaces_has_the_machines_name(host: str) -> None:
    assert shown_host(host) == socket.gethostname()
    assert shown_host("192.168.1.7") == "192.168.1.7"
    assert shown_host("127.0.0.1") == "localhost"


def test_the_token_is_in_the_address(secret: Viewer) -> None:
    path = urlsplit(secret.url).path
    assert len(path) > 16
    assert get(secret, path)[0] == 200
    for wrong in ("/", "/x", path[:-3], "/" + "a" * (len(path) - 2) + "/"):
        assert get(secret, wrong)[0] == 403, wrong
    with pytest.raises(InvalidStatus):
        Client(secret.url.replace(path, "/"))
    client = Client(secret.url)
    run_until(secret, lambda: secret.num_clients == 1, "the connection")
    client.close()


def test_pages_of_other_sites_are_turned_away(viewer: Viewer) -> None:
    port = urlsplit(viewer.url).port
    with pytest.raises(InvalidStatus):
        Client(viewer.url, origin="http://evil.example")
    with pytest.raises(InvalidStatus):  # a name that was made to point here
        Client(viewer.url, additional_headers={"Host": f"evil.example:{port}"})
    assert get(viewer, at(viewer), Host=f"evil.example:{port}")[0] == 403
    assert get(viewer, at(viewer), Host=f"localhost:{port}")[0] == 200


@pytest.mark.parametrize(
    "path",
    ["/../../../../etc/passwd", "/%2e%2e/%2e%2e/server.py", "/etc/passwd",
     "//etc/passwd", "/..%5c..%5cviewer.py"],
)  # fmt: skip
def test_no_file_of_the_machine_is_served(viewer: Viewer, path: str) -> None:
    assert get(viewer, path)[0] == 403
    status, body = get(viewer, at(viewer).rstrip("/") + path)
    assert status == 404
    assert b"root" not in body


def test_the_share_tunnel_is_gone(
    sim: Simulation, viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr("viser._viser.ViserTunnel", lambda *args: asked.append(args))
    client = Client(viewer.url)
    run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
    client.send("ShareUrlRequest")
    client.send("ShareUrlDisconnect")
    client.set("step", True)  # comes after them
    run_until(viewer, lambda: float(sim.time[0]) > 0.0, "the step")
    client.close()
    assert asked == []
    with raises(InvalidInputError, name="tunnel"):
        server_of(viewer).request_share_url()
    kinds = {kind.__name__ for kind in handled_messages(viewer)}
    assert not {kind for kind in kinds if "Share" in kind or "File" in kind}


def test_a_client_sets_values_and_nothing_else(sim: Simulation, viewer: Viewer) -> None:
    client = Client(viewer.url)
    run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
    uuid = client.control("run")
    client.send("GuiUpdateMessage", uuid=uuid, updates={"update_cb": ["print"]})
    client.send("GuiUpdateMessage", uuid=uuid, updates={"value": "▶"})
    run_until(viewer, lambda: viewer.session.playing, "playing")
    assert callbacks_of(viewer.panel.icons) != ["print"]
    client.close()


BAD = (
    float("nan"), float("inf"), -1e300, 1e300, -1, None, True, "x", "a" * 100_000,
    b"xx", [], [1, 2], [None] * 3, {}, {"a": 1},
)  # fmt: skip


def test_values_that_no_page_would_send_change_nothing(capsys) -> None:  # type: ignore[no-untyped-def]
    sim = make_sim(3)
    buttons = ("run", "reset all worlds")
    with sim.view(port=0, playing=False) as viewer:
        client = Client(viewer.url)
        run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
        for label in buttons:
            client.control(label)
        controls = controls_of(viewer)
        values = {uuid: one.value for uuid, one in controls.items()}
        kinds = {type(one).__name__ for one in controls.values()}
        assert {"GuiSliderHandle", "GuiDropdownHandle", "GuiTextHandle"} <= kinds
        for uuid, control in controls.items():
            for value in BAD:
                is_text = isinstance(control.value, str)
                free = is_text and getattr(control, "options", None) is None
                if isinstance(control.value, bool) and value is True:
                    continue  # a page may
                if (value == "x" and free) or (
                    value == -1 and _is_within(control, value)
                ):
                    continue
                client.send("GuiUpdateMessage", uuid=uuid, updates={"value": value})
        question = viewer.panel.question
        client.set("element", "qvel[4]")
        run_until(viewer, lambda: question.value == "qvel[4]", "what came after them")
        for uuid, value in values.items():
            if controls[uuid] is not question:
                assert controls[uuid].value == value, controls[uuid].label
        assert float(sim.time.max()) == 0.0
        client.close()
    assert "Traceback" not in capsys.readouterr().err


def _is_within(control: Any, value: float) -> bool:
    low, high = getattr(control, "min", None), getattr(control, "max", None)
    number = isinstance(control.value, int | float)
    return number and (low is None or low <= value) and (high is None or value <= high)


@pytest.mark.parametrize("raw", [b"", b"\xff\xff", b"\x81\xa4type\xa4Nope"])
def test_rubbish_ends_its_own_connection_alone(
    sim: Simulation, viewer: Viewer, raw: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = Client(viewer.url), Client(viewer.url)
    run_until(viewer, lambda: viewer.num_clients == 2, "both connections")
    bad.socket.send(raw)
    run_until(viewer, lambda: viewer.num_clients == 1, "the end of one")
    before = float(sim.time[0])
    good.set("step", True)
    run_until(viewer, lambda: float(sim.time[0]) > before, "the other's step")
    good.close()
    assert_one_line(caplog)


def assert_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """What was logged is a line, without the traceback that it was."""
    assert caplog.records
    for record in caplog.records:
        assert record.name == "simstate.view"
        assert record.exc_info is None
        assert "\n" not in record.getMessage()


def test_an_error_in_the_log_is_its_class_and_its_words(
    viewer: Viewer, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("simstate.view")
    try:
        raise ValueError("two\n lines" + 300 * "x")
    except ValueError:
        logger.exception("it failed")
    logger.warning("no error")
    text, other = (record.getMessage() for record in caplog.records)
    assert text.startswith("Viewer: it failed: ValueError: two linesxxx")
    assert len(text) == len("Viewer: it failed: ValueError: ") + 200
    assert other == "no error"


def test_a_message_of_wrong_parts_is_one_line_of_the_log(
    sim: Simulation, viewer: Viewer, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(viewer.url)
    run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
    for updates in (3, None, "x"):
        client.send("GuiUpdateMessage", uuid="x", updates=updates)
    before = float(sim.time[0])
    client.set("step", True)
    run_until(viewer, lambda: float(sim.time[0]) > before, "the step")
    client.close()
    assert_one_line(caplog)


def test_a_flood_of_clicks_does_not_stall_a_script(sim: Simulation) -> None:
    with sim.view(port=0) as viewer:
        done: list[int] = []
        session = viewer.session
        viewer.sync()
        for k in range(30_000):
            session.ask(lambda k=k: done.append(k))
        assert num_requests(session) == MOST_REQUESTS
        session.ask(lambda: done.append(-1), is_kept=True)  # that a client has left
        for _ in range(50):
            viewer.sync()
        assert len(done) == MOST_REQUESTS + 1
        assert done[-1] == -1


def test_slow_requests_let_a_script_continue(sim: Simulation) -> None:
    with sim.view(port=0) as viewer:
        session, done = viewer.session, []
        for k in range(10):
            session.ask(lambda k=k: (time.sleep(LONGEST / 2), done.append(k)))
        session.answer()
        assert 1 <= len(done) < 6
        for _ in range(9):
            session.answer()
        assert done == list(range(10))


def test_a_script_continues_when_the_last_client_leaves(sim: Simulation) -> None:
    with sim.view(port=0) as viewer:
        clients = [Client(viewer.url), Client(viewer.url)]
        viewer.sync()
        for _ in range(600):
            if viewer.num_clients == 2:
                break
            time.sleep(0.05)
        clients[0].set("play", False)
        times = ((0.7, clients[0].close), (1.4, clients[1].close), (60.0, viewer.close))
        timers = [threading.Timer(*pair) for pair in times]
        for timer in timers:
            timer.daemon = True
            timer.start()
        begun = time.monotonic()
        while time.monotonic() - begun < 1.4 and not viewer.is_closed:
            viewer.sync()  # is held up until both have left
        timers[1].join()
        for _ in range(20):
            viewer.sync()
        timers[2].cancel()
        assert not viewer.is_closed
        assert viewer.session.playing


def test_a_port_that_is_taken_is_passed_over(sim: Simulation, viewer: Viewer) -> None:
    port = urlsplit(viewer.url).port
    assert port is not None
    with sim.view(port=port, playing=False) as other:
        assert urlsplit(other.url).port != port


@pytest.mark.parametrize("port", [-1, 65536, 80.5, "8080"])
def test_a_port_that_does_not_exist_is_refused(sim: Simulation, port: Any) -> None:
    with raises(InvalidInputError, name="port"):
        sim.view(port=port)


@pytest.mark.parametrize("host", ["203.0.113.7", "no such host", "", "a..b", None])
def test_a_host_that_is_not_this_machine_is_refused(sim: Simulation, host: Any) -> None:
    with raises(InvalidInputError, name="host"):
        sim.view(port=0, host=host)


def test_without_a_free_port_it_raises(sim: Simulation) -> None:
    taken = socket.create_server(("127.0.0.1", 65535))
    with taken, raises(InvalidInputError, name="port"):
        sim.view(port=65535)


def test_close_ends_the_server(sim: Simulation) -> None:
    viewer = sim.view(port=0, playing=False)
    run_on(viewer)
    thread = server_thread(viewer)
    assert thread.is_alive()
    viewer.close()
    viewer.close()
    assert viewer.is_closed
    thread.join(60.0)
    assert not thread.is_alive()


def test_simstate_loads_no_viewer() -> None:
    code = "import simstate, sys; print({'viser', 'mjviser'} & set(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300
    )
    assert run.stdout.strip() == "set()", run.stderr


def test_without_viser_it_is_said_what_to_do(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("viewer", "server"):  # the second imports viser
        monkeypatch.delitem(sys.modules, f"simstate.view.{name}")
    monkeypatch.setitem(sys.modules, "viser", None)
    with raises(InvalidInputError, name="view"):
        sim.view(port=0)
