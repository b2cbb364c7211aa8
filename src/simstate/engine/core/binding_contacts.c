/* The Python type Contacts: what a contact sensor remembers of each step. */
#include "binding.h"

PyObject* core_contacts_type;

/* Holds the rows of a slot, `columns` numbers in each world. */
static int hold_rows(contacts_object* self, PyObject* array, core_rows* rows,
                     Py_ssize_t columns, const char* name) {
  Py_buffer* view = self->view + self->num_views;
  Py_ssize_t given;
  if (!core_view_rows(array, view, self->num_worlds, 1, &rows->stride, &given, name)) {
    return 0;
  }
  self->num_views++;
  rows->at = view->buf;
  if (given == columns) return 1;
  PyErr_Format(PyExc_ValueError, "%s must have %zd numbers in each world, got %zd.",
               name, columns, given);
  return 0;
}

/* Holds an int for each element and other side; NULL with an exception set. */
static const int* hold_ints(contacts_object* self, PyObject* array, const char* name) {
  Py_ssize_t count = (Py_ssize_t)self->contacts.num_elements * self->contacts.num_others;
  Py_buffer* view = self->view + self->num_views;
  if (!core_view(array, view, 'i', count, 0, name)) return NULL;
  self->num_views++;
  return view->buf;
}

static int is_contact_sensor(const mjModel* m, int sensor) {
  return sensor >= 0 && sensor < m->nsensor && m->sensor_type[sensor] == mjSENS_CONTACT;
}

/* Holds ids of sensors, and where those of net forces have them. */
static int hold_sensors(contacts_object* self, PyObject* sensors, PyObject* columns,
                        PyObject* singles, const mjModel* m) {
  core_contacts* c = &self->contacts;
  if (!(c->sensor = hold_ints(self, sensors, "sensors")) ||
      !(c->column = hold_ints(self, columns, "columns")) ||
      !(c->single = hold_ints(self, singles, "singles"))) {
    return 0;
  }
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

/* Holds what evaluations have shown, one array after the other. */
static int hold_shown(contacts_object* self, PyObject* force, PyObject* greatest,
                      PyObject* touching) {
  core_contacts* c = &self->contacts;
  Py_ssize_t count = (Py_ssize_t)self->num_worlds * c->num_elements;
  Py_buffer* view = self->view + self->num_views;
  if (!core_view(force, view, 'd', 3 * count, 1, "force")) return 0;
  self->num_views++;
  if (!core_view(greatest, view + 1, 'd', count, 1, "greatest")) return 0;
  self->num_views++;
  if (!core_view(touching, view + 2, 'B', count, 1, "touching")) return 0;
  self->num_views++;
  c->shown_force = view[0].buf;
  c->shown_greatest = view[1].buf;
  c->shown_touching = view[2].buf;
  return 1;
}

static PyObject* contacts_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *batch, *sensors, *columns, *singles;
  PyObject *air, *contact, *last_air, *last_contact, *greatest, *past;
  PyObject *shown_force, *shown_greatest, *shown_touching;
  core_contacts c = {0};
  (void)kwargs;
  if (!PyArg_ParseTuple(args, "O(iii)pdOOOOOOOOOOOO", &batch, &c.num_elements,
                        &c.num_others, &c.num_past, &c.every_step, &c.threshold,
                        &sensors, &columns, &singles, &air, &contact, &last_air, &last_contact,
                        &greatest, &past, &shown_force, &shown_greatest,
                        &shown_touching)) {
    return NULL;
  }
  if (!PyObject_IsInstance(batch, core_batch_type) || c.num_elements < 0 ||
      c.num_others < 0 || c.num_past < 0) {
    PyErr_SetString(PyExc_ValueError, "Contacts takes a Batch, and sizes from 0 on.");
    return NULL;
  }
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  contacts_object* self = (contacts_object*)allocate(type, 0);
  if (!self) return NULL;
  self->num_worlds = ((batch_object*)batch)->num_worlds;
  self->contacts = c;
  core_contacts* own = &self->contacts;
  Py_ssize_t each = c.num_elements, all = (Py_ssize_t)3 * each * c.num_past;
  const mjModel* m = lib.mjb_model(((batch_object*)batch)->batch);
  if (hold_sensors(self, sensors, columns, singles, m) &&
      hold_rows(self, air, &own->air_time, each, "air_time") &&
      hold_rows(self, contact, &own->contact_time, each, "contact_time") &&
      hold_rows(self, last_air, &own->last_air_time, each, "last_air_time") &&
      hold_rows(self, last_contact, &own->last_contact_time, each,
                "last_contact_time") &&
      hold_rows(self, greatest, &own->greatest_force, each, "greatest_force") &&
      (!all || hold_rows(self, past, &own->force_history, all, "force_history")) &&
      hold_shown(self, shown_force, shown_greatest, shown_touching)) {
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
  PyTypeObject* type = Py_TYPE((PyObject*)self);
  while (self->num_views) PyBuffer_Release(self->view + --self->num_views);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
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
