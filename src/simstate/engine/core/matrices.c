/* Matrices of joint space, from the bound fields. */
#include "matrices.h"

#define BLOCK 64 /* dofs at a time, component by component: the compiler vectorises */

typedef struct {
  double c[6][BLOCK];
} block;

static void take_block(const double* cdof, size_t count, block* b) {
  for (size_t k = 0; k < count; k++) {
    for (size_t i = 0; i < 6; i++) b->c[i][k] = cdof[6 * k + i];
  }
}

static void jacobian(const block* b, size_t count, const double offset[3],
                     const double* restrict moves, size_t n, double* restrict out) {
  const double(*c)[BLOCK] = b->c;
  double x = offset[0], y = offset[1], z = offset[2];
  for (size_t k = 0; k < count; k++) {
    double on = moves[k];
    out[k] = (c[3][k] + (c[1][k] * z - c[2][k] * y)) * on;
    out[n + k] = (c[4][k] + (c[2][k] * x - c[0][k] * z)) * on;
    out[2 * n + k] = (c[5][k] + (c[0][k] * y - c[1][k] * x)) * on;
    out[3 * n + k] = c[0][k] * on;
    out[4 * n + k] = c[1][k] * on;
    out[5 * n + k] = c[2][k] * on;
  }
}

static void world_jacobians(const core_points* p, size_t world, double* out) {
  size_t n = p->num_dofs;
  const double* pos = p->pos + 3 * world * p->num_elements;
  const double* com = p->com + 3 * world * p->num_bodies;
  for (size_t first = 0; first < n; first += BLOCK) {
    size_t count = n - first < BLOCK ? n - first : BLOCK;
    block b;
    take_block(p->cdof + 6 * (world * n + first), count, &b);
    for (size_t j = 0; j < p->num_points; j++) {
      const double *at = pos + 3 * p->element[j], *centre = com + 3 * p->root[j];
      double offset[3] = {at[0] - centre[0], at[1] - centre[1], at[2] - centre[2]};
      const double* moves = p->moves + (size_t)p->body[j] * n + first;
      jacobian(&b, count, offset, moves, n, out + 6 * n * j + first);
    }
  }
}

/* Asks for memory that is soon read, or written. */
#if defined(__GNUC__)
#define FETCH(at, count, is_written)                          \
  for (size_t byte = 0; byte < (count) * sizeof(double); byte += 64) \
  __builtin_prefetch((const char*)(at) + byte, is_written)
#else
#define FETCH(at, count, is_written) (void)0
#endif

void core_jacobians(const core_points* p, double* out) {
  size_t in = 6 * p->num_dofs, size = in * p->num_points;
  for (size_t i = 0; i < p->num_worlds; i++) {
    if (i + 1 < p->num_worlds) { /* it is more than a cache holds, and waits for it */
      FETCH(p->cdof + in * (i + 1), in, 0);
      FETCH(out + size * (i + 1), size, 1);
    }
    world_jacobians(p, i, out + size * i);
  }
}

void core_entries(const double* rows, const int* place, size_t num_worlds,
                  size_t width, size_t num_entries, double* out) {
  for (size_t i = 0; i < num_worlds; i++, rows += width, out += num_entries) {
    for (size_t k = 0; k < num_entries; k++) {
      out[k] = place[k] < 0 ? 0.0 : rows[place[k]];
    }
  }
}
