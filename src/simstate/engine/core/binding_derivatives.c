/* Methods of Batch: derivatives of steps, and signatures of the active constraints. */
#include "binding.h"
#include "derivatives.h"

/* differentiate(width, num_widths, num_steps, by_state, by_ctrl, (out, switched)): the
 * derivatives of all worlds, whose states are not changed; the number that failed. */
PyObject* core_differentiate(batch_object* self, PyObject* args) {
  core_derivatives what;
  PyObject* arrays;
  if (!PyArg_ParseTuple(args, "diippO", &what.width, &what.num_widths, &what.num_steps,
                        &what.by_state, &what.by_ctrl, &arrays)) {
    return NULL;
  }
  const mjModel* m = lib.mjb_model(self->batch);
  Py_ssize_t rows = 2 * m->nv + m->na, n = self->num_worlds;
  Py_ssize_t columns = (what.by_state ? rows : 0) + (what.by_ctrl ? m->nu : 0);
  const core_entry entry[] = {
      CORE_OUT("out", 'd', n * what.num_widths * columns * rows, &what.out),
      CORE_OUT("switched", 'B', n * columns, &what.switched),
  };
  core_views v = {.count = 0};
  core_call call = {.kind = CORE_APPLY,
                    .count = self->num_worlds,
                    .function = core_differentiate_world,
                    .argument = &what};
  int failed = CORE_TAKE_ALL(&v, arrays, entry) ? core_run(self, &call) : -1;
  core_release(&v);
  return core_number(failed);
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
  return core_number(failed);
}
