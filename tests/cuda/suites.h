/* The suites that run on every device. */
SUITE(device)
SUITE(products)
SUITE(device_cases_fp32)
SUITE(device_cases_tf32)
SUITE(device_cases_bf16)
SUITE(loss)
SUITE(rows)
SUITE(norms)
SUITE(images)
SUITE(device_update)
SUITE(stage)
SUITE(stage_exact)
SUITE(stage_memory)
SUITE(stage_fixtures)
SUITE(stage_pipeline)
#ifdef HAS_NCCL
SUITE(transport_nccl)
#endif
