# SPDX-License-Identifier: Apache-2.0
# ABI tests of the probe table. ABI_OBJS are linked into the unit tests, both with and without sanitizers. The variables
# BUILD, CXX and CC must be set; CLANG, CUDA_HOME, WARNINGS, Q and `say` are optional.

ABI_SRC   := tests/unit/attach/abi
ABI_DIR   ?= $(BUILD)/unit/abi
CLANG     ?= clang
CUDA_HOME ?= /usr/local/cuda
say       ?= @:

# Flags for compiling the calls: those of a typical program.
ABI_FLAGS := -std=c++20 -O2 $(WARNINGS) -I. -Isrc $(CROSS_FLAGS)
ABI_CLANG := $(CLANG) $(if $(CROSS),--target=$(CROSS))
ABI_DEPS   = $(addprefix $(ABI_SRC)/,calls.hpp signatures.def signatures_hip.def types.h types_hip.h abi.mk) \
             bpf/shared/probe.h src/attach/probes.hpp tests/unit/attach/all_probes.hpp

ABI_CALLS := $(addprefix $(ABI_DIR)/,passed.o capture.o calls-gcc.o)

# clang is used only if it finds C++ headers, either its own or those of gcc.
ifeq ($(shell $(ABI_CLANG) -std=c++20 -x c++ -include vector -fsyntax-only /dev/null 2>/dev/null && echo yes),yes)
ABI_CALLS += $(ABI_DIR)/calls-clang.o
endif

# ABI_CALLS: the calls, without test cases.
ABI_OBJS := $(ABI_DIR)/abi_test.o $(ABI_CALLS)

ifneq ($(wildcard $(CUDA_HOME)/include/cuda_runtime_api.h),)
ABI_CUDA := -DABI_REAL -isystem $(CUDA_HOME)/include
ABI_OBJS += $(patsubst $(ABI_DIR)/calls-%,$(ABI_DIR)/real-%,$(filter $(ABI_DIR)/calls-%,$(ABI_OBJS)))
ABI_OBJS += $(ABI_DIR)/results_test.o
endif

$(ABI_DIR):
	$(Q)mkdir -p $@

$(ABI_DIR)/abi_test.o $(ABI_DIR)/passed.o: $(ABI_DIR)/%.o: $(ABI_SRC)/%.cpp $(ABI_DEPS) | $(ABI_DIR)
	$(say) CC $@
	$(Q)$(CXX) $(ABI_FLAGS) -g -c $< -o $@

$(ABI_DIR)/results_test.o: $(ABI_SRC)/results_test.cpp src/attach/probes.hpp $(ABI_DIR)/results.def
	$(say) CC $@
	$(Q)$(CXX) $(ABI_FLAGS) -g -I$(ABI_DIR) $(ABI_CUDA) -c $< -o $@

$(ABI_DIR)/results.def: $(ABI_SRC)/abi.mk | $(ABI_DIR)
	$(say) GEN $@
	$(Q)sed -nE -e '/^typedef enum cudaError_enum/,/^\}/s/^ *(CUDA_\w+) *=.*/RESULT(driver, \1)/p' \
		-e '/^enum .*cudaError$$/,/^\}/s/^ *(cuda\w+) *=.*/RESULT(runtime, \1)/p' \
		$(CUDA_HOME)/include/cuda.h $(CUDA_HOME)/include/driver_types.h >$@

$(ABI_DIR)/capture.o: $(ABI_SRC)/capture.S | $(ABI_DIR)
	$(say) CC $@
	$(Q)$(CC) -c $< -o $@

$(ABI_DIR)/calls-gcc.o: $(ABI_SRC)/calls.cpp $(ABI_DEPS) | $(ABI_DIR)
	$(say) CC $@
	$(Q)$(CXX) $(ABI_FLAGS) -c $< -o $@

$(ABI_DIR)/calls-clang.o: $(ABI_SRC)/calls.cpp $(ABI_DEPS) | $(ABI_DIR)
	$(say) CC $@
	$(Q)$(ABI_CLANG) $(ABI_FLAGS) -c $< -o $@

$(ABI_DIR)/real-gcc.o: $(ABI_SRC)/calls.cpp $(ABI_DEPS) | $(ABI_DIR)
	$(say) CC $@
	$(Q)$(CXX) $(ABI_FLAGS) $(ABI_CUDA) -c $< -o $@

$(ABI_DIR)/real-clang.o: $(ABI_SRC)/calls.cpp $(ABI_DEPS) | $(ABI_DIR)
	$(say) CC $@
	$(Q)$(ABI_CLANG) $(ABI_FLAGS) $(ABI_CUDA) -c $< -o $@
