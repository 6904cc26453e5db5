/* A target with everything wrong that fuzzing is to find, by the first byte: so that it is seen that it would be found. */
#include <limits.h>

#include "fuzz.h"

static volatile size_t sum;
static void *volatile kept;

/* A loop too many: over the square of the size. */
static void look_again_and_again(const uint8_t *data, size_t n)
{
    for (size_t i = 0; i < n; i += 2048)
        for (size_t j = 0; j < i; j++)
            sum += data[j];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    int most = INT_MAX;

    if (n == 0)
        return 0;
    switch (data[0]) {
    case 'a':
        CHECK(n > 1000);
        break;
    case 'b': /* beyond the end */
        sum += data[n + 1 - (n > 1000)];
        break;
    case 'l': /* a leak */
        kept = malloc(100);
        kept = NULL;
        break;
    case 'o':
        sum += (size_t)(most + (n < 1000));
        break;
    case 'h':
        while (n < 1000)
            sum++;
        break;
    case 'q':
        look_again_and_again(data, n);
        break;
    default:
        break;
    }
    return 0;
}
