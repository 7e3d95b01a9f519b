/* Every suite, one line each.  Those of ref/ run in float and in double, the others in float. */
SUITE(random)
SUITE(matmul)
SUITE(conv2d)
SUITE(cases)
SUITE(cross_entropy)
SUITE(bcd_loop)
SUITE(bcd)
SUITE(step)
SUITE(resume)
SUITE(fixtures)
#ifndef BCD_DOUBLE
SUITE(data_images)
SUITE(data_tokens)
SUITE(data_bpe)
SUITE(options)
SUITE(h5)
#endif
