/* What Python says of an integrator: arrays to hold, numbers to keep, all checked. */
#include <string.h>

#include "air.h"
#include "binding.h"
#include "flight.h"
#include "gravity.h"
#include "wheels.h"

static PyObject* find(PyObject* dict, const char* key) {
  PyObject* value = PyDict_GetItemString(dict, key);
  if (!value) PyErr_Format(PyExc_KeyError, "%s is missing.", key);
  return value;
}

static int read_int(PyObject* dict, const char* key, int* to) {
  PyObject* value = find(dict, key);
  if (value) *to = (int)PyLong_AsLong(value);
  return !PyErr_Occurred();
}

static int read_double(PyObject* dict, const char* key, double* to) {
  PyObject* value = find(dict, key);
  if (value) *to = PyFloat_AsDouble(value);
  return !PyErr_Occurred();
}

static int read_scheme(integrator_object* self, PyObject* dict) {
  core_scheme* s = &self->in.scheme;
  int attitude = 0;
  Py_ssize_t n;
  const core_entry weights[] = {CORE_ANY("b", 'd', &s->b, &n)};
  if (!CORE_TAKE_ALL(&self->views, dict, weights)) return 0;
  const core_entry entry[] = {
      CORE_IN("a", 'd', n * n, &s->a),
      CORE_IN("c", 'd', n, &s->c),
      CORE_IF("b_error", 'd', n, 0, &s->b_error),
      CORE_IF("b_error_low", 'd', n, 0, &s->b_error_low),
  };
  s->num_stages = (int)n;
  if (n < 1) PyErr_SetString(PyExc_ValueError, "A scheme has at least one stage.");
  if (n < 1 || !CORE_TAKE_ALL(&self->views, dict, entry) ||
      !read_int(dict, "control_order", &s->control_order) ||
      !read_int(dict, "first_same_as_last", &s->first_same_as_last) ||
      !read_int(dict, "attitude", &attitude)) {
    return 0;
  }
  s->attitude = (core_attitude)attitude;
  return 1;
}

static int read_layout(integrator_object* self, PyObject* dict) {
  core_integrator* in = &self->in;
  Py_ssize_t flat, same_flat, quats, same_quats;
  const core_entry entry[] = {
      CORE_IDS("flat_qpos", -1, 0, &in->flat_qpos, in->nq, &flat),
      CORE_IDS("flat_qvel", -1, 0, &in->flat_qvel, in->nv, &same_flat),
      CORE_IDS("quat_qpos", -1, 0, &in->quat_qpos, in->nq - 3, &quats),
      CORE_IDS("quat_qvel", -1, 0, &in->quat_qvel, in->nv - 2, &same_quats),
      CORE_IF("act_low", 'd', in->na, 0, &in->act_low),
      CORE_IF("act_high", 'd', in->na, 0, &in->act_high),
      CORE_OUT("evaluations", 'q', in->num_worlds, &in->evaluations),
  };
  if (!CORE_TAKE_ALL(&self->views, dict, entry)) return 0;
  in->num_flat = (int)flat;
  in->num_quats = (int)quats;
  if (same_flat != flat || same_quats != quats || !in->act_low != !in->act_high) {
    PyErr_SetString(PyExc_ValueError, "The layout's indices or limits do not match.");
    return 0;
  }
  return 1;
}

/* Whether a table is the address of a function. */
static int is_address(const double* table, size_t table_size) {
  static const simstate_force none;
  return table_size == 1 && sizeof none <= sizeof *table &&
         memcmp(table, &none, sizeof none) != 0;
}

/* Whether a load has the parameters and the table of its kind. */
static int is_fit(const core_load* load, size_t table_size, const mjModel* m) {
  static const int needed[] = {3, 4, 9, 5};
  int n = load->num_parameters;
  if (load->kind < 0 || load->kind >= CORE_NUM_LOADS) return 0;
  if (load->kind == CORE_POINT_GRAVITY) return n > 4 && n % 4 == 1;
  if (load->kind == CORE_FIELD_GRAVITY) return core_is_field(load->table, table_size, n);
  if (load->kind == CORE_WHEELS) return core_is_wheels(load->table, table_size, n, m);
  if (load->kind == CORE_SAMPLED_GRAVITY) return n == 1 && table_size == 1;
  if (load->kind == CORE_AERODYNAMICS || load->kind == CORE_ROTOR) {
    return load->num_bodies == 1 && core_is_flight(load->table, table_size, n, m);
  }
  if (load->kind == CORE_FUNCTION) return n > 0 && is_address(load->table, table_size);
  if (load->kind == CORE_AIR_DRAG) {
    return n == 4 + CORE_AIR_NUMBERS && core_is_air(load->table, table_size);
  }
  if (load->kind == CORE_PANELS) {
    int left = n - CORE_AIR_NUMBERS;
    return left > 0 && left % CORE_PANEL_NUMBERS == 0 &&
           core_is_air(load->table, table_size);
  }
  return n == needed[load->kind];
}

/* Where a load is sampled, as a tuple (points, accelerations), or None. */
static int read_sample(integrator_object* self, PyObject* tuple, core_load* load) {
  if (load->kind != CORE_SAMPLED_GRAVITY) return 1;
  load->num_points = core_num_samples(load);
  Py_ssize_t count = (Py_ssize_t)3 * self->in.num_worlds * load->num_points;
  const core_entry entry[] = {CORE_OUT("points", 'd', count, &load->point),
                              CORE_IN("sample", 'd', count, &load->sample)};
  return CORE_TAKE_ALL(&self->views, tuple, entry);
}

/* The first number of a moving frame; -2: there is no such frame. */
static int frame_first(const core_integrator* in, int frame) {
  if (frame == -1) return -1;
  if (frame < 0 || frame >= in->num_processes) return -2;
  return in->process[frame].width == 6 ? in->process[frame].first : -2;
}

/* A load as a tuple (kind, segment, frame, rows, (bodies, parameters, table), sample): one
 * row of parameters, or one per world. */
static int read_load(integrator_object* self, PyObject* tuple, core_load* load) {
  core_integrator* in = &self->in;
  PyObject *arrays, *sample;
  int kind, rows, frame;
  if (!PyArg_ParseTuple(tuple, "iiiiOO", &kind, &load->segment, &frame, &rows, &arrays,
                        &sample)) {
    return 0;
  }
  Py_ssize_t num_bodies, count, table_size;
  const core_entry entry[] = {
      CORE_IDS("bodies", -1, 0, &load->body, in->nbody, &num_bodies),
      CORE_ANY("parameters", 'd', &load->parameter, &count),
      CORE_ANY("table", 'd', &load->table, &table_size),
  };
  if (!CORE_TAKE_ALL(&self->views, arrays, entry)) return 0;
  load->frame = frame_first(in, frame);
  load->kind = (core_load_kind)kind;
  load->num_bodies = (int)num_bodies;
  load->num_parameters = rows > 0 ? (int)(count / rows) : 0;
  load->stride = rows == 1 ? 0 : (size_t)load->num_parameters;
  int fine = is_fit(load, (size_t)table_size, in->shared) && load->frame >= -1 &&
             load->segment >= 0 && (rows == 1 || rows == in->num_worlds) &&
             (Py_ssize_t)rows * load->num_parameters == count;
  if (!fine) {
    PyErr_Format(PyExc_ValueError, "Load of kind %d: wrong frame, table or "
                 "number of parameters (%zd in %d rows).", kind, count, rows);
    return 0;
  }
  return read_sample(self, sample, load);
}

/* A process as a tuple (value, rate): rows of numbers, and their rates or None. */
static int read_process(integrator_object* self, PyObject* tuple, core_process* p) {
  core_integrator* in = &self->in;
  PyObject *value, *rate;
  Py_ssize_t width;
  if (!PyArg_ParseTuple(tuple, "OO", &value, &rate)) return 0;
  const core_entry rows = CORE_ROWS("process", -1, CORE_WRITTEN, &p->value,
                                    in->num_worlds, &p->stride, &width);
  if (!core_take_one(&self->views, value, rows)) return 0;
  p->width = (int)width;
  p->first = in->process_width;
  in->process_width += p->width;
  if (Py_IsNone(rate) && width != 6) {
    PyErr_Format(PyExc_ValueError, "A moving frame has 6 numbers, got %zd.", width);
    return 0;
  }
  const core_entry rates = CORE_IF("rate", 'd', width * in->num_worlds, 0, &p->rate);
  return core_take_one(&self->views, rate, rates);
}

static int read_loads(integrator_object* self, PyObject* dict) {
  core_integrator* in = &self->in;
  PyObject *processes = find(dict, "processes"), *loads = find(dict, "loads");
  Py_ssize_t num_processes = processes ? PyTuple_Size(processes) : -1;
  Py_ssize_t num_loads = loads ? PyTuple_Size(loads) : -1;
  if (num_processes < 0 || num_loads < 0) return 0;
  in->process = PyMem_Calloc((size_t)num_processes + 1, sizeof *in->process);
  in->load = PyMem_Calloc((size_t)num_loads + 1, sizeof *in->load);
  if (!in->process || !in->load) {
    PyErr_NoMemory();
    return 0;
  }
  in->num_processes = (int)num_processes;
  in->num_loads = (int)num_loads;
  for (Py_ssize_t i = 0; i < num_processes; i++) {
    if (!read_process(self, PyTuple_GetItem(processes, i), in->process + i)) return 0;
  }
  for (Py_ssize_t i = 0; i < num_loads; i++) {
    if (!read_load(self, PyTuple_GetItem(loads, i), in->load + i)) return 0;
    in->changes_inputs |=
        in->load[i].kind == CORE_WHEELS || in->load[i].kind == CORE_FUNCTION;
  }
  return 1;
}

/* A parameter as (name, bytes of a world, its array or None where worlds share it). */
static int read_constant(integrator_object* self, PyObject* tuple, core_constant* c) {
  const char* name;
  Py_ssize_t bytes;
  PyObject* array;
  if (!PyArg_ParseTuple(tuple, "snO", &name, &bytes, &array)) return 0;
  c->offset = core_model_offset(name);
  c->bytes = (size_t)bytes;
  if (!c->offset || bytes < 0) {
    PyErr_Format(PyExc_ValueError, "mjModel has no field %s.", name);
    return 0;
  }
  const core_entry rows =
      CORE_IF(name, 'B', bytes * self->in.num_worlds, CORE_WRITTEN, &c->to);
  return core_take_one(&self->views, array, rows);
}

/* Masses that flow: rates, and the parameters that mj_setConst computes. */
static int read_masses(integrator_object* self, PyObject* dict) {
  core_integrator* in = &self->in;
  PyObject* constants = find(dict, "constants");
  Py_ssize_t count = constants ? PyTuple_Size(constants) : -1;
  Py_ssize_t numbers = (Py_ssize_t)in->num_worlds * in->nbody;
  const core_entry entry[] = {
      CORE_ROWS("mass_rate", in->nbody, CORE_WRITTEN | CORE_OPTIONAL, &in->mass_rate,
                in->num_worlds, &in->mass_rate_stride, NULL),
      CORE_IF("total_mass_rate", 'd', numbers, CORE_WRITTEN, &in->total_mass_rate),
      CORE_IF("least_mass", 'd', numbers, 0, &in->least_mass),
      CORE_IF("empty", 'B', numbers, CORE_WRITTEN, &in->empty),
  };
  if (count < 0 || !CORE_TAKE_ALL(&self->views, dict, entry)) return 0;
  if (in->mass_rate &&
      (!in->total_mass_rate || !in->least_mass || !in->empty || !count)) {
    PyErr_SetString(PyExc_ValueError, "Masses that flow need all of their arrays.");
    return 0;
  }
  in->constant = PyMem_Calloc((size_t)count + 1, sizeof *in->constant);
  if (!in->constant) {
    PyErr_NoMemory();
    return 0;
  }
  in->num_constants = (int)count;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!read_constant(self, PyTuple_GetItem(constants, i), in->constant + i)) return 0;
  }
  return 1;
}

/* The pairs of geoms that can touch, and the memory of what each world touches. */
static int read_touch(integrator_object* self, PyObject* dict) {
  core_integrator* in = &self->in;
  Py_ssize_t num_sides;
  int can_touch = 0;
  const core_entry entry[] = {CORE_IDS("touching_geoms", -1, 0, &in->pairs.pair,
                                       in->shared->ngeom, &num_sides)};
  if (!CORE_TAKE_ALL(&self->views, dict, entry) ||
      !read_int(dict, "can_touch", &can_touch)) {
    return 0;
  }
  in->pairs.num_pairs = (int)(num_sides / 2);
  if (!can_touch) return 1;
  in->touch = PyMem_Calloc((size_t)in->num_worlds, sizeof *in->touch);
  int fine = in->touch != NULL;
  for (int i = 0; fine && i < in->num_worlds; i++) {
    fine = core_touch_create(in->touch + i, &in->pairs);
  }
  if (!fine) PyErr_NoMemory();
  return fine;
}

static int read_control(integrator_object* self, PyObject* dict) {
  core_integrator* in = &self->in;
  core_control* c = &in->control;
  Py_ssize_t n = in->num_worlds;
  Py_ssize_t dofs = 2 * in->nv + in->na + in->nbody + in->process_width;
  const core_entry entry[] = {
      CORE_IN("atol", 'd', dofs, &c->atol),
      CORE_IN("rtol", 'd', dofs, &c->rtol),
      CORE_OUT("step_size", 'd', n, &c->step_size),
      CORE_OUT("start", 'd', n, &c->start),
      CORE_OUT("elapsed", 'd', n, &c->elapsed),
      CORE_OUT("accepted", 'q', n, &c->accepted),
      CORE_OUT("rejected", 'q', n, &c->rejected),
      CORE_OUT("stuck", 'B', n, &c->stuck),
      CORE_OUT("unfinished", 'B', n, &c->unfinished),
      CORE_OUT("failure", 'd', 3 * n, &c->failure),
      CORE_OUT("failure_at", 'i', 2 * n, &c->failure_at),
  };
  if (!in->scheme.b_error) return 1;
  return read_touch(self, dict) && CORE_TAKE_ALL(&self->views, dict, entry) &&
         read_double(dict, "min_step", &c->min_step) &&
         read_double(dict, "max_step", &c->max_step);
}

static int read_contacts(integrator_object* self, PyObject* dict) {
  PyObject* tuple = find(dict, "contacts");
  if (!tuple) return 0;
  int count = core_read_contacts(tuple, self->in.num_worlds, &self->in.contacts);
  if (count < 0) return 0;
  Py_INCREF(tuple);
  self->contacts = tuple;
  self->in.num_contacts = count;
  return 1;
}

int core_read_description(integrator_object* self, PyObject* dict) {
  return read_scheme(self, dict) && read_layout(self, dict) && read_loads(self, dict) &&
         read_masses(self, dict) && read_contacts(self, dict) &&
         read_control(self, dict);
}

void core_release_description(integrator_object* self) {
  core_release(&self->views);
  PyMem_Free(self->in.process);
  PyMem_Free(self->in.load);
  PyMem_Free(self->in.constant);
  for (int i = 0; self->in.touch && i < self->in.num_worlds; i++) {
    core_touch_delete(self->in.touch + i);
  }
  PyMem_Free(self->in.touch);
  PyMem_Free(self->in.contacts);
  Py_XDECREF(self->contacts);
}
