#include "matmul.h"

static bool in_one_piece(const Run *run, const Product *product) {
    return run->version != 1 && library_matmul(run, product);
}

/* Runs the product alone.  The library may lack it where rows are not aligned, as in bf16 with an
 * odd stride. */
static void bare(const Run *run, const Product *product) {
    if (!library_matmul(run, product)) cuda_plain_product(run, product);
}

/* Where the library cannot add the bias, C starts as the bias and the product is added to it. */
static void with_bias(const Run *run, Product product) {
    if (product.bias && in_one_piece(run, &product)) return;
    if (product.bias) {
        cuda_repeat_row(run, product.c, product.bias, product.m, product.n, product.ldc);
        product.bias = NULL;
        product.add = true;
    }
    bare(run, &product);
}

void cuda_matmul(const Run *run, const Product *product) {
    if (in_one_piece(run, product)) return;
    Product rest = *product;
    rest.epilogue = EPILOGUE_NONE;
    rest.column_sums = NULL;
    if (product->column_sums)
        cuda_bias_gradient(run, product->column_sums, rest.a, rest.k, rest.m, rest.lda, false);
    if (product->epilogue == EPILOGUE_GELU && rest.saved) rest.c = rest.saved;
    rest.saved = NULL; /* no longer needed, and the library wants its rows aligned */
    with_bias(run, rest);
    DeviceIO io = {.x = rest.c, .y = product->c};
    if (product->epilogue == EPILOGUE_GELU_GRADIENT)
        io = (DeviceIO){.x = product->saved, .dx = product->c, .dy = product->c};
    Call gelu = {.run = run, .io = &io, .count = (size_t)rest.m * (size_t)rest.n};
    if (product->epilogue == EPILOGUE_GELU) cuda_gelu_forward(&gelu);
    if (product->epilogue == EPILOGUE_GELU_GRADIENT) cuda_gelu_input_gradient(&gelu);
}

int cuda_matmul_load(void) {
    enum { SIDE = 64, BYTES = SIDE * SIDE * sizeof(float) };
    Stream stream = stream_create();
    char *memory = device_alloc(3 * BYTES + cuda_matmul_workspace());
    int failed = !stream || !memory;
    for (Precision p = 0; p < PRECISIONS && !failed; p++) {
        const Run run = {stream, p, 0, memory + 3 * BYTES};
        const Product product = {.c = memory,
                                 .a = memory + BYTES,
                                 .b = memory + 2 * BYTES,
                                 .ldc = SIDE,
                                 .lda = SIDE,
                                 .ldb = SIDE,
                                 .m = SIDE,
                                 .n = SIDE,
                                 .k = SIDE};
        library_matmul(&run, &product);
        failed = device_wait(stream);
    }
    device_free(memory);
    stream_free(stream);
    return failed ? -1 : 0;
}
