"""Our kernels are compiled for GPUs that this machine does not have."""

from __future__ import annotations

import pytest
from tests.gpu.compile_kernels import (
    ARCHITECTURES,
    architecture_of,
    compile_module,
    compiled,
    declared,
    kernel_modules,
)


def test_there_are_kernels():
    assert "simstate.step.kernels" in kernel_modules()


@pytest.mark.soak
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", kernel_modules())
def test_all_kernels_of_a_module_compile(name, architecture):
    binary = compile_module(name, architecture)
    assert architecture_of(binary) == architecture
    assert declared(name).total() >= 10
    assert compiled(binary) == declared(name)


@pytest.mark.parametrize("binary", [b"", b"\x7fELF" + bytes(60), b"// .target sm_80"])
def test_other_files_are_for_no_gpu(binary):
    assert architecture_of(binary) == 0
