# SPDX-License-Identifier: Apache-2.0
# gpusnoop: live tracers for GPUs. README.md has the two commands that do everything: make demo, make test.

# The registry: a tool is bpf/X.bpf.c, tools/X.cpp (and tools/X_*.cpp), man/X.8, tools/X_example.txt.
TOOLS   := cudatop cudalaunch cudamemcpy cudasync gpualloc cudagraph nvioctl
VERSION := 0.1.0

PREFIX  ?= /usr/local
DESTDIR ?=
BUILD   ?= build
CXX     ?= g++
CLANG   ?= clang
CLANG_FORMAT ?= clang-format
CLANG_TIDY   ?= clang-tidy
# Ubuntu's bpftool is a wrapper that wants the tools of the running kernel; those of any kernel will do here.
BPFTOOL ?= $(shell bpftool version >/dev/null 2>&1 && echo bpftool || ls /usr/lib/linux-tools*/*/bpftool 2>/dev/null | tail -1)

V ?= 0
ifeq ($(V),0)
Q := @
say = @printf '  %-7s %s\n'
else
say = @:
endif

# Variants of the front ends: release, asan (address and undefined-behaviour sanitizers), static (one file, no libraries).
VARIANT ?= release
OBJ := $(BUILD)/obj/$(VARIANT)
GEN := $(BUILD)/gen
ifeq ($(VARIANT),release)
BIN := $(BUILD)
else
BIN := $(BUILD)/$(VARIANT)
endif

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror
OPTIMIZE ?= -O2 -g
ALL_CXXFLAGS = -std=c++20 $(WARNINGS) $(OPTIMIZE) $(VARIANT_FLAGS) -I. -Isrc -I$(GEN) -DGPUSNOOP_VERSION='"$(VERSION)"' $(CXXFLAGS)
LIBS := -lbpf -ldw -lelf -lz -lfmt -lZydis
ifeq ($(VARIANT),asan)
# -g1: a stack names its lines, and twice as much would be written and linked for more.
VARIANT_FLAGS := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
ifeq ($(VARIANT),static)
# Debian has no static libfmt, nor a static Zydis, which is made from its source; libdw wants what it decompresses with.
# A static program cannot dlopen.
VARIANT_FLAGS := -DFMT_HEADER_ONLY -DGPUSNOOP_STATIC
VARIANT_LDFLAGS := -static -s
LIBS := -lbpf -ldw -lelf -lz -llzma -lbz2 -lpthread -L$(BUILD)/zydis -lZydis
endif
# Of what has a screen; nothing else links ncurses.
SCREEN_LIBS := -lncursesw -ltinfo

SRC     := $(wildcard src/*.cpp)
SRC_OBJ := $(SRC:%.cpp=$(OBJ)/%.o)
TOOL_BINS := $(TOOLS:%=$(BIN)/%)
# What the library itself loads.
LIBRARY_BPF := inodes calibrate
SKELETONS := $(patsubst %,$(GEN)/%.skel.h,$(TOOLS) $(LIBRARY_BPF))

.PHONY: all tools demo test test-kernels bench asan static install format format-check tidy clean deps unit standin
.DELETE_ON_ERROR:
.SECONDARY: $(SKELETONS) $(SKELETONS:%.skel.h=%.bpf.o)

all: tools

tools: $(TOOL_BINS)

# --- kernel side -----------------------------------------------------------------------------------------------------

BPF_CFLAGS := -g -O2 -mcpu=v3 -target bpf -D__TARGET_ARCH_x86 -Wall -Wextra -Wno-unused-parameter -Werror
# The BPF target knows no architecture folder; linux/types.h wants asm/types.h from there.
BPF_INCLUDES := -idirafter /usr/include/$(shell $(CLANG) -print-multiarch 2>/dev/null || gcc -print-multiarch) -idirafter /usr/include

$(GEN)/%.bpf.o: bpf/%.bpf.c
	$(say) BPF $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) $(BPF_INCLUDES) -MMD -MP -c $< -o $(GEN)/$*.tmp.o -MF $(GEN)/$*.d -MT $@
	$(Q)$(BPFTOOL) gen object $@ $(GEN)/$*.tmp.o

$(GEN)/%.skel.h: $(GEN)/%.bpf.o
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# --- tables of the drivers' calls ------------------------------------------------------------------------------------

$(GEN)/driver_tables.hpp: scripts/driver-tables $(wildcard data/*.tsv)
	$(say) TABLES $@
	$(Q)mkdir -p $(@D)
	$(Q)scripts/driver-tables data > $@

# --- front ends ------------------------------------------------------------------------------------------------------

$(OBJ)/%.o: %.cpp | $(SKELETONS) $(GEN)/driver_tables.hpp
	$(say) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) -MMD -MP -c $< -o $@

$(OBJ)/libgpusnoop.a: $(SRC_OBJ)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

# A front end may be several files: X.cpp, X_*.cpp.
tool_objects = $(patsubst %.cpp,$(OBJ)/%.o,$(wildcard tools/$(1).cpp tools/$(1)_*.cpp) $($(1)_also:%=tools/%.cpp))
# A row of cudatop in full is what these tools show of it.
cudatop_also := cudalaunch_columns cudalaunch_histograms cudamemcpy_columns cudasync_columns gpualloc_columns nvioctl_columns

.SECONDEXPANSION:
$(TOOL_BINS): $(BIN)/%: $$(call tool_objects,$$*) $(OBJ)/libgpusnoop.a
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $(VARIANT_LDFLAGS) $(LDFLAGS) $^ -o $@ $(LIBS)

$(BIN)/cudatop: LIBS += $(SCREEN_LIBS)

# Skeletons are those of release: two makes at once must not make them both.
asan: $(SKELETONS)
	$(Q)$(MAKE) --no-print-directory VARIANT=asan tools

static:
	$(Q)scripts/static-zydis $(BUILD)/zydis
	$(Q)$(MAKE) --no-print-directory VARIANT=static tools
	$(Q)for t in $(TOOLS); do file -L $(BUILD)/static/$$t | grep -q 'statically linked' || { echo "$$t is not static" >&2; exit 1; }; done

# --- tests -----------------------------------------------------------------------------------------------------------

deps:
	$(Q)scripts/install-deps

# As many compilers as there are CPUs, unless make was told how many.
JOBS = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

# What a person runs on a fresh machine: dependencies first, then a make that sees what they brought.
test:
	$(Q)scripts/install-deps
	-$(Q)scripts/install-deps kernels
	$(Q)$(MAKE) --no-print-directory $(JOBS) all asan standin unit vendor-bins kernels-bins screen-bins fuzz-bins
	$(Q)tests/run

# Under other kernels, in emulated machines; make test does that, too. Where these packages cannot be had, the tests say
# what is missing.
test-kernels:
	$(Q)scripts/install-deps
	-$(Q)scripts/install-deps kernels
	$(Q)$(MAKE) --no-print-directory all standin kernels-bins
	$(Q)tests/kernels/run

demo:
	$(Q)scripts/install-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) all standin
	$(Q)scripts/demo

bench:
	$(Q)scripts/install-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) all standin bench-bins
	$(Q)tests/bench/run

include tests/standin/standin.mk

include tests/unit/abi/abi.mk
include tests/bench/bench.mk
include tests/kernels/kernels.mk
include tests/screen/screen.mk
include tests/vendor/vendor.mk
include tests/fuzz/fuzz.mk

UNIT_SRC := $(wildcard tests/unit/*.cpp)
UNIT_OBJ := $(UNIT_SRC:%.cpp=$(OBJ)/%.o)

unit: $(BUILD)/unit/unit-tests asan
	$(Q)$(MAKE) --no-print-directory VARIANT=asan $(BUILD)/unit/unit-tests-asan

$(BUILD)/unit/unit-tests $(BUILD)/unit/unit-tests-asan: $(UNIT_OBJ) $(ABI_OBJS) $(OBJ)/libgpusnoop.a \
                                                              | $(SB)/nvml/libnvidia-ml.so.1
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $^ -o $@ $(LIBS) -lCatch2Main -lCatch2

# --- the rest --------------------------------------------------------------------------------------------------------

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man8 \
	    $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/doc/gpusnoop
	install -m 755 $(TOOL_BINS) $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(TOOLS:%=man/%.8) $(DESTDIR)$(PREFIX)/share/man/man8
	install -m 644 README.md LICENSE $(TOOLS:%=tools/%_example.txt) $(DESTDIR)$(PREFIX)/share/doc/gpusnoop
	install -D -m 644 docs/cudatop.png $(DESTDIR)$(PREFIX)/share/doc/gpusnoop/docs/cudatop.png
	for t in $(TOOLS); do install -m 644 scripts/completion.bash \
	    $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$t; done

FORMATTED := $(shell git ls-files '*.cpp' '*.hpp' '*.c' '*.h')

format:
	$(Q)$(CLANG_FORMAT) -i $(FORMATTED)

format-check:
	$(Q)$(CLANG_FORMAT) --dry-run -Werror $(FORMATTED)

tidy: $(SKELETONS) $(GEN)/driver_tables.hpp
	$(Q)printf '%s\n' $(SRC) $(wildcard tools/*.cpp) | xargs -P 2 -I{} $(CLANG_TIDY) --quiet {} -- $(ALL_CXXFLAGS)

clean:
	rm -rf $(BUILD)

-include $(wildcard $(OBJ)/src/*.d $(OBJ)/tools/*.d $(OBJ)/tests/unit/*.d $(GEN)/*.d)
