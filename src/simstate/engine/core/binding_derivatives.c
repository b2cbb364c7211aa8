/* Methods of Batch: derivatives of steps, and signatures of the active constraints. */
#include "binding.h"
#include "derivatives.h"

/* differentiate(width, num_widths, num_steps, by_state, by_ctrl, out, switched): the
 * derivatives of all worlds, whose states are not changed; the number that failed. */
PyObject* core_differentiate(batch_object* self, PyObject* args) {
  core_derivatives what;
  PyObject *out, *switched;
  if (!PyArg_ParseTuple(args, "diippOO", &what.width, &what.num_widths, &what.num_steps,
                        &what.by_state, &what.by_ctrl, &out, &switched)) {
    return NULL;
  }
  const mjModel* m = lib.mjb_model(self->batch);
  Py_ssize_t rows = 2 * m->nv + m->na, n = self->num_worlds;
  Py_ssize_t columns = (what.by_state ? rows : 0) + (what.by_ctrl ? m->nu : 0);
  Py_buffer to, flags;
  if (!core_view(out, &to, 'd', n * what.num_widths * columns * rows, 1, "out")) {
    return NULL;
  }
  if (!core_view(switched, &flags, 'B', n * columns, 1, "switched")) {
    PyBuffer_Release(&to);
    return NULL;
  }
  what.out = to.buf;
  what.switched = flags.buf;
  core_call call = {.kind = CORE_APPLY,
                    .count = self->num_worlds,
                    .function = core_differentiate_world,
                    .argument = &what};
  int failed = core_run(self, &call);
  PyBuffer_Release(&flags);
  PyBuffer_Release(&to);
  return failed < 0 ? NULL : PyLong_FromLong(failed);
}

/* signatures(out): of the constraints that are active at the present states, int64. */
PyObject* core_signatures(batch_object* self, PyObject* out) {
  Py_buffer to;
  if (!core_view(out, &to, 'q', self->num_worlds, 1, "out")) return NULL;
  core_call call = {.kind = CORE_APPLY,
                    .count = self->num_worlds,
                    .function = core_signature_world,
                    .argument = to.buf};
  int failed = core_run(self, &call);
  PyBuffer_Release(&to);
  return failed < 0 ? NULL : PyLong_FromLong(failed);
}
