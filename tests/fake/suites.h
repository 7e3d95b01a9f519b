/* The stand-ins themselves, then the suites that go through cuda/gpu/. Kernels have tests of their
 * own. */
SUITE(fake_device)
SUITE(fake_products)
SUITE(device)
SUITE(products)
SUITE(stage_exact)
SUITE(stage_extend)
SUITE(stage_memory)
SUITE(stage_pipeline)
SUITE(large_products)
SUITE(large_arrays)
#ifdef HAS_NCCL
SUITE(transport_nccl)
#endif
