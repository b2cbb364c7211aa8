"""Formulas of the compiled core as Warp functions: one C text for both.

The headers in engine/core/formulas are plain C on `REAL`. The core includes them with
double; Warp compiles the same text as C++, for the precision of a kernel's arrays.
"""

from __future__ import annotations

from pathlib import Path

from simstate.engine import core

_HEADERS = Path(core.__file__).parent / "formulas"
_SNIPPET = """
#define FORMULA static CUDA_CALLABLE
using REAL = decltype({real});
using wp::cos;
using wp::sin;
using wp::sqrt;
struct formula {{
{text}
}};
{call}
"""


def native(header: str, real: str, call: str) -> str:
    """Return the body of a `wp.func_native` that calls a function of a header.

    Args:
        header: the header's name without its ending.
        real: a C++ expression whose type is REAL.
        call: the statements of the body; functions are `formula::name`.
    """
    text = (_HEADERS / f"{header}.h").read_text(encoding="utf-8")
    return _SNIPPET.format(real=real, text=text, call=call)
