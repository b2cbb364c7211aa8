/* The Python module of the compiled core. */
#include "binding.h"

/* Goes up with what Python calls here; compiled_core.py has the same number. */
static const int revision = 10;

/* field_offset(name): where mjData has the pointer to a field, or the number itself, and
 * which of the two; None: there is no such field. */
static PyObject* field_offset(PyObject* module, PyObject* name) {
  (void)module;
  const char* text = PyUnicode_AsUTF8AndSize(name, NULL);
  core_field field;
  if (!text) return NULL;
  if (!core_find_field(text, &field)) Py_RETURN_NONE;
  return Py_BuildValue("ni", (Py_ssize_t)field.offset, field.is_scalar);
}

static PyObject* connect(PyObject* module, PyObject* args) {
  PyObject *addresses, *check;
  unsigned long long own_timer;
  (void)module;
  if (!PyArg_ParseTuple(args, "OOK", &addresses, &check, &own_timer)) return NULL;
  void* address[128];
  Py_ssize_t count = 0;
  while (core_symbols[count]) count++;
  if (!PyTuple_Check(addresses) || PyTuple_Size(addresses) != count) {
    PyErr_Format(PyExc_ValueError, "connect needs a tuple of %zd addresses.", count);
    return NULL;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    address[i] = PyLong_AsVoidPtr(PyTuple_GetItem(addresses, i));
    if (!address[i]) {
      if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "%s is missing.",
                                          core_symbols[i]);
      return NULL;
    }
  }
  core_connect(address, (const void*)(uintptr_t)own_timer);
  if (lib.mj_version() != mjVERSION_HEADER) {
    PyErr_Format(PyExc_ImportError, "built for MuJoCo %d, found %d.", mjVERSION_HEADER,
                 lib.mj_version());
    return NULL;
  }
  Py_INCREF(check);
  Py_XDECREF(core_check_callbacks);
  core_check_callbacks = check;
  Py_RETURN_NONE;
}

static PyObject* forked(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  core_forked();
  Py_RETURN_NONE;
}

/* refuse_by(function): what makes the errors of calls in other threads and processes. */
static PyObject* refuse_by(PyObject* module, PyObject* function) {
  (void)module;
  Py_INCREF(function);
  Py_XDECREF(core_refuse);
  core_refuse = function;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"forked", forked, METH_NOARGS, NULL},
    {"refuse_by", refuse_by, METH_O, NULL},
    {"connect", connect, METH_VARARGS, NULL},
    {"jacobians", core_py_jacobians, METH_VARARGS, NULL},
    {"entries", core_py_entries, METH_VARARGS, NULL},
    {"uniform", core_py_uniform, METH_VARARGS, NULL},
    {"free_bodies", core_py_free_bodies, METH_VARARGS, NULL},
    {"body_loads", core_py_body_loads, METH_VARARGS, NULL},
    {"field_offset", field_offset, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_core",
    .m_doc = "MuJoCo's worlds, stepped and integrated in C.",
    .m_size = -1,
    .m_methods = functions,
};

static PyObject* symbols(void) {
  Py_ssize_t count = 0;
  while (core_symbols[count]) count++;
  PyObject* tuple = PyTuple_New(count);
  for (Py_ssize_t i = 0; tuple && i < count; i++) {
    PyTuple_SetItem(tuple, i, PyUnicode_FromString(core_symbols[i]));
  }
  return tuple;
}

static int add_type(PyObject* module, const char* name, PyType_Spec* spec,
                    PyObject** keep) {
  PyObject* type = PyType_FromSpec(spec);
  if (!type) return 0;
  if (keep) *keep = type;
  int failed = PyModule_AddObjectRef(module, name, type);
  Py_DECREF(type); /* the module keeps it */
  return !failed;
}

/* Named after the version of MuJoCo, as the module is: see setup.py. */
PyMODINIT_FUNC CORE_INIT(void) {
  PyObject* module = PyModule_Create(&definition);
  if (!module) return NULL;
  PyObject* names = symbols();
  int fine = names && !PyModule_AddObjectRef(module, "SYMBOLS", names) &&
             !PyModule_AddIntConstant(module, "MUJOCO_VERSION", mjVERSION_HEADER) &&
             !PyModule_AddIntConstant(module, "REVISION", revision) &&
             add_type(module, "Quiet", &core_quiet_spec, NULL) &&
             add_type(module, "Batch", &core_batch_spec, &core_batch_type) &&
             add_type(module, "Integrator", &core_integrator_spec, NULL) &&
             add_type(module, "Reads", &core_reads_spec, NULL) &&
             add_type(module, "Contacts", &core_contacts_spec, &core_contacts_type);
  Py_XDECREF(names);
  if (!fine) {
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
