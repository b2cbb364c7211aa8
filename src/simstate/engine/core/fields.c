/* Fields of mjData and mjModel by name, and what brings those of mjData up to date. */
#include <string.h>

#include <mujoco/mjxmacro.h>

#include "step.h"

/* The fields that the cheap refresh brings up to date, or that the velocity stage does
 * not touch; every other field needs the whole stage. */
static const struct {
  const char* name;
  int needs;
} cheap[] = {
    {"qacc", 0},
    {"qacc_smooth", 0},
    {"act_dot", 0},
    {"actuator_force", 0},
    {"qfrc_actuator", 0},
    {"qfrc_smooth", 0},
    {"qfrc_constraint", 0},
    {"sensordata", CORE_SENSORS},
    {"xpos", CORE_KINEMATICS},
    {"xquat", CORE_KINEMATICS},
    {"xmat", CORE_KINEMATICS},
    {"xipos", CORE_KINEMATICS},
    {"ximat", CORE_KINEMATICS},
    {"xanchor", CORE_KINEMATICS},
    {"xaxis", CORE_KINEMATICS},
    {"geom_xpos", CORE_KINEMATICS},
    {"geom_xmat", CORE_KINEMATICS},
    {"site_xpos", CORE_KINEMATICS},
    {"site_xmat", CORE_KINEMATICS},
    {"cam_xpos", CORE_KINEMATICS},
    {"cam_xmat", CORE_KINEMATICS},
    {"light_xpos", CORE_KINEMATICS},
    {"light_xdir", CORE_KINEMATICS},
    {"subtree_com", CORE_KINEMATICS},
    {"cdof", CORE_KINEMATICS},
    {"cinert", CORE_KINEMATICS},
    {"ten_length", CORE_KINEMATICS},
    {"actuator_length", CORE_KINEMATICS | CORE_TRANSMISSION},
    {"cvel", CORE_KINEMATICS | CORE_VELOCITY},
    {"cdof_dot", CORE_KINEMATICS | CORE_VELOCITY},
    {"ten_velocity", CORE_KINEMATICS | CORE_TENDON_VELOCITY},
    {"actuator_velocity",
     CORE_KINEMATICS | CORE_TRANSMISSION | CORE_ACTUATOR_VELOCITY},
};

static int needs_of(const char* name) {
  for (size_t i = 0; i < sizeof cheap / sizeof *cheap; i++) {
    if (!strcmp(name, cheap[i].name)) return cheap[i].needs;
  }
  return CORE_ALL;
}

int core_find_field(const char* name, core_field* found) {
  found->needs = needs_of(name);
  found->is_scalar = 0;
#define XNV X
#define X(type, field, rows, columns)           \
  if (!strcmp(name, #field)) {                  \
    found->offset = offsetof(mjData, field);    \
    return 1;                                   \
  }
  MJDATA_POINTERS
#undef X
  found->is_scalar = 1;
#define X(type, field)                          \
  if (!strcmp(name, #field)) {                  \
    found->offset = offsetof(mjData, field);    \
    return 1;                                   \
  }
  MJDATA_SCALAR
#undef X
#define X(type, field, rows, columns)           \
  if (!strcmp(name, #field)) {                  \
    found->offset = offsetof(mjData, field);    \
    return 1;                                   \
  }
  MJDATA_VECTOR
#undef X
  return 0;
}

size_t core_model_offset(const char* name) {
#define X(type, field, rows, columns) \
  if (!strcmp(name, #field)) return offsetof(mjModel, field);
  MJMODEL_POINTERS
#undef X
#undef XNV
  return 0;
}

int core_sensor_needs(const mjModel* m) {
  int needs = m->nsensor ? CORE_SENSORS : 0;
  for (int i = 0; i < m->nsensor; i++) {
    if (m->sensor_needstage[i] == mjSTAGE_ACC) continue;
    if (m->nflex) return CORE_ALL;
    needs |= CORE_KINEMATICS | CORE_VELOCITY;
    switch (m->sensor_type[i]) {
      case mjSENS_ACTUATORPOS:
        needs |= CORE_TRANSMISSION;
        break;
      case mjSENS_ACTUATORVEL:
        needs |= CORE_TRANSMISSION | CORE_ACTUATOR_VELOCITY;
        break;
      case mjSENS_TENDONVEL:
        needs |= CORE_TENDON_VELOCITY;
        break;
      case mjSENS_VELOCIMETER:
      case mjSENS_GYRO:
      case mjSENS_MAGNETOMETER:
      case mjSENS_RANGEFINDER:
      case mjSENS_CAMPROJECTION:
      case mjSENS_JOINTPOS:
      case mjSENS_JOINTVEL:
      case mjSENS_TENDONPOS:
      case mjSENS_BALLQUAT:
      case mjSENS_BALLANGVEL:
      case mjSENS_FRAMEPOS:
      case mjSENS_FRAMEQUAT:
      case mjSENS_FRAMEXAXIS:
      case mjSENS_FRAMEYAXIS:
      case mjSENS_FRAMEZAXIS:
      case mjSENS_FRAMELINVEL:
      case mjSENS_FRAMEANGVEL:
      case mjSENS_SUBTREECOM:
      case mjSENS_SUBTREELINVEL:
      case mjSENS_SUBTREEANGMOM:
      case mjSENS_INSIDESITE:
      case mjSENS_GEOMDIST:
      case mjSENS_GEOMNORMAL:
      case mjSENS_GEOMFROMTO:
      case mjSENS_E_POTENTIAL:
      case mjSENS_CLOCK:
        break;
      default: /* limits, contacts, kinetic energy, plugins, user's */
        return CORE_ALL;
    }
  }
  return needs;
}
