#include "accuracy.h"

#include <math.h>
#include <string.h>

#include "../ref/cases.h"
#include "../ref/tolerance.h"
#include "../test.h"

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

/* ---- against the op on the CPU ---- */

static double worst; /* the largest error over tolerance of the running case */

void device_check_near(Turn turn, Array array, Guarded got, Guarded truth, size_t count) {
    double size = guarded_largest(truth);
    for (size_t i = 0; i < count; i++) {
        double value = (double)truth.data[i], error = fabs((double)got.data[i] - value);
        double allowed = device_tolerance(turn.row, array, turn.how.precision, size, value);
        CHECK(error <= allowed, "%s[%zu] is %.9g, not %.9g (error %.3g, allowed %.3g)",
              array_names[array], i, (double)got.data[i], value, error, allowed);
        worst = fmax(worst, error / allowed);
    }
}

static void check_arrays(Turn turn, const CaseData *got, const CaseData *truth, Array from,
                         Array end) {
    for (Array a = from; a < end; a++)
        device_check_near(turn, a, got->array[a], truth->array[a], got->array[a].count);
}

/* The gradients start from what the device saved in its forward pass, so that each call is judged
 * by itself. */
static void take_over(Guarded to, Guarded from) {
    if (to.count) memcpy(to.data, from.data, to.count * sizeof *to.data);
}

void device_meets_oracle(const CaseData *once, Turn turn, bool plain) {
    CaseData truth;
    worst = 0;
    case_create(&truth, turn.row, false);
    device_case_round(&truth, turn.how.precision);
    NodeIO wanted = case_io(&truth);
    wanted.plain = plain;
    node_forward(&truth.node, &wanted);
    check_arrays(turn, once, &truth, ARRAY_MEAN, ARRAY_AUX);
    /* The second half of batch norm's aux is for sums of the backward pass. */
    size_t saved = truth.array[ARRAY_AUX].count;
    if (truth.node.kind == OP_BATCHNORM) saved /= 2;
    device_check_near(turn, ARRAY_AUX, once->array[ARRAY_AUX], truth.array[ARRAY_AUX], saved);
    take_over(truth.array[ARRAY_Y], once->array[ARRAY_Y]);
    take_over(truth.array[ARRAY_AUX], once->array[ARRAY_AUX]);
    node_input_gradient(&truth.node, &wanted);
    node_weight_gradient(&truth.node, &wanted);
    check_arrays(turn, once, &truth, ARRAY_DX, ARRAYS);
    test_note("%.2f of the tolerance is used", worst);
    case_free(&truth);
}
