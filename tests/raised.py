"""Errors that tests expect, by class and fields rather than by their wording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def raises(
    error: type[BaseException] | tuple[type[BaseException], ...],
    *,
    name: str | None = None,
    file: str | None = None,
    worlds: list[int] | None = None,
) -> pytest.RaisesExc[Any]:
    """Expect an error of this class that is about `name`, a `file` or `worlds`.

    Args:
        error: the class of the error, or several.
        name: the error's `name`.
        file: the last part of the error's `name`, which is a path.
        worlds: the error's `worlds`.
    """
    if name is file is worlds is None:
        raise ValueError("raises needs a field; pytest.raises checks only the class.")

    def check(found: Any) -> bool:
        text = f"{type(found).__name__}: {found}"
        if name is not None:
            assert found.name == name, text
        if file is not None:
            assert Path(found.name).name == file, text
        if worlds is not None:
            assert list(found.worlds) == worlds, text
        return True

    return pytest.raises(error, check=check)


def says(error: type[BaseException], *fragments: str) -> pytest.RaisesExc[Any]:
    """Expect an error whose text has these fragments; for `test_error_texts.py`."""

    def check(found: BaseException) -> bool:
        missing = [text for text in fragments if text not in str(found)]
        assert not missing, f"{missing} not in: {found}"
        return True

    return pytest.raises(error, check=check)
