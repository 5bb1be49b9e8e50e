# SPDX-License-Identifier: Apache-2.0
# What is fuzzed: a target is a file in targets/; it starts from what is in seeds/ and regressions/ in a folder of its name.
# Included by the top Makefile. Each is built twice: as the tests with sanitizers are, to be handed those inputs (make
# test-long), and by clang with its fuzzer (make fuzz). Where clang has no fuzzer runtime, the test says so.

FUZZ         := $(BUILD)/fuzz
FUZZ_CXX     ?= $(CLANG)++
SECONDS      ?= 600
FUZZ_TARGETS := $(basename $(notdir $(wildcard tests/fuzz/targets/*.cpp)))
comma        := ,
FUZZ_SEEDS   := $(addprefix $(FUZZ)/seeds/,program library static static-pie os packed frames)

.PHONY: fuzz fuzz-bins fuzz-replay fuzz-targets
fuzz: fuzz-bins
	$(Q)tests/fuzz/run $(SECONDS) $(TARGETS)

# A compiler that cannot is no reason to fail.
fuzz-bins: $(FUZZ_SEEDS) $(SKELETONS) $(BPF_BYTES) $(GEN)/driver_tables.hpp
	$(Q)mkdir -p $(FUZZ)
	$(Q)if echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, long) { return 0; }' | \
	    $(FUZZ_CXX) -x c++ -fsanitize=fuzzer,address - -o $(FUZZ)/can 2>$(FUZZ)/log; \
	then $(MAKE) --no-print-directory VARIANT=fuzz CXX="$(FUZZ_CXX)" WERROR=0 fuzz-targets; \
	else echo "  (no fuzzer: $$(grep -m 1 -i error $(FUZZ)/log))"; fi

# After the tools: two makes at once must not compile the same files.
fuzz-replay: asan $(FUZZ_SEEDS)
	$(Q)$(MAKE) --no-print-directory VARIANT=asan fuzz-targets

fuzz-targets: $(FUZZ_TARGETS:%=$(FUZZ)/$(VARIANT)/%)

ifeq ($(VARIANT),fuzz)
FUZZ_MAIN := -fsanitize=fuzzer
else
FUZZ_MAIN := $(OBJ)/tests/fuzz/replay.o
endif

$(OBJ)/libfuzzed.a: $(SRC_OBJ) $(TOOL_OBJ)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(FUZZ_TARGETS:%=$(FUZZ)/$(VARIANT)/%): $(FUZZ)/$(VARIANT)/%: $(OBJ)/tests/fuzz/targets/%.o $(OBJ)/tests/fuzz/target.o \
                                                            $(OBJ)/libfuzzed.a $(filter %.o,$(FUZZ_MAIN))
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $(filter-out %/replay.o,$^) $(FUZZ_MAIN) -o $@ $(LIBS)

-include $(wildcard $(OBJ)/tests/fuzz/*.d $(OBJ)/tests/fuzz/targets/*.d)

# $(call fuzz_seed,NAME,FLAGS)
define fuzz_seed
$(FUZZ)/seeds/$(1): tests/fuzz/seed.cpp
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) -fno-asynchronous-unwind-tables $(2) $$< -o $$@ -nostdlib -Wl,--build-id -s
endef
$(eval $(call fuzz_seed,program,-O2 -fPIE -pie -Wl$(comma)-z$(comma)lazy -Wl$(comma)--unresolved-symbols=ignore-all -e launch_all))
$(eval $(call fuzz_seed,library,-O2 -fPIC -shared))
$(eval $(call fuzz_seed,static,-O2 -DRUNTIME -fno-pie -no-pie -static -e launch_all))
$(eval $(call fuzz_seed,static-pie,-O0 -DRUNTIME -fPIE -pie -e launch_all))
$(eval $(call fuzz_seed,os,-Os -DRUNTIME -fPIC -shared))

# Compiled as most code is: with frames that can be unwound.
$(FUZZ)/seeds/frames: tests/fuzz/seed.cpp
	$(Q)$(CXX) -O2 -fPIC -shared -fasynchronous-unwind-tables -Wl,--eh-frame-hdr $< -o $@ -nostdlib -s

# Its symbols are where distributions put those of stripped libraries.
$(FUZZ)/seeds/packed: tests/fuzz/seed.cpp $(FUZZ)/seeds/library
	$(Q)$(CXX) -O2 -fPIC -shared $< -o $@.full -nostdlib
	$(Q)python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.compress(open("$@.full", "rb").read()))' > $@.xz
	$(Q)objcopy --add-section .gnu_debugdata=$@.xz $(FUZZ)/seeds/library $@
	$(Q)rm $@.full $@.xz
