# SPDX-License-Identifier: Apache-2.0
# Fuzz targets, included by the top Makefile. TARGET(NAME) in targets/ defines a target; its initial inputs are in
# seeds/NAME and regressions/NAME. The program with all targets is built twice: with sanitizers, to replay inputs (make
# test-all), and by clang with libFuzzer (make fuzz). If clang has no fuzzer runtime, the tests are skipped with a
# message.

FUZZ         := $(BUILD)/fuzz
FUZZ_CXX     ?= $(CLANG)++
SECONDS      ?= 600
FUZZ_OBJ      = $(patsubst %.cpp,$(OBJ)/%.o,tests/fuzz/target.cpp $(wildcard tests/fuzz/targets/*.cpp))
comma        := ,
FUZZ_SEEDS   := $(addprefix $(FUZZ)/seeds/,program library static static-pie os packed frames)

.PHONY: fuzz fuzz-bins fuzz-replay
fuzz: fuzz-bins
	$(Q)tests/fuzz/run $(SECONDS) $(TARGETS)

# Does not fail if the compiler has no fuzzer.
fuzz-bins: $(FUZZ_SEEDS) $(SKELETONS) $(BPF_BYTES) $(GEN)/driver_tables.hpp
	$(Q)mkdir -p $(FUZZ)
	$(Q)if echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, long) { return 0; }' | \
	    $(FUZZ_CXX) -x c++ -fsanitize=fuzzer,address - -o $(FUZZ)/can 2>$(FUZZ)/log; \
	then $(MAKE) --no-print-directory VARIANT=fuzz CXX="$(FUZZ_CXX)" WERROR=0 $(FUZZ)/targets-fuzz; \
	else echo "  (no fuzzer: $$(grep -m 1 -i error $(FUZZ)/log))"; fi

# Runs after asan, because two makes at once must not compile the same files.
fuzz-replay: asan $(FUZZ_SEEDS)
	$(Q)$(MAKE) --no-print-directory VARIANT=asan $(FUZZ)/targets-asan

ifeq ($(VARIANT),fuzz)
FUZZ_MAIN := -fsanitize=fuzzer
else
FUZZ_MAIN := $(OBJ)/tests/fuzz/replay.o
endif

$(OBJ)/libfuzzed.a: $(SRC_OBJ) $(TOOL_OBJ)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(FUZZ)/targets-$(VARIANT): $(FUZZ_OBJ) $(OBJ)/libfuzzed.a $(filter %.o,$(FUZZ_MAIN))
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

# With unwind tables, as most code has them.
$(FUZZ)/seeds/frames: tests/fuzz/seed.cpp
	$(Q)$(CXX) -O2 -fPIC -shared -fasynchronous-unwind-tables -Wl,--eh-frame-hdr $< -o $@ -nostdlib -s

# Its symbols are in .gnu_debugdata, as in stripped libraries of distributions.
$(FUZZ)/seeds/packed: tests/fuzz/seed.cpp $(FUZZ)/seeds/library
	$(Q)$(CXX) -O2 -fPIC -shared $< -o $@.full -nostdlib
	$(Q)python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.compress(open("$@.full", "rb").read()))' > $@.xz
	$(Q)objcopy --add-section .gnu_debugdata=$@.xz $(FUZZ)/seeds/library $@
	$(Q)rm $@.full $@.xz
