/* Marks the blocks of a library that run: linked into a copy that is compiled with
   -fsanitize-coverage=trace-pc, for `tests.c_line_map`. */
#include <stdint.h>

extern const char __ehdr_start[];
unsigned char simstate_blocks[1 << 21];

__attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc(void) {
  uintptr_t at = (uintptr_t)__builtin_return_address(0) - (uintptr_t)__ehdr_start;
  if (at < sizeof simstate_blocks) {
    simstate_blocks[at] = 1;
  }
}
