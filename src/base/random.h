/* Randomness from the kernel, for tokens and jitter. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

void random_bytes(void *p, size_t n);
/* Even over 0 .. below - 1; below > 0. */
uint64_t random_below(uint64_t below);

#endif
