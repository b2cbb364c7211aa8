/* Raise an exception at chosen lines of Python code.

sys.settrace removes a trace function that raises. A C trace function stays active, so
that the code which handles the first exception can be interrupted as well. Lines are
counted from 0 in all files below a folder, in the thread that called start(). */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

static char folder[4096];
static PyObject* lines;   /* set of the counts at which to raise */
static PyObject* error;   /* what to raise */
static PyObject* places;  /* list of (file, line) where it was raised */
static PyObject* handled; /* the exception that was being handled at the start */
static long count;

static int trace(PyObject* self, PyFrameObject* frame, int event, PyObject* arg) {
  (void)self;
  (void)arg;
  if (event != PyTrace_LINE) return 0;
  PyCodeObject* code = PyFrame_GetCode(frame);
  PyObject* file = Py_NewRef(code->co_filename);
  Py_DECREF(code);
  const char* name = PyUnicode_AsUTF8(file);
  int found = 0;
  if (name && !strncmp(name, folder, strlen(folder))) {
    PyObject* number = PyLong_FromLong(count++);
    found = number ? PySet_Contains(lines, number) : -1;
    Py_XDECREF(number);
  }
  if (found > 0) {
    PyObject* place = Py_BuildValue("(Oi)", file, PyFrame_GetLineNumber(frame));
    if (place && !PyList_Append(places, place)) PyErr_SetNone(error);
    Py_XDECREF(place);
  }
  Py_DECREF(file);
  return PyErr_Occurred() ? -1 : 0;
}

static PyObject* start(PyObject* self, PyObject* args) {
  const char* path;
  PyObject *at, *type;
  (void)self;
  if (!PyArg_ParseTuple(args, "sO!O", &path, &PyFrozenSet_Type, &at, &type)) return 0;
  PyObject* empty = PyList_New(0);
  if (!empty) return NULL;
  strncpy(folder, path, sizeof folder - 1);
  Py_XSETREF(places, empty);
  Py_XSETREF(lines, Py_NewRef(at));
  Py_XSETREF(error, Py_NewRef(type));
  Py_XSETREF(handled, PyErr_GetHandledException());
  count = 0;
  PyEval_SetTrace(trace, NULL);
  Py_RETURN_NONE;
}

static PyObject* stop(PyObject* self, PyObject* args) {
  (void)self;
  (void)args;
  PyEval_SetTrace(NULL, NULL);
  /* One raised in the last line of an except clause leaves the first one handled. */
  PyErr_SetHandledException(handled);
  Py_CLEAR(handled);
  return Py_BuildValue("lO", count, places);
}

static PyMethodDef functions[] = {
    {"start", start, METH_VARARGS, "start(folder, lines, error): trace this thread."},
    {"stop", stop, METH_NOARGS, "Stop; return the count of lines and the places."},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "tracer", NULL, -1, functions, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_tracer(void) { return PyModule_Create(&module); }
