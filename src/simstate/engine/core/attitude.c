/* Orientations in a Runge-Kutta step, in double precision. */
#include <math.h>

#include "integrate.h"

#define REAL mjtNum
#define FORMULA static
#include "formulas/attitude.h"

void core_attitude_rate(core_attitude mode, const mjtNum quat[4], const mjtNum turn[3],
                        const mjtNum angvel[3], mjtNum* rate) {
  attitude_rate((int)mode, quat, turn, angvel, rate);
}

void core_attitude_displace(core_attitude mode, const mjtNum origin[4],
                            const mjtNum* move, mjtNum h, mjtNum turn[3],
                            mjtNum quat[4]) {
  attitude_displace((int)mode, origin, move, h, turn, quat);
}
