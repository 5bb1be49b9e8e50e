# SPDX-License-Identifier: Apache-2.0
# What is fuzzed. Included by the top Makefile. Where clang has no fuzzer runtime, the test says so.

FUZZ         := $(BUILD)/fuzz
FUZZ_SECONDS ?= 600
FUZZ_SRC     := tests/fuzz/registrations.cpp $(addprefix src/,elf.cpp elf_image.cpp registrations.cpp \
                registration_scan.cpp decoder_x86_64.cpp error.cpp text.cpp)
FUZZ_FLAGS   := -std=c++20 -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
comma        := ,
FUZZ_SEEDS   := $(addprefix $(FUZZ)/seeds/,program library static static-pie os)

.PHONY: fuzz fuzz-bins
fuzz: fuzz-bins
	$(Q)tests/fuzz/run $(FUZZ_SECONDS)

fuzz-bins: $(FUZZ)/registrations $(FUZZ_SEEDS)

# A compiler that cannot is no reason to fail.
$(FUZZ)/registrations: $(FUZZ_SRC) $(wildcard src/elf*.hpp src/regist*.hpp src/decoder.hpp)
	$(say) FUZZ $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG)++ $(FUZZ_FLAGS) -Isrc $(FUZZ_SRC) -o $@ -lelf -lfmt -lZydis 2>$(FUZZ)/log || \
	    { rm -f $@; echo "  (no fuzzer: $$(grep -m 1 -i error $(FUZZ)/log))"; }

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
