"""Products of vectors and small matrices along the last dimensions, broadcasting."""

# Torch's signatures of these are incomplete; the functions here have complete ones.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import torch
from torch import Tensor


def cross(left: Tensor, right: Tensor) -> Tensor:
    """Return the cross product left × right; shape (..., 3)."""
    if left.ndim != right.ndim:  # torch's cross does not broadcast these
        left, right = torch.broadcast_tensors(left, right)
    return torch.linalg.cross(left, right)


def dot(left: Tensor, right: Tensor) -> Tensor:
    """Return the scalar product, last dimension kept; shape (..., 1)."""
    return torch.sum(left * right, dim=-1, keepdim=True)


def norm(vec: Tensor) -> Tensor:
    """Return the Euclidean norm, last dimension kept; shape (..., 1)."""
    return torch.linalg.vector_norm(vec, dim=-1, keepdim=True)


def apply(matrix: Tensor, vec: Tensor) -> Tensor:
    """Return the product matrix @ vec of (..., 3, 3) and (..., 3); shape (..., 3)."""
    return (matrix @ vec[..., None])[..., 0]


def determinant(matrix: Tensor) -> Tensor:
    """Return the determinant of square matrices; shape (...)."""
    return torch.linalg.det(matrix)


def eigenvalues(matrix: Tensor) -> Tensor:
    """Return eigenvalues of symmetric matrices (..., k, k), ascending; (..., k)."""
    return torch.linalg.eigvalsh(matrix)


def principal_axes(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return ascending eigenvalues of symmetric matrices (..., 3, 3), and a rotation.

    The columns of the rotation are eigenvectors; shapes (..., 3) and (..., 3, 3).
    """
    values, axes = torch.linalg.eigh(matrix)
    return values, axes * torch.sign(determinant(axes))[..., None, None]


def inverse(matrix: Tensor) -> Tensor:
    """Return the inverses of square matrices (..., k, k)."""
    return torch.linalg.inv(matrix)


def rank(matrix: Tensor) -> Tensor:
    """Return the ranks of matrices (..., k, l); shape (...)."""
    return torch.linalg.matrix_rank(matrix)


def solve(matrix: Tensor, right: Tensor) -> Tensor:
    """Return x of matrix @ x = right, for (..., k, k) and (..., k); (..., k)."""
    return torch.linalg.solve(matrix, right[..., None])[..., 0]


def solve_positive(matrix: Tensor, columns: Tensor) -> tuple[Tensor, int | None]:
    """Return x of matrix @ x = columns, symmetric positive definite; (N, D, k).

    Also return the index of the first matrix that is not positive definite, or None.
    """
    factor, info = torch.linalg.cholesky_ex(matrix)
    failed = int(info.nonzero()[0, 0]) if bool(info.any()) else None
    return torch.cholesky_solve(columns, factor), failed


def common_batch(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that these broadcast to; raise RuntimeError if there is none."""
    return tuple(torch.broadcast_shapes(*shapes))


def greatest(values: Tensor) -> float:
    """Return the largest magnitude of all values in one pass; NaN if one is NaN."""
    return float(torch.linalg.vector_norm(values, torch.inf))
