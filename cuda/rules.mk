# The device libraries, built from the same files of cuda/, each loaded by the program at run time:
#   build/libbcd-simt.so   kernels compiled as C++ for this CPU; always
#   build/libbcd-cuda.so   kernels compiled by nvcc; where CUDA 12 or later is found; with the NCCL
#                          transport where nccl.h of NCCL 2.22 or later is.  cuBLASLt and NCCL are
#                          found when they are first used
# What they need of ref/ they find in the program, so that there is one of everything.
#   CUDA_HOME     headers and libraries; by default those of the nvcc on the PATH, or else /usr/local/cuda
#   NVCC          the CUDA compiler; of CUDA_HOME, the PATH or /usr/local/cuda.  Its host compiler is
#                 that of CC: CC=gcc-12 where it refuses a newer one
#   ARCHS         compute capabilities to build for, and PTX of the first for later ones; by default
#                 those of this machine's GPUs, if nvcc knows them, or else 80 89 90a
NVCC := $(or $(NVCC),$(firstword $(if $(CUDA_HOME),$(wildcard $(CUDA_HOME)/bin/nvcc)) $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc)))
CXX := $(if $(filter cc,$(CC)),c++,$(subst gcc,g++,$(subst clang,clang++,$(CC))))
# conda's packages have their headers and libraries by target.
homes := $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
homes := $(homes) $(homes:%=%/targets/x86_64-linux) /usr/local/cuda
CUDA_HOME := $(or $(CUDA_HOME),$(patsubst %/include/cuda_runtime_api.h,%,$(firstword $(wildcard $(homes:%=%/include/cuda_runtime_api.h)))),$(lastword $(homes)))
cuda_cflags := $(if $(filter-out /usr,$(CUDA_HOME)),-isystem $(CUDA_HOME)/include)

# What headers say of their version, for $(call at_least): of one that is not there, nothing.
macro = $(shell { printf '\043include <%s>\n' $(1); echo $(2); } | $(CC) $(cuda_cflags) -E -P - 2>/dev/null | tail -n 1)
at_least = $(shell test "$(2)" -ge $(1) 2>/dev/null && echo yes)
# The stand-ins of tests/fake are made of NVIDIA's headers, too.
has_cuda := $(call at_least,12000,$(call macro,cublasLt.h cuda_runtime_api.h,CUDART_VERSION))
# The NCCL transport, where nccl.h is; libnccl.so.2 itself is looked for when it is asked for.
has_nccl := $(call at_least,22200,$(call macro,nccl.h,NCCL_VERSION_CODE))
where_nccl = $(filter-out $(if $(has_nccl),,%transport_nccl.c %nccl_library.c %nccl_fake.c),$(1))

# CUDA=no leaves nvcc's part of `make` out.  An older nvcc refuses a newer host compiler, and that of
# CUDA 12 the C library of Debian 13, even for an empty file.
nvcc_works = $(shell $(NVCC) -x cu -std=c++17 -ccbin $(CXX) -cuda -o /dev/null /dev/null >/dev/null 2>&1 && echo yes)
no_cuda := $(if $(filter no,$(CUDA)),CUDA=no,$(if $(NVCC),$(if $(has_cuda),$(if $(nvcc_works),,$(NVCC) does not work with $(CXX) and this C library),$(CUDA_HOME) has no headers of CUDA 12 or later),nvcc was not found))
$(if $(NVCC),$(if $(no_cuda),$(if $(filter CUDA=no,$(no_cuda)),,$(warning CUDA is left out: $(no_cuda)))))
override CUDA := $(if $(no_cuda),no,yes)

# Older GPUs than 8.0 cannot run the kernels.  Only code for 90a has Hopper's own instructions.
gpus_here := $(if $(NVCC),$(filter 8% 9% 1%,$(sort $(subst .,,$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null)))))
known := $(if $(gpus_here),$(shell $(NVCC) --list-gpu-arch))
ARCHS := $(or $(ARCHS),$(if $(filter-out $(known:compute_%=%),$(gpus_here)),,$(patsubst 90,90a,$(gpus_here))),80 89 90a)

device_c := $(wildcard cuda/*.c cuda/stage/*.c cuda/ops/*.c)
kernels_cu := $(wildcard cuda/ops/*.cu)
simt_c := $(wildcard cuda/simt/*.c)
race_c := $(wildcard tests/simt/race/*.c)
gpu_c := $(call where_nccl,$(wildcard cuda/gpu/*.c))
device_tests_c := $(call where_nccl,$(wildcard tests/cuda/*.c))
device_tests_cu := $(wildcard tests/cuda/*.cu)
simt_tests := $(call where_nccl,$(filter-out %/profiler.c,$(wildcard tests/simt/*.c tests/simt/*.cu)))
# Of the tests of ref/ and dist/, the case table, tiny models, pipelines and what they stand on.
shared_tests := $(BUILD)/float/tests.a
$(shared_tests): $(call objects,float,$(filter-out tests/main.c tests/ref/test_%.c,$(ref_tests_c)) \
                                      tests/dist/pipeline.c tests/dist/pipeline_cases.c)

# Objects by how they are compiled: device/ host code of both, in C; simt/ kernels as C++ and the
# SIMT layer; race/ kernels that tell the race checker of every access; gpu/ kernels by nvcc.
device_objects = $(addprefix $(BUILD)/$(1)/,$(addsuffix .o,$(basename $(2))))
host_o := $(call device_objects,device,$(device_c))
simt_o := $(call device_objects,simt,$(simt_c))
simt_kernels_o := $(call device_objects,simt,$(kernels_cu))
race_o := $(call device_objects,simt,$(race_c))
race_kernels_o := $(call device_objects,race,$(kernels_cu))
gpu_o := $(call device_objects,gpu,$(gpu_c) $(kernels_cu))

# ---- compilers -----------------------------------------------------------------------------------

# g++ does not know nvcc's #pragma unroll.  clang++ under sanitizers: two checks would need the C++
# library, and unrolled tiles take it minutes; so do four more checks of every access, where the
# address sanitizer sees what they would, and the race checker what is misaligned.
cxx_quiet := $(if $(findstring clang,$(CC)),,-Wno-unknown-pragmas)
cxx_sanitized := $(if $(and $(findstring clang,$(CC)),$(findstring -fsanitize,$(CFLAGS_EXTRA))),\
    $(addprefix -fno-sanitize=,function vptr null object-size pointer-overflow alignment) -mllvm -pragma-unroll-threshold=1 -Wno-pass-failed)
CXXFLAGS := -x c++ -std=c++17 -fno-exceptions -fno-rtti -O2 $(native) -ffp-contract=fast \
            -fno-math-errno -fPIC -g1 $(warnings) $(cxx_quiet) $(CFLAGS_EXTRA) $(cxx_sanitized)
# Their hooks are the project's own (tests/simt/race): no sanitizer library is linked.  g++ tells of
# all misaligned accesses, clang++ of some.
race_flags := -O1 -fsanitize=thread,alignment
race_cxx := $(or $(shell command -v g++),$(CXX))
# The kernels use nothing of sm_89 that sm_80 lacks, so both are made of one PTX, which takes less time
# and gives the same machine code.
ptx_of = $(if $(filter 89,$(1)),$(or $(filter 80,$(ARCHS)),89),$(1))
NVCCFLAGS := -std=c++17 -O3 -lineinfo -ccbin $(CXX) \
    $(foreach arch,$(ARCHS),-gencode arch=compute_$(call ptx_of,$(arch)),code=sm_$(arch)) \
    $(foreach arch,$(patsubst %a,%,$(firstword $(ARCHS))),-gencode arch=compute_$(arch),code=compute_$(arch)) \
    $(NVCCFLAGS_EXTRA) -Xcompiler -fPIC,-fno-exceptions,-fno-threadsafe-statics,-Wall,-Wextra $(if $(findstring -Werror,$(CFLAGS_EXTRA)),-Werror all-warnings)
cuda_lib := $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib))
cuda_libs := $(cuda_lib:%=-L% -Wl,-rpath,%) -lcudart_static -lrt -lpthread -ldl

kernels_text := $(CXX) $(CXXFLAGS) $(race_flags)
nvcc_text := $(NVCC) $(NVCCFLAGS)
$(BUILD)/flags-kernels: export TEXT = $(kernels_text)
$(BUILD)/flags-nvcc: export TEXT = $(nvcc_text)

define compile_host
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -MMD -MP -c $< -o $@
endef
$(BUILD)/device/%.o: %.c $(BUILD)/flags
	$(compile_host)
$(BUILD)/simt/%.o: %.c $(BUILD)/flags
	$(compile_host)
$(BUILD)/gpu/%.o: %.c $(BUILD)/flags
	$(compile_host)
$(BUILD)/gpu/%.o: CPPFLAGS += $(cuda_cflags)
# Whether the kernels of attention_hopper.cuh are more than traps.
$(BUILD)/gpu/cuda/gpu/device.o: CPPFLAGS += -DBUILT_FOR_SM_90A=$(if $(filter 90a,$(ARCHS)),true,false)
$(BUILD)/gpu/cuda/gpu/device.o: $(BUILD)/flags-nvcc
$(BUILD)/simt/%.o: %.cu $(BUILD)/flags-kernels
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CXXFLAGS) -MMD -MP -c $< -o $@
$(BUILD)/race/%.o: %.cu $(BUILD)/flags-kernels
	$(call say,CXX,$<' (race)')
	@mkdir -p $(@D)
	$(Q)$(race_cxx) $(CXXFLAGS) $(race_flags) -MMD -MP -c $< -o $@
$(BUILD)/gpu/%.o: %.cu $(BUILD)/flags-nvcc
	$(call say,NVCC,$<)
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCCFLAGS) -MMD -MP -c $< -o $@ 2>$@.log; status=$$?; cat $@.log >&2; exit $$status

all: $(BUILD)/libbcd-simt.so $(if $(filter yes,$(CUDA)),$(BUILD)/libbcd-cuda.so)

# ---- libraries -----------------------------------------------------------------------------------

.PHONY: cuda machine-code no-cuda tests-simt race gpu-programs gpu-check gpu-bundle bundle-programs
$(BUILD)/libbcd-simt.so: $(BUILD)/device/ref/headers.o $(host_o) $(simt_o) $(simt_kernels_o)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(CFLAGS) $(LDFLAGS) -Wl,-Bsymbolic $^ -lm -lpthread -o $@
$(BUILD)/libbcd-cuda.so: $(BUILD)/device/ref/headers.o $(host_o) $(gpu_o)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(CFLAGS) $(LDFLAGS) -Wl,-Bsymbolic $^ $(cuda_libs) -lm -o $@

# Of kernels for sm_90a; where there is no cuobjdump this says so.
machine-code: $(call device_objects,gpu,$(kernels_cu)) ## check the machine code that nvcc made of the kernels
	@tests/lint/machine_code $^

cuda: $(if $(no_cuda),no-cuda,$(BUILD)/libbcd-cuda.so) ## build only the CUDA library (NVCC=..., CUDA_HOME=...)
no-cuda:
	@echo "$(no_cuda): install CUDA 12 or later, or set CUDA_HOME"; exit 1

# ---- tests ---------------------------------------------------------------------------------------

main_o = $(BUILD)/$(1)/tests/main.o
$(call main_o,simt): CPPFLAGS += -DTEST_SUITES='"simt/suites.h"' -DTEST_PROGRAM='"simt"'
$(call main_o,gpu): CPPFLAGS += -DTEST_SUITES='"cuda/suites.h"' -DTEST_PROGRAM='"cuda"'
$(call main_o,simt) $(call main_o,gpu) $(BUILD)/simt/tests/simt/test_late.o: CPPFLAGS += $(if $(has_nccl),-DHAS_NCCL)
device_tests_o := $(call device_objects,device,$(device_tests_c)) $(host_o)
# Under SIMT the NCCL transport stands on tests/simt/nccl_fake.c.
faked_o := $(call device_objects,simt,$(filter %/transport_nccl.c,$(gpu_c)))
$(faked_o) $(BUILD)/simt/tests/simt/nccl_fake.o: CPPFLAGS += $(cuda_cflags)
libraries := $(shared_tests) $(float_library)

$(BUILD)/tests-simt: $(call main_o,simt) $(call device_objects,simt,$(simt_tests)) \
    $(faked_o) $(device_tests_o) $(call device_objects,simt,$(device_tests_cu)) $(simt_o) $(simt_kernels_o) $(libraries)
$(BUILD)/tests-race: $(call main_o,simt) $(faked_o) $(device_tests_o) $(simt_o) $(race_o) $(race_kernels_o) \
    $(call device_objects,simt,$(filter %.c,$(simt_tests))) \
    $(call device_objects,race,$(filter %.cu,$(simt_tests)) $(device_tests_cu)) $(libraries)
$(BUILD)/tests-cuda: $(call main_o,gpu) $(call device_objects,gpu,tests/gpu/orders.c) \
    $(call device_objects,gpu,$(device_tests_cu)) $(device_tests_o) $(gpu_o) $(libraries)
$(BUILD)/tests-cuda: LDLIBS += $(cuda_libs)
# gpu/ itself, on stand-ins for the CUDA runtime, cuBLASLt and NCCL.  That of cuBLASLt is a library,
# named as the program asks for it; the runtime is the program's.
fake_c := $(filter-out %/cublaslt.c %/cublaslt_product.c,$(wildcard tests/fake/*.c))
fake_o := $(call device_objects,gpu,$(filter-out %/nccl_library.c,$(gpu_c)) $(filter-out %/test_fake_device.c %/test_fake_products.c,$(fake_c))) \
    $(call device_objects,simt,$(filter-out $(addprefix cuda/simt/,device.c matmul.c capture.c),$(simt_c)) \
                               $(call where_nccl,tests/simt/nccl_fake.c))
$(BUILD)/tests-fake: $(call main_o,fake) $(call device_objects,gpu,$(filter %/test_fake_device.c %/test_fake_products.c,$(fake_c))) \
    $(BUILD)/fake/tests/simt/orders.o $(device_tests_o) $(call device_objects,simt,$(device_tests_cu)) $(fake_o) $(simt_kernels_o) $(libraries)
$(BUILD)/fake/tests/simt/orders.o: CPPFLAGS += -DSTANDS_IN=true
$(call main_o,fake): CPPFLAGS += -DTEST_SUITES='"fake/suites.h"' -DTEST_PROGRAM='"fake"' $(if $(has_nccl),-DHAS_NCCL)
$(BUILD)/fake/%.o: %.c $(BUILD)/flags
	$(compile_host)
$(BUILD)/fake/libcublasLt.so: $(call device_objects,gpu,tests/fake/cublaslt.c tests/fake/cublaslt_product.c)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(CFLAGS) $(LDFLAGS) $^ -lm -o $@
	$(Q)ln -sf libcublasLt.so $@.$(cublas_major)
cublas_major = $(call macro,cublasLt.h,CUBLAS_VER_MAJOR)
fake_programs := $(BUILD)/tests-fake $(BUILD)/bench-fake
# (As DT_RPATH: before LD_LIBRARY_PATH, which may name NVIDIA's own.)
$(fake_programs): LDFLAGS += -rdynamic -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/fake:$$ORIGIN'
$(fake_programs): | $(BUILD)/fake/libcublasLt.so
programs: $(if $(has_cuda),$(fake_programs))

$(BUILD)/tests-simt $(BUILD)/tests-race $(BUILD)/tests-cuda $(BUILD)/tests-fake:
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -lpthread -o $@

tests-simt: $(BUILD)/tests-simt       ## build the tests of the kernels on this CPU
race: $(BUILD)/tests-race             ## run the kernels' tests under the race checker
	@tests/run $(BUILD) tests-race $(TESTS)

# DEVICE=simt or fake: the same on this CPU, in small, which proves that it works and measures nothing;
# fake: with gpu/, on stand-ins for NVIDIA's libraries.
gpu-check:                            ## test and measure on a GPU (DEVICE=simt or fake: without)
	cuda/check/gpu_check $(if $(DEVICE),--device $(DEVICE)) $(if $(filter-out cuda,$(DEVICE)),--tiny)
gpu-programs: $(BUILD)/bcd $(BUILD)/libbcd-cuda.so $(BUILD)/tests-cuda $(BUILD)/bench-cuda

# For another machine, which has a driver and maybe nothing to build with: objects of its own, as its
# processor may be another, and kernels are to be small.
bundle_programs := bcd $(foreach device,simt $(if $(filter yes,$(CUDA)),cuda),libbcd-$(device).so tests-$(device) bench-$(device))
gpu-bundle:                           ## pack a folder for a machine with a GPU, ARCHS=90a
	$(Q)$(MAKE) BUILD=$(BUILD)/bundle MARCH=x86-64-v3 STATIC=yes SOURCE_DIR=. ARCHS="$(bundle_archs)" CUDA=$(CUDA) \
	    NVCCFLAGS_EXTRA=$(addsuffix =size,$(findstring --compress-mode,$(if $(NVCC),$(shell $(NVCC) --help)))) bundle-programs
	$(Q)cuda/check/bundle $(BUILD)/bundle $(BUILD)/gpu-bundle $(bundle_programs)
bundle_archs := $(if $(filter command line,$(origin ARCHS)),$(ARCHS),90a)
bundle-programs: $(bundle_programs:%=$(BUILD)/%) $(if $(has_cuda),$(fake_programs))
$(bundle_programs:%=$(BUILD)/%): LDFLAGS += $(if $(filter yes,$(STATIC)),-Wl$(comma)-rpath$(comma)'$$ORIGIN')

# ---- benchmark -----------------------------------------------------------------------------------

bench_device_o := $(call device_objects,device,$(filter-out %/main.c,$(wildcard tests/cuda/bench/*.c))) \
                  $(call objects,float,tests/bench/work.c tests/bench/measure.c) $(host_o)
bench_main_o = $(BUILD)/$(1)/tests/cuda/bench/main.o
$(call bench_main_o,simt): CPPFLAGS += -DBENCH_DEVICE='"simt"'
$(call bench_main_o,gpu): CPPFLAGS += -DBENCH_DEVICE='"cuda"'
$(call bench_main_o,fake): CPPFLAGS += -DBENCH_DEVICE='"fake"'
$(BUILD)/bench-fake: $(call bench_main_o,fake) $(BUILD)/simt/tests/simt/profiler.o $(bench_device_o) $(fake_o) $(simt_kernels_o) $(libraries)
$(BUILD)/bench-simt: $(call bench_main_o,simt) $(BUILD)/simt/tests/simt/profiler.o $(bench_device_o) $(simt_o) $(simt_kernels_o) $(libraries)
$(BUILD)/bench-cuda: $(call bench_main_o,gpu) $(BUILD)/gpu/tests/gpu/profiler.o $(bench_device_o) $(gpu_o) $(libraries)
$(BUILD)/bench-cuda: LDLIBS += $(cuda_libs)
$(BUILD)/bench-simt $(BUILD)/bench-cuda $(BUILD)/bench-fake:
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -lpthread -o $@
