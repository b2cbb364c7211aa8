/* The Python type Contacts: what a contact sensor remembers of each step. */
#include "binding.h"

PyObject* core_contacts_type;

static int is_contact_sensor(const mjModel* m, int sensor) {
  return sensor >= 0 && sensor < m->nsensor && m->sensor_type[sensor] == mjSENS_CONTACT;
}

/* Whether net forces and strongest contacts are those of contact sensors. */
static int are_sensors(core_contacts* c, const mjModel* m) {
  for (int i = 0; i < c->num_elements * c->num_others; i++) {
    int sensor = c->sensor[i], column = c->column[i];
    if (sensor == -1) continue;
    if (!is_contact_sensor(m, sensor) || !is_contact_sensor(m, c->single[i]) ||
        column < 0 || column + 3 > m->nsensordata) {
      PyErr_Format(PyExc_ValueError, "%d is no contact sensor with a force at %d.",
                   sensor, column);
      return 0;
    }
  }
  core_find_sensed(c, m);
  return 1;
}

static int take_arrays(contacts_object* self, PyObject* arrays) {
  core_contacts* c = &self->contacts;
  Py_ssize_t n = self->num_worlds, each = c->num_elements, all = n * each;
  Py_ssize_t pairs = each * c->num_others;
#define SLOT(name, count, flags, rows) \
  CORE_ROWS(name, count, CORE_WRITTEN | (flags), &c->rows.at, n, &c->rows.stride, NULL)
  const core_entry entry[] = {
      CORE_IN("sensors", 'i', pairs, &c->sensor),
      CORE_IN("columns", 'i', pairs, &c->column),
      CORE_IN("singles", 'i', pairs, &c->single),
      SLOT("air_time", each, 0, air_time),
      SLOT("contact_time", each, 0, contact_time),
      SLOT("last_air_time", each, 0, last_air_time),
      SLOT("last_contact_time", each, 0, last_contact_time),
      SLOT("greatest_force", each, 0, greatest_force),
      SLOT("force_history", 3 * each * c->num_past, c->num_past ? 0 : CORE_OPTIONAL,
           force_history),
      CORE_OUT("force", 'd', 3 * all, &c->shown_force),
      CORE_OUT("greatest", 'd', all, &c->shown_greatest),
      CORE_OUT("touching", 'B', all, &c->shown_touching),
  };
  return CORE_TAKE_ALL(&self->views, arrays, entry);
}

static PyObject* contacts_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *batch, *arrays;
  core_contacts c = {0};
  (void)kwargs;
  if (!PyArg_ParseTuple(args, "O(iii)pdO", &batch, &c.num_elements, &c.num_others,
                        &c.num_past, &c.every_step, &c.threshold, &arrays)) {
    return NULL;
  }
  if (!PyObject_IsInstance(batch, core_batch_type) || c.num_elements < 0 ||
      c.num_others < 0 || c.num_past < 0) {
    PyErr_SetString(PyExc_ValueError, "Contacts takes a Batch, and sizes from 0 on.");
    return NULL;
  }
  contacts_object* self = core_new(type);
  if (!self) return NULL;
  self->num_worlds = ((batch_object*)batch)->num_worlds;
  self->contacts = c;
  const mjModel* m = lib.mjb_model(((batch_object*)batch)->batch);
  if (take_arrays(self, arrays) && are_sensors(&self->contacts, m)) {
    return (PyObject*)self;
  }
  Py_DECREF(self);
  return NULL;
}

int core_read_contacts(PyObject* tuple, int num_worlds, const core_contacts*** contacts) {
  *contacts = NULL;
  Py_ssize_t count = PyTuple_Size(tuple);
  if (count < 1) return (int)count;
  const core_contacts** found = PyMem_Calloc((size_t)count, sizeof *found);
  if (!found) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* item = PyTuple_GetItem(tuple, i);
    if (!PyObject_IsInstance(item, core_contacts_type) ||
        ((contacts_object*)item)->num_worlds != num_worlds) {
      PyErr_SetString(PyExc_ValueError, "Contacts must be those of this batch.");
      PyMem_Free(found);
      return -1;
    }
    found[i] = &((contacts_object*)item)->contacts;
  }
  *contacts = found;
  return (int)count;
}

static void contacts_dealloc(contacts_object* self) {
  core_release(&self->views);
  core_free(self);
}

static PyType_Slot slots[] = {
    {Py_tp_new, contacts_new},
    {Py_tp_dealloc, contacts_dealloc},
    {0, NULL},
};

PyType_Spec core_contacts_spec = {
    .name = "simstate.engine.core._core.Contacts",
    .basicsize = sizeof(contacts_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
