# make help lists the targets.  Settings, e.g. `make CC=clang test TESTS=conv`:
#   CC            gcc or clang
#   BUILD         where everything built goes
#   CFLAGS_EXTRA  more compiler flags, e.g. -Werror
#   THREADS       threads of each process run from here (all processors by default; a test suite: 2)
#   TESTS         the suites to run: those whose name contains one of these words, or is =NAME
#   ROW           of the cases of ops, only the rows whose name contains this: TESTS="=cases" ROW="relu|add"
#   CUDA=no       no kernels for a GPU, which nvcc compiles for minutes
#   SIMT=no       no tests of the kernels on this processor, which take longest
#   DOUBLE=no     no tests in double precision
#   PAPER=no      no tests in Python: those of the paper's part, and some of data/
#   MPI=no        no transport by MPI
#   PYTHON        the Python of tests, experiments and reports; /usr/bin/python3 by default
#   PREFIX        where make install puts everything; /usr/local by default
#   MARCH         the processor to build for, as -march= has it; native by default
#   STATIC=yes    HDF5, PCRE2 and zstd are linked into the programs
#   SOURCE_DIR    where programs look for files of the source tree; here by default
#   INSTALL=no    only say which packages are missing, install nothing
#   V=1           show commands
ifeq ($(origin CC),default)
CC := gcc
endif
BUILD ?= build
CFLAGS_EXTRA ?=
FUZZ_SECONDS ?= 60
THREADS ?=
TESTS ?=
V ?=
MARCH ?= native
STATIC ?= no
SOURCE_DIR ?= $(CURDIR)
ifneq ($(THREADS),)
export OMP_NUM_THREADS := $(THREADS)
endif
Q := $(if $(V),,@)
comma := ,
# Anything but no is yes: the environment may have another use for a name.
wanted = $(if $(filter no,$(1)),no,yes)
say = $(if $(V),,@printf '%-6s %s\n' $(1) $(2))

.DEFAULT_GOAL := all
.SECONDARY:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# ---- what is needed, what is there ---------------------------------------------------------------

goals := $(or $(MAKECMDGOALS),all)
# Goals that compile something by themselves; the others need no compiler, or call make again.
building := $(filter-out clean help lint format deps sanitize sanitize-% thread-program fuzz gpu-check gpu-bundle,$(goals))

# These goals install what is missing, then call make again.  Reading this file changes nothing: any
# other goal says which packages are missing, and stops.
ifeq ($(READY)$(filter run test deps,$(goals)),$(filter run test deps,$(goals)))
ifneq ($(filter run test deps,$(goals)),)
.PHONY: $(goals) ready
$(goals): ready
ready:
	@echo "make deps: looking for the packages that are needed"
	@.ci/deps "$(CC)" $(goals)
	@$(MAKE) READY=yes $(goals)
installing := yes
else ifneq ($(filter-out clean help,$(goals)),)
$(if $(shell INSTALL=no .ci/deps "$(CC)" $(goals) >&2 || echo missing),$(error stopped))
endif
endif

ifndef installing
ifneq ($(building),)
accepts = $(shell echo 'int x;' | $(CC) -Werror $(1) -c -x c -o /dev/null - 2>/dev/null && echo $(1))
native := $(call accepts,-march=$(MARCH))
# Compilers prefer 256-bit vectors even where 512 are there; the matrix kernel wants the long ones.
has_avx512 := $(shell $(CC) $(native) -dM -E -x c /dev/null 2>/dev/null | grep -c -w __AVX512F__)
wide := $(if $(filter 1,$(has_avx512)),$(call accepts,-mprefer-vector-width=512))
lib_cflags := $(shell pkg-config --cflags hdf5 libpcre2-8 libcjson libzstd zlib)
# The high-level HDF5 library (dimension scales) lies next to the plain one and has no .pc file.
lib_libs := $(shell pkg-config --libs-only-L hdf5) -lhdf5_hl \
            $(shell pkg-config --libs hdf5 libpcre2-8 libcjson libzstd zlib)
# HDF5's own libraries are named, as its .pc file forgets them; cJSON has no static library; and the C
# library loads libgcc_s by itself when a thread ends, from where only the machine's own would be.
ifeq ($(STATIC),yes)
lib_libs := $(shell pkg-config --libs-only-L hdf5) -Wl,-Bstatic -lhdf5_hl -lhdf5 -lsz -laec -lz -lpcre2-8 -lzstd \
            -Wl,-Bdynamic -lcjson -Wl,--no-as-needed -lgcc_s -Wl,--as-needed
endif
endif

warnings := -Wall -Wextra -Wpedantic -Wshadow -Wconversion
CPPFLAGS := -D_DEFAULT_SOURCE $(lib_cflags)
CFLAGS := -std=c11 -O3 $(native) $(wide) -ffp-contract=fast -fno-math-errno -fopenmp -g1 \
          $(warnings) $(CFLAGS_EXTRA)
LDFLAGS := -Wl,--as-needed
LDLIBS := $(lib_libs) -lm
program := $(abspath $(BUILD))/bcd

# ---- sources -------------------------------------------------------------------------------------

# The lesson is a program of its own.
lesson := ref/lesson/bcd_lesson.c
ref_c := $(filter-out $(lesson),$(wildcard ref/*.c ref/*/*.c))
data_c := $(wildcard data/*.c)
dist_c := $(wildcard dist/*.c)
app_c := $(wildcard experiments/*.c experiments/*/*.c)
ref_tests_c := $(wildcard tests/*.c tests/ref/*.c tests/fixtures/*.c)
double_suites := $(shell sed -n '/BCD_DOUBLE/q; s/^SUITE(\(.*\))$$/\1/p' tests/suites.h)
double_tests_c := $(filter-out tests/ref/test_%,$(ref_tests_c)) $(double_suites:%=tests/ref/test_%.c)
threads_suites := $(shell sed -n 's/^SUITE(\(.*\))$$/\1/p' tests/sanitize/threads.h)
threads_tests_c := $(filter-out tests/main.c tests/ref/test_% tests/dist/test_%,$(ref_tests_c) $(wildcard tests/dist/*.c)) \
    $(wildcard $(foreach folder,ref dist,$(threads_suites:%=tests/$(folder)/test_%.c))) \
    tests/data/scratch.c tests/data/test_images.c
more_tests_c := $(wildcard tests/data/*.c tests/experiments/*.c tests/dist/*.c)
bench_c := $(wildcard tests/bench/*.c)
fuzz_c := $(wildcard tests/fuzz/fuzz_*.c)
# What reads files, lines of commands and names of models: coverage leads the fuzzer through these.
readers_c := $(filter-out %/textset.c %/provenance.c,$(data_c) experiments/train/checkpoint.c \
    $(wildcard ref/blocks/*.c experiments/cli/*.c experiments/store/*.c))

objects = $(patsubst %.c,$(BUILD)/$(1)/%.o,$(2))
# Everything below the program, as a library: a program links what it uses.
float_library := $(BUILD)/float/library.a
double_library := $(BUILD)/double/library.a
$(float_library): $(call objects,float,$(ref_c) $(data_c) $(dist_c) $(filter-out %/main.c,$(app_c)))
$(double_library): $(call objects,double,$(ref_c))
readers_library := $(BUILD)/fuzz/readers.a
$(readers_library): $(call objects,fuzz,$(readers_c))

# ---- programs ------------------------------------------------------------------------------------

.PHONY: all programs test lesson run run-dist bench bench-peers install clean help info deps lint format \
        sanitize sanitize-address sanitize-thread thread-program bench-warnings fuzz fuzz-programs documents
all: $(BUILD)/bcd                     ## build the program, build/bcd

programs: all $(addprefix $(BUILD)/,tests-float tests-double tests-simt bench bench-simt) ## ... and the tests and benchmarks

# All of ref/, and all names visible: the device libraries (cuda/rules.mk) stand on them.
$(BUILD)/bcd: $(call objects,float,experiments/main.c $(ref_c)) $(float_library)
$(BUILD)/tests-float: $(call objects,float,$(ref_tests_c) $(more_tests_c) $(ref_c)) $(float_library)
$(BUILD)/bcd $(BUILD)/tests-float: LDFLAGS += -rdynamic
# Tests let an allocation fail, see what comes to the disk and when, have a clock of their own, and
# see who would sleep: test_out_of_memory.c, test_file.c, test_bench.c and test_fit_ranks.c.
$(BUILD)/tests-float: LDFLAGS += \
    $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc aligned_alloc free fsync clock_gettime sleep)
$(BUILD)/tests-double: $(call objects,double,$(double_tests_c)) $(double_library)
$(BUILD)/tests-threads: $(BUILD)/threads/tests/main.o \
    $(call objects,float,$(ref_c) $(data_c) $(dist_c) $(threads_tests_c))
$(BUILD)/bench: $(call objects,float,$(bench_c)) $(float_library)
$(BUILD)/bcd $(addprefix $(BUILD)/tests-,float double threads) $(BUILD)/bench $(BUILD)/transport-mpi-ranks:
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@
# `bcd NAME` runs these: each finds a Python, and runs experiments/paper/NAME.py.
commands := $(addprefix $(BUILD)/bcd-,experiment report)
all test run: $(commands)
$(commands): experiments/paper/launch $(BUILD)/paths
	@mkdir -p $(@D)
	@ln -sf $(abspath $<) $@
%.a:
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $(filter %.o,$^)

# A file that changes when its text does; what depends on it is then rebuilt.
.PHONY: always
$(addprefix $(BUILD)/,flags commit headers paths sources flags-kernels flags-nvcc flags-mpi): always
	@mkdir -p $(@D); printf '%s\n' "$$TEXT" | cmp -s - $@ || printf '%s\n' "$$TEXT" >$@
commit := $(or $(shell git describe --always --dirty 2>/dev/null),unknown)
# What the program and the libraries it loads must agree on.
headers := $(firstword $(shell cat $(sort $(wildcard ref/*.h ref/*/*.h dist/*.h cuda/*.h cuda/stage/*.h)) | cksum))
$(BUILD)/flags: export TEXT = $(flags_text)
$(BUILD)/commit: export TEXT = $(commit)
$(BUILD)/headers: export TEXT = $(headers)
# A library loses the object of a source that was removed.
$(BUILD)/sources: export TEXT = $(ref_c) $(data_c) $(dist_c) $(app_c)
$(float_library) $(double_library) $(readers_library): $(BUILD)/sources
$(BUILD)/%/ref/headers.o: CPPFLAGS += -DBCD_HEADERS='"$(headers)"'
$(foreach kind,float double device mpi,$(BUILD)/$(kind)/ref/headers.o): $(BUILD)/headers

double_flag := -DBCD_DOUBLE
float_flag :=
threads_flag := -DTEST_SUITES='"sanitize/threads.h"' -DTEST_PROGRAM='"threads"'
fuzz_flag := -fsanitize=fuzzer-no-link
define compile
	$(call say,CC,$<$(if $(filter float,$(1)),,' ($(1))'))
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $($(1)_flag) $(CFLAGS) -MMD -MP -c $< -o $@
endef
$(BUILD)/float/%.o: %.c $(BUILD)/flags
	$(call compile,float)
$(BUILD)/double/%.o: %.c $(BUILD)/flags
	$(call compile,double)
$(BUILD)/threads/%.o: %.c $(BUILD)/flags
	$(call compile,threads)
$(BUILD)/fuzz/%.o: %.c $(BUILD)/flags
	$(call compile,fuzz)

# Only this file knows how it was built, so that a commit does not rebuild the rest.
provenance_o := $(call objects,float,$(filter %/provenance.c,$(app_c)))
$(provenance_o): $(BUILD)/commit
$(provenance_o): CPPFLAGS += -DBCD_COMMIT='"$(commit)"' \
    -DBCD_FLAGS='"$(filter-out -W%,$(CFLAGS))"'
# What reads files of the source tree; tests of these folders also run the programs.
paths := -DBCD_SOURCE_DIR='"$(SOURCE_DIR)"' -DBCD_PROGRAM='"$(program)"' \
         -DBCD_TRANSPORT_RANKS='"$(abspath $(BUILD))/transport-mpi-ranks"'
reads_paths := %/tests/ref/test_layout.o float/data/textset.o float/tests/experiments/%.o float/tests/dist/%.o \
               float/tests/fixtures/loader.o double/tests/fixtures/loader.o
$(reads_paths:%=$(BUILD)/%): CPPFLAGS += $(paths)
# A copied or moved tree tests its own programs.
$(BUILD)/paths: export TEXT = $(paths) $(CURDIR) $(PYTHON)
$(filter $(reads_paths:%=$(BUILD)/%),$(call objects,float,$(data_c) $(ref_tests_c) $(more_tests_c)) \
    $(call objects,double,$(ref_tests_c))): $(BUILD)/paths

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

include cuda/rules.mk
# Expanded here, because what depends on a target takes over the variables that are its own.
flags_text := $(CC) $(if $(building),$(shell $(CC) -dumpversion)) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(LDLIBS) \
              $(cuda_cflags) nccl=$(has_nccl)

# The MPI transport is a library of its own, which the program loads when asked for.  MPI=no leaves it out.
MPICC ?= $(shell command -v mpicc)
override MPI := $(if $(MPICC),$(call wanted,$(MPI)),no)
mpi_programs := $(BUILD)/libbcd-mpi.so $(BUILD)/transport-mpi-ranks
ifeq ($(MPI),yes)
all: $(BUILD)/libbcd-mpi.so
programs test: $(mpi_programs)
endif
# By Open MPI's or MPICH's wrapper, around the compiler of the rest.
$(mpi_programs) $(BUILD)/mpi/%.o: export OMPI_CC := $(CC)
$(mpi_programs) $(BUILD)/mpi/%.o: export MPICH_CC := $(CC)
$(BUILD)/flags-mpi: export TEXT = $(MPICC) $(shell $(MPICC) -show 2>&1)
$(BUILD)/mpi/%.o: %.c $(BUILD)/flags $(BUILD)/flags-mpi
	$(call say,MPICC,$<)
	@mkdir -p $(@D)
	$(Q)$(MPICC) $(CPPFLAGS) $(CFLAGS) -fPIC -MMD -MP -c $< -o $@
$(BUILD)/libbcd-mpi.so: $(patsubst %.c,$(BUILD)/mpi/%.o,$(wildcard dist/mpi/*.c)) $(BUILD)/mpi/ref/headers.o
	$(call say,LINK,$@)
	$(Q)$(MPICC) -shared $(CFLAGS) $(LDFLAGS) -Wl,-Bsymbolic $^ -lpthread -o $@
$(BUILD)/transport-mpi-ranks: $(call objects,float,tests/dist/mpi/ranks.c tests/dist/transport_scenarios.c $(ref_c)) $(float_library)
$(BUILD)/transport-mpi-ranks: LDFLAGS += -rdynamic

PYTHON ?= /usr/bin/python3

# ---- tests ---------------------------------------------------------------------------------------

# SIMT=no leaves out the kernels on this CPU, and the host code of a GPU on stand-ins for NVIDIA's
# libraries (where their headers are); DOUBLE=no ref/ in double precision; PAPER=no those in Python.
override SIMT := $(call wanted,$(SIMT))
override DOUBLE := $(call wanted,$(DOUBLE))
override PAPER := $(call wanted,$(PAPER))
# The one with the longest suites first: short ones at the end keep all processors busy.
test_programs := $(if $(filter yes,$(SIMT)),tests-simt $(if $(has_cuda),tests-fake)) tests-float $(if $(filter yes,$(DOUBLE)),tests-double) $(if $(filter yes,$(PAPER)),tests-paper)
$(BUILD)/tests-paper: Makefile $(BUILD)/paths
	$(Q)printf '#!/bin/sh\nBCD_PROGRAM="$${0%%/*}/bcd" exec %s %s "$$@"\n' "$(PYTHON)" "$(CURDIR)/tests/paper/run" >$@ && chmod +x $@
test: $(test_programs:%=$(BUILD)/%) $(BUILD)/bcd $(if $(filter yes,$(SIMT)),$(BUILD)/libbcd-simt.so)
# Threads that wait asleep: the tests are thousands of small parallel regions, and on a machine that
# has other work spinning costs each a slice of the scheduler's time.
test sanitize-thread: export OMP_WAIT_POLICY ?= passive
test:                                 ## run every test: float, double, kernels (TESTS="names")
	@tests/run $(BUILD) "$(test_programs)" $(TESTS)

sanitize:                             ## run the tests under all sanitizers
	$(Q)$(MAKE) sanitize-address
	$(Q)$(MAKE) sanitize-thread

# Each first proves that it would catch something.  -O1: the reports name the right lines.  In float,
# and ops and optimizers in double, whose constants and roundings are its own; the rest of ref/ is the
# same text there.  CI sees clang's warnings here (CFLAGS_EXTRA=-Werror), also of the benchmarks, which
# are not built.
# At -O1 clang vectorises nothing, and would say so of each loop that asks for it.
at_O1 := -g1 -O1 -Wno-pass-failed
planted := tests/sanitize/planted.c
sanitize-address:                     ## ... address and undefined behaviour only
	@mkdir -p $(BUILD)/asan
	$(Q)clang $(address_flags) $(planted) -o $(BUILD)/asan/planted
	$(Q)tests/sanitize/prove $(BUILD)/asan/planted overrun overflow
	$(Q)$(known_leaks) LEAVE_OUT="$(twice)" $(MAKE) $(address_build) CUDA=no PAPER=no bench-warnings test
bench-warnings:
	$(call say,CC,'tests/bench tests/cuda/bench (warnings)')
	$(Q)$(CC) $(CPPFLAGS) -DBENCH_DEVICE='"simt"' $(CFLAGS) -fsyntax-only \
	    $(bench_c) $(wildcard tests/cuda/bench/*.c) tests/simt/profiler.c
# The longest suites run over the SIMT layer; the stand-ins have a dozen others.  In double a few are
# enough for what differs there.
twice := tests-fake stage_(exact|pipeline)|tests-double (cross_entropy|muon|step|update|lesson|fixtures)
address_build = CC=clang BUILD=$(BUILD)/asan CFLAGS_EXTRA="$(address_flags) $(CFLAGS_EXTRA)"
address_flags := $(at_O1) -fopenmp -fno-omit-frame-pointer \
                 -fsanitize=address,undefined -fno-sanitize-recover=all

# Too much memory asked for is an answer, not the end: tests ask.  And the leak checker guesses where
# thread-local memory of libraries lies, sometimes wrongly, and then crashes itself: it is not to.
known_leaks := ASAN_OPTIONS=allocator_may_return_null=1:intercept_tls_get_addr=0 LSAN_OPTIONS=suppressions=$(CURDIR)/tests/sanitize/leaks:print_suppressions=0

# LLVM's OpenMP runtime tells the sanitizer about its barriers (libarcher, loaded by itself); gcc's
# does not, and would be reported as one large race.  Uninstrumented libraries are left out, and
# the SIMT layer, whose fibers it does not follow: `make race` is its own.
sanitize-thread: thread-program       ## ... data races only, in the suites of tests/sanitize/threads.h
	$(Q)clang $(thread_flags) $(planted) -o $(BUILD)/tsan/planted
	$(Q)$(thread_environment) tests/sanitize/prove $(BUILD)/tsan/planted race
	$(Q)$(thread_environment) tests/run $(BUILD)/tsan tests-threads $(TESTS)
thread-program:
	$(Q)$(MAKE) CC=clang BUILD=$(BUILD)/tsan CFLAGS_EXTRA="$(thread_flags) $(CFLAGS_EXTRA)" $(BUILD)/tsan/tests-threads
thread_flags := $(at_O1) -fopenmp -fsanitize=thread
thread_environment := OMP_NUM_THREADS=$(or $(THREADS),2) \
                      TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=1 allocator_may_return_null=1"

# ---- fuzzing -------------------------------------------------------------------------------------

fuzz_names := $(fuzz_c:tests/fuzz/%.c=%)
# Programs of the address sanitizer's build, whose library they share.
fuzz:                                 ## feed random input to every reader, FUZZ_SECONDS=60 in all
	$(Q)$(MAKE) $(address_build) fuzz-programs
	$(Q)$(known_leaks) tests/fuzz/run $(BUILD)/asan/fuzz $(FUZZ_SECONDS) $(fuzz_names)
fuzz-programs: $(fuzz_names:%=$(BUILD)/fuzz/%)
$(BUILD)/fuzz/fuzz_%: $(BUILD)/fuzz/tests/fuzz/fuzz_%.o $(readers_library) $(float_library)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -fsanitize=fuzzer $(LDFLAGS) $^ $(LDLIBS) -o $@

# ---- style ---------------------------------------------------------------------------------------

c_files = $(shell find ref data dist cuda experiments tests -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' 2>/dev/null)
lint:                                 ## check format, layering, names, length of files, kernels
	@tests/lint/run $(c_files)
	@echo "lint: $(words $(c_files)) files are in order"

format:                               ## format every C file
	clang-format -i $(c_files)

# ---- running -------------------------------------------------------------------------------------

lesson: $(BUILD)/lesson               ## run the lesson of ref/lesson
	@$(BUILD)/lesson
$(BUILD)/lesson: $(lesson) $(BUILD)/flags
	$(call say,CC,$<)
	$(Q)$(CC) -std=c11 -O2 $(warnings) $(CFLAGS_EXTRA) $< -lm -o $@

# Threads that wait for each other spin for about 0.1 ms before they sleep.  By default they spin for
# milliseconds: a little faster on an idle machine, and on one with other work much slower (README,
# "Limits today").
run: export GOMP_SPINCOUNT ?= 10000
run: export KMP_BLOCKTIME ?= 5
run: $(BUILD)/bcd                     ## train two networks fully and by BCD, show the results
	$(BUILD)/bcd experiment validity --preset laptop --seeds 1 --out runs/validity
	$(BUILD)/bcd report runs/validity/validity.h5

run-dist: $(BUILD)/bcd $(if $(filter yes,$(MPI)),$(BUILD)/libbcd-mpi.so) ## train over four processes, kill one, resume with three
	tests/dist/run_dist --bcd $(BUILD)/bcd

documents: $(BUILD)/bcd $(commands)   ## render paper_repro.md, choose.md and the like from their sources
	BCD_PROGRAM=$(BUILD)/bcd $(PYTHON) experiments/paper/render.py

bench: $(BUILD)/bench                 ## measure every op, whole training steps, the tokenizer
	$(BUILD)/bench

bench-peers: $(BUILD)/bench $(BUILD)/bcd $(if $(filter yes,$(MPI)),$(BUILD)/libbcd-mpi.so) ## compare training steps with PyTorch, if installed
	$(PYTHON) tests/bench/peers.py $(BUILD)/bench
	$(PYTHON) tests/bench/pipeline_peers.py $(BUILD)/bcd

# The program with its libraries and Python's parts in one directory, where it looks for them.
PREFIX ?= /usr/local
share := $(DESTDIR)$(PREFIX)/share
libraries := $(BUILD)/libbcd-simt.so $(if $(filter yes,$(CUDA)),$(BUILD)/libbcd-cuda.so) \
             $(if $(filter yes,$(MPI)),$(BUILD)/libbcd-mpi.so)
install: all                          ## install to PREFIX (/usr/local), below DESTDIR
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/lib/bcd" "$(share)/man/man1" \
	    "$(share)/bash-completion/completions"
	experiments/cli/manual $(BUILD)/bcd >"$(share)/man/man1/bcd.1"
	install -m 644 experiments/cli/completion.bash "$(share)/bash-completion/completions/bcd"
	install $(BUILD)/bcd $(libraries) "$(DESTDIR)$(PREFIX)/lib/bcd"
	install -d "$(DESTDIR)$(PREFIX)/lib/bcd/paper"
	install -m 644 $(wildcard $(addprefix experiments/paper/*.,py toml html)) "$(DESTDIR)$(PREFIX)/lib/bcd/paper"
	install experiments/paper/launch "$(DESTDIR)$(PREFIX)/lib/bcd/paper"
	for name in $(notdir $(commands)); do \
	    ln -sf paper/launch "$(DESTDIR)$(PREFIX)/lib/bcd/$$name"; done
	install -m 644 $(addprefix data/,encode.py texts.py chats.py records.py from_gguf.py) "$(DESTDIR)$(PREFIX)/lib/bcd"
	ln -sf ../lib/bcd/bcd "$(DESTDIR)$(PREFIX)/bin/bcd"

clean:                                ## remove everything built
	rm -rf $(BUILD)

help:                                 ## print this list
	@awk -F ':.*##' '/^[a-z-]+:.*##/ { printf "make %-17s%s\n", $$1, $$2 }' \
	    Makefile cuda/rules.mk
	@echo "Settings:"
	@sed -n 's/^#   \([A-Z]\)/  \1/p' Makefile

info:                                 ## print compiler, flags, libraries
	@echo "compiler   $(CC): $(shell $(CC) --version | head -n 1)"
	@echo "flags      $(CFLAGS)"
	@echo "libraries  $(LDLIBS)"
	@echo "CUDA       $(if $(no_cuda),none: $(no_cuda),$(NVCC) for $(ARCHS)$(comma) $(CUDA_HOME)$(comma) $(if $(has_nccl),NCCL,no NCCL of 2.22 or later))"
	@echo "MPI        $(if $(filter yes,$(MPI)),$(MPICC),none: $(if $(MPICC),MPI=no,mpicc was not found))"
	@echo "versions   hdf5 $(shell pkg-config --modversion hdf5), pcre2 $(shell pkg-config --modversion libpcre2-8), cjson $(shell pkg-config --modversion libcjson), zstd $(shell pkg-config --modversion libzstd)"
	@echo "processor  $(shell sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(shell nproc) in use"
	@echo "commit     $(commit)"

deps:                                 ## install the packages needed, as run and test do first
	@:
endif
