#include "price.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "options.h"

int price_find(double *dollars, const Gpu *gpu, const char *list) {
    char copy[OPTION_TEXT];
    *dollars = gpu->dollars_per_hour;
    snprintf(copy, sizeof copy, "%s", list);
    for (char *item = strtok(copy, ","); item; item = strtok(NULL, ",")) {
        char *equals = strchr(item, '='), *end = item;
        double price = equals ? strtod(equals + 1, &end) : NAN;
        if (!equals || end == equals + 1 || *end || !(price > 0 && price < INFINITY))
            return error_set("--price %.80s: it takes GPU=DOLLARS, as in rtx4090=0.31", item);
        *equals = 0;
        if (!gpu_find(item)) return error_set("--price: %s", error_message());
        if (strcmp(gpu->key, item) == 0) *dollars = price;
    }
    return 0;
}
