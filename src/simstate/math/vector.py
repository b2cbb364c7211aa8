"""Products of vectors and small matrices along the last dimensions, broadcasting."""

# Torch's own signatures of these are incomplete; here they get whole ones.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import torch
from torch import Tensor


def cross(left: Tensor, right: Tensor) -> Tensor:
    """The cross product left × right; shape (..., 3)."""
    if left.ndim != right.ndim:  # which torch's own does not broadcast
        left, right = torch.broadcast_tensors(left, right)
    return torch.linalg.cross(left, right)


def dot(left: Tensor, right: Tensor) -> Tensor:
    """The scalar product, last dimension kept; shape (..., 1)."""
    return torch.sum(left * right, dim=-1, keepdim=True)


def norm(vec: Tensor) -> Tensor:
    """The length, last dimension kept; shape (..., 1)."""
    return torch.linalg.vector_norm(vec, dim=-1, keepdim=True)


def apply(matrix: Tensor, vec: Tensor) -> Tensor:
    """The product matrix @ vec of (..., 3, 3) and (..., 3); shape (..., 3)."""
    return (matrix @ vec[..., None])[..., 0]


def determinant(matrix: Tensor) -> Tensor:
    """The determinant of square matrices; shape (...)."""
    return torch.linalg.det(matrix)


def eigenvalues(matrix: Tensor) -> Tensor:
    """The eigenvalues of symmetric matrices (..., k, k), rising; shape (..., k)."""
    return torch.linalg.eigvalsh(matrix)


def principal_axes(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues of symmetric matrices (..., 3, 3), rising, and a rotation.

    The columns of the rotation are eigenvectors; shapes (..., 3) and (..., 3, 3).
    """
    values, axes = torch.linalg.eigh(matrix)
    return values, axes * torch.sign(determinant(axes))[..., None, None]


def inverse(matrix: Tensor) -> Tensor:
    """The inverses of square matrices (..., k, k)."""
    return torch.linalg.inv(matrix)


def rank(matrix: Tensor) -> Tensor:
    """The ranks of matrices (..., k, l); shape (...)."""
    return torch.linalg.matrix_rank(matrix)


def solve(matrix: Tensor, right: Tensor) -> Tensor:
    """The solutions x of matrix @ x = right, (..., k, k) and (..., k); (..., k)."""
    return torch.linalg.solve(matrix, right[..., None])[..., 0]


def solve_positive(matrix: Tensor, columns: Tensor) -> tuple[Tensor, int | None]:
    """The solutions x of matrix @ x = columns, symmetric positive definite; (N, D, k).

    And the first matrix that is not positive definite; None: all are.
    """
    factor, info = torch.linalg.cholesky_ex(matrix)
    failed = int(info.nonzero()[0, 0]) if bool(info.any()) else None
    return torch.cholesky_solve(columns, factor), failed


def common_batch(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all of these broadcast to; a RuntimeError if there is none."""
    return tuple(torch.broadcast_shapes(*shapes))


def greatest(values: Tensor) -> float:
    """Return the largest magnitude of all values in one pass; NaN if one is NaN."""
    return float(torch.linalg.vector_norm(values, torch.inf))
