/* The suites that run on every device: what all others need, then those that take longest first,
 * since several run at a time. */
SUITE(device)
SUITE(products)
SUITE(device_cases_bf16)
SUITE(device_cases_fp32)
SUITE(device_cases_tf32)
SUITE(large_products)
SUITE(large_cases)
SUITE(large_arrays)
SUITE(stage_pipeline)
SUITE(stage_memory)
SUITE(stage_exact)
SUITE(device_update)
#ifdef HAS_NCCL
SUITE(transport_nccl)
#endif
SUITE(stage_fixtures)
SUITE(stage)
SUITE(stage_extend)
SUITE(norms)
SUITE(rows)
SUITE(loss)
SUITE(images)
