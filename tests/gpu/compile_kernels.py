"""Our Warp kernels, compiled ahead of time for GPUs: `make gpu-compile`.

It needs no GPU and no driver: Warp brings the compiler. Each architecture takes some
twenty seconds.
"""

from __future__ import annotations

import re
import struct
import sys
import tempfile
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

import simstate

ARCHITECTURES = (80, 90)
"""Compute capabilities, times ten: 8.0 is the A100's, 9.0 the H100's."""
SOURCE = Path(simstate.__file__).parent
_CUDA = 190
"""The machine of an ELF file for CUDA devices."""


def kernel_modules() -> list[str]:
    """The modules of simstate that hold kernels."""
    return [
        "simstate." + ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for path in sorted(SOURCE.rglob("*.py"))
        if "@wp.kernel" in path.read_text(encoding="utf-8")
    ]


def declared(name: str) -> Counter[str]:
    """How many precisions each kernel of a module is to be compiled for."""
    kernels = import_module("warp").get_module(name).kernels
    return Counter({key: len(each.overloads) or 1 for key, each in kernels.items()})


def compile_module(name: str, architecture: int) -> bytes:
    """The binary of a module for GPUs of that compute capability."""
    import warp

    with tempfile.TemporaryDirectory() as folder:
        (binary,) = warp.compile_aot_module(
            import_module(name), arch=architecture, module_dir=folder, use_ptx=False
        )
        return Path(binary).read_bytes()


def architecture_of(binary: bytes) -> int:
    """The compute capability that an ELF file for CUDA was compiled for, or 0."""
    if binary[:4] != b"\x7fELF" or struct.unpack_from("<H", binary, 18) != (_CUDA,):
        return 0
    (flags,) = struct.unpack_from("<I", binary, 48)
    return (flags >> 8) & 0xFF


def compiled(binary: bytes) -> Counter[str]:
    """In how many precisions each kernel is in the binary."""
    names = re.findall(rb"([a-z_]+)_([0-9a-f]{8})_cuda_kernel_forward\0", binary)
    return Counter(name.decode() for name, _ in set(names))


def main() -> int:
    """Compile everything and say what came of it; the exit code."""
    failed = 0
    for name in kernel_modules():
        for architecture in ARCHITECTURES:
            start = time.perf_counter()
            binary = compile_module(name, architecture)
            seconds = time.perf_counter() - start
            missing = declared(name) - compiled(binary)
            good = architecture_of(binary) == architecture and not missing
            failed += not good
            print(
                f"{name} for sm_{architecture}: {compiled(binary).total()} kernels, "
                f"{len(binary) >> 10} KiB, {seconds:.0f} s, "
                + ("compiled" if good else f"FAILED: without {dict(missing)}")
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
