"""The web server of a viewer: who may connect, and what a client may request."""

# viser has no public access to its handlers.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false

from __future__ import annotations

import contextlib
import errno
import hmac
import http
import inspect
import io
import logging
import math
import secrets
import socket
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

import viser
import websockets.asyncio.server
from viser import _messages
from websockets import Headers
from websockets.http11 import Request, Response

from simstate.base.checks import instance_of, whole_number
from simstate.base.errors import InvalidInputError
from simstate.base.printable import printable

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""The hosts that only programs on this machine can reach."""

_CLIENT_MAY_SEND = (
    "CommandTriggerMessage",
    "GuiUpdateMessage",
    "SceneNodeClickMessage",
    "SceneNodeDragMessage",
    "ScenePointerMessage",
    "ViewerCameraMessage",
)
"""The messages that the viewer accepts; uploads and the share tunnel are excluded."""

_starting = threading.Lock()


def start_server(
    host: str, port: int, token: str | None, title: str
) -> tuple[viser.ViserServer, str]:
    """Start a server that requires a token; return it and the address to open.

    Args:
        host: address of the interface to listen on.
        port: the first port to try; 0: any free port.
        token: the token that the address must contain. Anyone who has it can change the
            simulation, also other users of this machine. None or "": a random one.
        title: title above the controls.
    """
    token = token or secrets.token_urlsafe(16)
    if not token.replace("-", "").replace("_", "").isalnum() or not token.isascii():
        raise InvalidInputError(
            "A token consists of letters, digits, '-' and '_', since it is part of an "
            f"address; got {token!r}.",
            name="token",
        )
    port = _free_port(host, port)
    guard = Guard(host, token)
    with _starting, _guarded(guard), contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer(host=host, port=port, label=title, verbose=False)
    _remove_handlers(server)
    return server, f"http://{shown_host(host)}:{server.get_port()}/{token}/"


def _free_port(host: str, first: int) -> int:
    """Return the first free port from `first` on; 0 stays 0, any port.

    If viser cannot listen, its thread ends and its constructor waits forever.
    """
    instance_of("host", host, str)
    first = whole_number("port", first, 0, 65535)
    for port in range(first, 65536):
        try:
            family, *_, address = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            socket.create_server(address, family=family).close()
        except (OSError, UnicodeError) as error:
            code = getattr(error, "errno", None)
            if code in (errno.EADDRINUSE, errno.EACCES):
                continue
            raise InvalidInputError(
                f"The viewer cannot listen on host={host!r}: {error}. Use 127.0.0.1 "
                "for this machine only, or 0.0.0.0 for all networks that it is in.",
                name="host",
            ) from error
        return port
    raise InvalidInputError(
        f"No port from {first} to 65535 is free: use port=0 for any.", name="port"
    )


def shown_host(host: str) -> str:
    """Return the host name to open in a browser."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return "localhost" if host in LOOPBACK else host


class Guard:
    """Rejects requests without the token, and requests from pages of other sites."""

    def __init__(self, host: str, token: str) -> None:
        self._prefix = f"/{token}"
        self._is_local = host in LOOPBACK

    def check(self, request: Request) -> Response | None:
        """Return a refusal, or None to accept; the token is removed from the path."""
        path, _, query = request.path.partition("?")
        given = path[: len(self._prefix)]
        if not hmac.compare_digest(given.encode(), self._prefix.encode()):
            return _refusal("This viewer needs the address with its token.")
        path = path[len(self._prefix) :]
        if path and not path.startswith("/"):
            return _refusal("This viewer needs the address with its token.")
        host = request.headers.get("Host", "")
        if self._is_local and _name(host) not in LOOPBACK:
            return _refusal("This viewer answers to localhost only.")
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return _refusal("Pages of other sites may not use this viewer.")
        request.path = (path or "/") + (f"?{query}" if query else "")
        return None


def _name(host: str) -> str:
    """Return the host name of a Host header, without its port."""
    return (urlsplit(f"//{host}").hostname or "").lower()


def _refusal(text: str) -> Response:
    headers = Headers({"Content-Type": "text/plain; charset=utf-8"})
    return Response(http.HTTPStatus.FORBIDDEN, "Forbidden", headers, text.encode())


@contextlib.contextmanager
def _guarded(guard: Guard) -> Generator[None]:
    """Context manager in which a server that starts checks requests with the guard.

    viser has no hook for that: it calls websockets' `serve` itself.
    """
    module: Any = websockets.asyncio.server
    serve = module.serve

    def guarded_serve(*args: Any, **options: Any) -> Any:
        answer: Callable[[Any, Request], Response | None] = options["process_request"]

        def process(connection: Any, request: Request) -> Response | None:
            return guard.check(request) or answer(connection, request)

        changed = {"process_request": process, "logger": _logger()}
        return serve(*args, **{**options, **changed})

    module.serve = guarded_serve
    try:
        yield
    finally:
        module.serve = serve


def _logger() -> logging.Logger:
    """Return a logger whose records are one line each, without tracebacks."""
    found = logging.getLogger("simstate.view")
    if not found.filters:
        found.addFilter(_as_one_line)
    return found


def _as_one_line(record: logging.LogRecord) -> bool:
    """Shorten a record with an exception, which any client can cause."""
    if record.exc_info is not None:
        error = record.exc_info[1]
        text = " ".join(str(error).split())[:200]
        record.msg, record.args = "Viewer: %s: %s: %s", (
            record.getMessage(), type(error).__name__, printable(text),
        )  # fmt: skip
        record.exc_info = record.exc_text = None
    return True


def _logged(handle: Callable[..., Any]) -> Callable[..., Any]:
    """Return a handler of messages whose errors become one line of the log."""

    async def handled(client_id: int, message: Any) -> None:
        try:
            found = handle(client_id, message)
            if inspect.isawaitable(found):
                await found
        except Exception:
            _logger().exception("a message was malformed")

    return handled


def _remove_handlers(server: viser.ViserServer) -> None:
    """Remove the handlers of all messages that the viewer does not accept."""
    socket: Any = server._websock_server
    handlers: dict[type, list[Callable[..., Any]]] = socket._incoming_handlers
    _keep_allowed(handlers)

    def connected(client: Any) -> None:
        _keep_allowed(client._incoming_handlers)

    socket.on_client_connect(connected)
    updates = handlers[_messages.GuiUpdateMessage]
    controls: Mapping[str, Any] = server.gui._gui_input_handle_from_uuid
    handlers[_messages.GuiUpdateMessage] = [
        _values_only(one, controls) for one in updates
    ]
    for kind, several in handlers.items():
        handlers[kind] = [_logged(one) for one in several]

    def no_tunnel(*_: Any, **__: Any) -> None:
        raise InvalidInputError(
            "The viewer cannot be shared by a tunnel: use --host.", name="tunnel"
        )

    server.request_share_url = no_tunnel
    server.gui.configure_theme(show_share_button=False, show_logo=False)


def _keep_allowed(handlers: dict[type, list[Callable[..., Any]]]) -> None:
    for kind in [kind for kind in handlers if kind.__name__ not in _CLIENT_MAY_SEND]:
        del handlers[kind]


def _values_only(
    handle: Callable[..., Any], controls: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return a handler of changed controls that accepts valid values only."""

    async def checked(client_id: int, message: Any) -> None:
        control = controls.get(message.uuid)
        is_value = set(message.updates) == {"value"} and control is not None
        if is_value and is_fitting(control, message.updates["value"]):
            await handle(client_id, message)

    return checked


LONGEST_TEXT = 10_000
"""Maximum length of typed text."""


def is_fitting(control: Any, value: object) -> bool:
    """Return True if a value has the control's kind, range and options."""
    now = control.value
    if isinstance(now, bool):
        return isinstance(value, bool)
    if isinstance(now, int | float):
        return _is_number(value) and _is_within(control, cast("float", value))
    if isinstance(now, str):
        options = getattr(control, "options", None)
        if not isinstance(value, str) or len(value) > LONGEST_TEXT:
            return False
        return options is None or value in options
    if isinstance(now, tuple):
        numbers = cast("Sequence[object]", value if isinstance(value, list) else ())
        size = len(cast("tuple[object, ...]", now))
        return len(numbers) == size and all(map(_is_number, numbers))
    return False


def _is_number(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(cast("float", value))


def _is_within(control: Any, value: float) -> bool:
    """Return True if a value is in the control's range, up to rounding by the page."""
    low, high = (getattr(control, name, None) for name in ("min", "max"))
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    slack = 1e-6 * (high - low) if math.isfinite(high - low) else 0.0
    return low - slack <= value <= high + slack
