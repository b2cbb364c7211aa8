/* Methods of Batch that keep fields as the last evaluation of the dynamics left them. */
#include <string.h>

#include "binding.h"

/* keep(name, array, after_constraints): copies a field into (num_worlds, ...) float64
 * after every step from now on, before positions and velocities are brought up to date.
 * mj_rnePostConstraint runs first if `after_constraints` is true for one of them. */
PyObject* core_keep(batch_object* self, PyObject* args) {
  const char* name;
  PyObject* array;
  int after_constraints;
  if (!PyArg_ParseTuple(args, "sOp", &name, &array, &after_constraints)) return NULL;
  core_field field;
  int i = self->kept.outputs.num_outputs;
  if (i == CORE_MAX_KEPT || !core_find_field(name, &field) || field.is_scalar) {
    PyErr_Format(PyExc_ValueError, "%s cannot be kept.", name);
    return NULL;
  }
  Py_buffer* view = self->kept_view + i;
  if (!core_view(array, view, 'd', -1, 1, name)) return NULL;
  self->kept_output[i] =
      (core_output){field.offset, 0, (size_t)(view->len / self->num_worlds), view->buf,
                    CORE_REFRESHED};
  self->kept.after_constraints |= after_constraints;
  self->kept.outputs.num_outputs++;
  Py_RETURN_NONE;
}

/* evaluate_kept(ids, after_constraints): mj_forward at the present state, which fills
 * the kept fields alone. Returns the number of worlds that failed. */
PyObject* core_evaluate_kept(batch_object* self, PyObject* args) {
  PyObject* ids;
  core_evaluation evaluation = {.kept = &self->kept};
  if (!PyArg_ParseTuple(args, "Op", &ids, &evaluation.after_constraints)) return NULL;
  core_call call = {
      .kind = CORE_APPLY, .function = core_evaluate_world, .argument = &evaluation};
  Py_buffer view;
  if (!core_view_ids(ids, &view, self->num_worlds, &call.ids, &call.count)) return NULL;
  int failed = core_run(self, &call);
  PyBuffer_Release(&view);
  return core_number(failed);
}
