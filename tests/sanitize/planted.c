/* One mistake of each kind that the sanitizers must report, and a clean run that they must not:
 * planted clean | overrun | overflow | race.  A sanitizer that is silent about these, because a
 * flag or a library is missing, would be silent about everything. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000 };

/* With shift 0 each thread reads what others wrote, but only after a barrier.  With shift 1 a
 * thread reads the element after its last one while that element's owner writes it. */
static double neighbours(int shift) {
    static double x[N], y[N];
    double total = 0;
    for (int round = 0; round < 20; round++) {
#pragma omp parallel
        {
#pragma omp for
            for (int i = 0; i < N; i++) x[i] = i + round;
#pragma omp for reduction(+ : total)
            for (int i = 0; i < N; i++) {
                y[i] += x[N - 1 - i];
                total += y[i];
            }
        }
#pragma omp parallel for
        for (int i = 0; i < N - shift; i++) y[i] = x[i] + y[i + shift];
    }
    return total;
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "clean";
    volatile int n = strcmp(kind, "overrun") == 0 ? 11 : 10;
    char *bytes = calloc(10, 1);
    if (!bytes) return 1;
    for (int i = 0; i < n; i++) bytes[i] = 'x';
    free(bytes);
    volatile int large = strcmp(kind, "overflow") == 0 ? INT_MAX : 0;
    large = large + 1;
    printf("%g\n", neighbours(strcmp(kind, "race") == 0));
    return 0;
}
