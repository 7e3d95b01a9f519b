/* Every suite, one line each.  Those of ref/ run in float and in double, the others in float. */
SUITE(random)
SUITE(matmul)
SUITE(conv2d)
SUITE(cases)
SUITE(cross_entropy)
SUITE(bcd_loop)
SUITE(bcd)
SUITE(fixtures)
