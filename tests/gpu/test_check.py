"""`make gpu-check` without a GPU: what it says, and its parts on the CPU."""

from __future__ import annotations

import pytest
import torch
from tests.gpu import check

HERE = ("--device", "cpu", "--models", "quadruped", "--worlds", "2")


@pytest.mark.parametrize(
    ("built_for", "said"),
    [(None, "was built without CUDA"), ("13.0", "torch sees no GPU")],
)
def test_what_is_missing_is_one_line(built_for, said, monkeypatch, capsys):
    monkeypatch.setattr(torch.version, "cuda", built_for)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert check.main([]) == 1
    out, err = capsys.readouterr()
    assert not out
    assert said in err
    assert err.count("\n") == 1


def test_the_parts_hold_on_the_cpu(capsys):
    parts = ("parity", "snapshots", "waits", "rates")
    assert check.main([*HERE, "--parts", *parts]) == 0
    out = capsys.readouterr().out
    assert all(f"### {part}" in out for part in parts)
    assert "FAILED" not in out
    assert out.count("- ok:") == 4 + 1 + 1 + 2
    assert "warp-lang" in out


@pytest.mark.soak
def test_all_of_it_on_the_cpu(capsys):
    assert check.main([*HERE]) == 0
    assert "FAILED" not in capsys.readouterr().out


def test_what_does_not_hold_is_said(monkeypatch, capsys):
    def broken(case):
        yield "nearly", case.device != "cpu"
        raise ValueError("so it is")

    monkeypatch.setitem(check.PARTS, "parity", broken)
    assert check.main([*HERE, "--parts", "parity"]) == 1
    out = capsys.readouterr().out
    assert "- **FAILED**: nearly" in out
    assert "ValueError: so it is" in out
    assert out.rstrip().endswith("Something FAILED.")


def test_every_part_runs_by_default():
    assert list(check.PARTS) == [
        "laws", "parity", "snapshots", "waits", "training", "rates",
    ]  # fmt: skip
