/* Linear layers as matrix products (ref/fast/linear.c has the equations).  Weights are [o][c]. */
#include "../matmul.h"

void cuda_linear_forward(const Call *k) {
    cuda_matmul(k->run, &(Product){.c = k->io->y,
                                   .a = k->io->x,
                                   .b = k->io->weight,
                                   .ldc = k->y_stride,
                                   .lda = k->c,
                                   .ldb = k->c,
                                   .transpose_b = true,
                                   .m = k->rows,
                                   .n = k->o,
                                   .k = k->c,
                                   .bias = k->io->bias,
                                   .epilogue = k->io->gelu ? EPILOGUE_GELU : EPILOGUE_NONE,
                                   .saved = k->io->saved});
}

void cuda_linear_input_gradient(const Call *k) {
    cuda_matmul(k->run, &(Product){.c = k->io->dx,
                                   .a = k->io->dy,
                                   .b = k->io->weight,
                                   .ldc = k->c,
                                   .lda = k->y_stride,
                                   .ldb = k->c,
                                   .m = k->rows,
                                   .n = k->c,
                                   .k = k->o,
                                   .add = k->io->add_dx,
                                   .epilogue = k->io->gelu ? EPILOGUE_GELU_GRADIENT : EPILOGUE_NONE,
                                   .saved = k->io->saved});
}

void cuda_linear_weight_gradient(const Call *k) {
    const DeviceIO *io = k->io;
    bool together = io->dweight && io->dbias && !io->add_dbias; /* the product reads dy anyway */
    Product product = {.c = io->dweight,
                       .a = io->dy,
                       .b = io->x,
                       .ldc = k->c,
                       .lda = k->y_stride,
                       .ldb = k->c,
                       .transpose_a = true,
                       .m = k->o,
                       .n = k->c,
                       .k = k->rows,
                       .add = io->add_dweight,
                       .c_float = true,
                       .column_sums = together ? io->dbias : NULL};
    if (io->dweight) cuda_matmul(k->run, &product);
    if (io->dbias && !together)
        cuda_bias_gradient(k->run, io->dbias, io->dy, k->rows, k->o, k->y_stride, io->add_dbias);
}

size_t cuda_linear_workspace(const Call *k) {
    size_t product = cuda_matmul_workspace();
    size_t bias = cuda_bias_gradient_workspace(k->rows, k->o);
    return product > bias ? product : bias;
}
