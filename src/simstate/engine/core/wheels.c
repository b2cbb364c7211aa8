/* Reaction wheels; the formulas are those of simstate.space. */
#include "wheels.h"

#include <math.h>

static const double FADE = 0.01;     /* of its greatest speed, over which torque fades */
static const double STICKING = 1e-2; /* speed about which friction changes its sign */

static int is_index(double x, int limit) {
  return x >= 0 && x < limit && x == floor(x);
}

int core_is_wheels(const double* table, size_t count, int num_parameters,
                   const mjModel* m) {
  if (count < 3 || !is_index(table[0], 100000)) return 0;
  size_t wheels = (size_t)table[0];
  if (!wheels || count != 1 + 2 * wheels || (size_t)num_parameters != 3 * wheels) {
    return 0;
  }
  for (size_t i = 0; i < wheels; i++) {
    if (!is_index(table[1 + 2 * i], (int)m->nv)) return 0;
    if (!is_index(table[2 + 2 * i], (int)m->nu)) return 0;
  }
  return 1;
}

void core_turn_wheels(const double* table, const double* parameter, mjData* d) {
  int wheels = (int)table[0];
  for (int i = 0; i < wheels; i++, parameter += 3) {
    int dof = (int)table[1 + 2 * i], motor = (int)table[2 + 2 * i];
    double speed = d->qvel[dof], command = d->ctrl[motor], most = parameter[0];
    double sign = (command > 0) - (command < 0);
    double left = (most - speed * sign) / (FADE * most);
    d->ctrl[motor] = command * fmin(1, fmax(0, left));
    d->qfrc_applied[dof] -=
        parameter[1] * speed + parameter[2] * tanh(speed / STICKING);
  }
}
