#include "accuracy.h"

#include <math.h>

#include "../ref/cases.h"
#include "../ref/tolerance.h"

/* tf32 keeps 10 bits of mantissa.  Our kernels round to nearest, 2^-11 of an operand.  The library
 * may also leave the lower 13 bits to the tensor cores, which ignore them (PTX ISA, section "mma":
 * .tf32 operands): up to 2^-10, always towards zero, so that part of it does not cancel. */
static const double U_FP32 = 0x1p-24, U_TF32 = 0x1p-11, U_TF32_LIBRARY = 0x1p-10, U_BF16 = 0x1p-8;

static bool by_library(const Case *row) {
    return row->node.kind == OP_LINEAR || (row->node.kind == OP_CONV2D && row->node.kernel == 1);
}

static double operand_error(const Case *row, Array array, Precision precision) {
    double scale = row->scale > 1 ? row->scale : 1;
    double u = precision == PRECISION_TF32   ? by_library(row) ? U_TF32_LIBRARY : U_TF32
               : precision == PRECISION_BF16 ? U_BF16
                                             : 0;
    switch (row->node.kind) {
        case OP_LINEAR:
        case OP_CONV2D:
            if (precision == PRECISION_BF16 || array == ARRAY_DBIAS) return 0;
            return 2 * u * sqrt(case_length(row, array)) * scale;
        case OP_ATTENTION:
            return 8 * (scale > 1 ? u : fmax(u, U_FP32)) * scale * scale;
        default:
            return 0;
    }
}

/* Returns the factor of tolerance() that is allowed; accuracy.h derives it. */
static double sum_factor(const Case *row, Precision precision) {
    bool product = row->node.kind == OP_LINEAR || row->node.kind == OP_CONV2D ||
                   (row->node.kind == OP_ATTENTION && row->scale <= 1);
    return product && precision == PRECISION_FP32 ? 0.25 : 2;
}

double device_tolerance(const Case *row, Array array, Precision precision, double largest,
                        double value) {
    double sums = sum_factor(row, precision) *
                  tolerance(case_length(row, array), case_magnitude(row, largest));
    double before = sums + operand_error(row, array, precision);
    if (precision == PRECISION_BF16 && array_is_value(array))
        return before + U_BF16 * (fabs(value) + before);
    return before;
}
