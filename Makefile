# SPDX-License-Identifier: Apache-2.0
# gpusnoop: live tracers for GPUs. README.md has the two commands to start with: make demo, make test.

# The list of tools: each has bpf/X.bpf.c, tools/X/ and man/X.8. READERS read recordings and have no BPF programs, so
# tests that run each tool on a kernel use TOOLS only.
TOOLS   := cudatop cudalaunch cudamemcpy cudasync gpualloc cudagraph nvioctl cudagap ncclwait gpuspend
READERS := cudadiff
# Second names: gpuioctl is nvioctl, which also traces AMD's drivers.
ALIASES := gpuioctl
VERSION := 0.1.0

# Python reads sources and paths as UTF-8 in any locale.
export PYTHONUTF8 := 1

PREFIX  ?= /usr/local
DESTDIR ?=
# CROSS=aarch64-linux-gnu builds for arm64 on x86-64 (scripts/install-deps cross).
ifneq ($(CROSS),)
BUILD   ?= build/$(CROSS)
CXX     := $(CROSS)-g++
CC      := $(CROSS)-gcc
AR      := $(CROSS)-ar
LD      := $(CROSS)-ld
NM      := $(CROSS)-nm
STRIP   := $(CROSS)-strip
CROSS_ROOT := $(BUILD)/root
CROSS_FLAGS := -isystem $(CROSS_ROOT)/usr/include -isystem $(CROSS_ROOT)/usr/include/$(CROSS)
CROSS_LDFLAGS := -L$(CROSS_ROOT)/usr/lib/$(CROSS) -L$(CROSS_ROOT)/usr/lib -Wl,-rpath-link,$(CROSS_ROOT)/usr/lib/$(CROSS)
endif
BUILD   ?= build
CXX     ?= g++
MACHINE := $(firstword $(subst -, ,$(shell $(CXX) -dumpmachine)))
CLANG   ?= clang
CLANG_FORMAT ?= clang-format
CLANG_TIDY   ?= clang-tidy
# Ubuntu's bpftool is a wrapper that requires the tools of the running kernel; any kernel's bpftool is sufficient.
BPFTOOL ?= $(shell bpftool version >/dev/null 2>&1 && echo bpftool || ls /usr/lib/linux-tools*/*/bpftool 2>/dev/null | tail -1)

# WERROR=1 makes warnings errors; CI sets it. It is off by default because newer compilers add warnings.
WERROR ?= 0
WERROR_FLAG := $(if $(filter 1,$(WERROR)),-Werror)

V ?= 0
ifeq ($(V),0)
Q := @
say = @printf '  %-7s %s\n'
else
say = @:
endif

# Variants of the tools: release; asan (address and undefined-behaviour sanitizers); static (the objects of release,
# linked statically into one file). The variant fuzz covers only some folders of src/ (tests/fuzz/fuzz.mk).
VARIANT ?= release
OBJ := $(BUILD)/obj/$(VARIANT:static=release)
GEN := $(BUILD)/gen
ifeq ($(VARIANT),release)
BIN := $(BUILD)
else
BIN := $(BUILD)/$(VARIANT)
endif

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion $(WERROR_FLAG)
# GCC 13 (Ubuntu 24.04) reports false out-of-bounds writes to arrays of big integers in fmt 9.
ifeq ($(shell $(CXX) -dumpversion | cut -d. -f1),13)
WARNINGS += -Wno-array-bounds -Wno-stringop-overflow
endif
# -g1 is sufficient for functions and lines in stacks. -g would also describe variables, which takes a third of the
# compile time.
OPTIMIZE ?= -O2 -g1
ALL_CXXFLAGS = -std=c++20 $(WARNINGS) $(OPTIMIZE) $(VARIANT_FLAGS) -I. -Isrc -I$(GEN) -DGPUSNOOP_VERSION='"$(VERSION)"' $(CROSS_FLAGS) $(CXXFLAGS)
# mold or lld, if installed, takes a third of the default linker's time.
ifneq ($(VARIANT),static)
LINKER ?= $(firstword $(foreach linker,mold lld,$(shell $(CXX) -fuse-ld=$(linker) -Wl,--version >/dev/null 2>&1 && echo -fuse-ld=$(linker))))
endif
LIBS := $(LINKER) $(CROSS_LDFLAGS) -lbpf -ldw -lelf -lz -llzma -lzstd -lfmt
# Zydis decodes instructions of x86-64; other machines do not have or need it.
ifeq ($(MACHINE),x86_64)
LIBS += -lZydis
else
OTHER_MACHINE := %_x86_64.cpp %_x86_64_test.cpp
endif
ifeq ($(VARIANT),asan)
# -O0: GCC would need twice as long to optimize the code of the sanitizers. -g1 is enough for functions and lines in
# stacks.
VARIANT_FLAGS := -O0 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
ifeq ($(VARIANT),fuzz)
# Clang's default limit of constexpr steps is too low for the probe tables.
VARIANT_FLAGS := -O1 -g1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer \
                 -fconstexpr-steps=100000000 -Wno-c99-extensions -Wno-unknown-warning-option
endif
ifeq ($(VARIANT),static)
# Debian has no static fmt and Zydis: scripts/static-libraries builds them. libdw needs the compression libraries.
VARIANT_LDFLAGS := -static -s
LIBS := $(CROSS_LDFLAGS) -lbpf -ldw -lelf $(wildcard $(BUILD)/libraries/libeu.a) -lz -llzma -lbz2 -lzstd -lpthread -L$(BUILD)/libraries -lfmt \
        $(if $(filter x86_64,$(MACHINE)),-lZydis)
# Linked before libgpusnoop.a, so that this object replaces the archive's nvml.o: a static program cannot call dlopen.
INSTEAD := $(BUILD)/obj/static/src/gpu/nvml.o
endif
LIBS += -lncursesw -ltinfo

# BPF programs that the library itself loads.
LIBRARY_BPF := inodes threads calibrate
SRC     := $(filter-out $(OTHER_MACHINE),$(wildcard src/*/*.cpp))
TOOL_BINS := $(addprefix $(BIN)/,$(TOOLS) $(READERS) $(ALIASES))
# The tools, without main().
TOOL_SRC := $(wildcard tools/*/*.cpp)

# Translation units: up to six files of a folder are compiled together, which halves the compile time. Files in ALONE
# are not combined: cudagap's column tables (their short names would collide), code of one architecture, files that the
# static program replaces, and slow files. ALONE=% compiles every file alone, which tests/roots/compilers checks.
ALONE := tools/cudagap/%columns.cpp %_arm64.cpp %_x86_64.cpp src/gpu/nvml.cpp \
         src/run/command_line.cpp tools/cudatop/cudatop.cpp tools/ncclwait/ncclwait.cpp
comma := ,
# $(call units,FILES): the units that FILES are divided into. The name of a unit contains those of its files:
# FOLDER/A+B+C.
units = $(if $1,$(call unit,$(wordlist 1,6,$1)) $(call units,$(wordlist 7,$(words $1),$1)))
unit = $(dir $(firstword $1))$(subst $(empty) ,+,$(strip $(basename $(notdir $1))))
units_of = $(foreach dir,$(sort $(dir $1)),$(call units,$(filter-out $(ALONE),$(filter $(dir)%,$1))))
files_of = $(patsubst %,$(dir $1)%.cpp,$(subst +, ,$(notdir $1)))
SRC_UNITS  := $(call units_of,$(SRC))
TOOL_UNITS := $(call units_of,$(TOOL_SRC))
SRC_OBJ  := $(patsubst %.cpp,$(OBJ)/%.o,$(filter $(ALONE),$(SRC))) $(SRC_UNITS:%=$(OBJ)/units/%.o) $(LIBRARY_BPF:%=$(GEN)/%.object.o)
TOOL_OBJ := $(patsubst %.cpp,$(OBJ)/%.o,$(filter $(ALONE),$(TOOL_SRC))) $(TOOL_UNITS:%=$(OBJ)/units/%.o) $(TOOLS:%=$(GEN)/%.object.o)
SKELETONS := $(patsubst %,$(GEN)/%.skel.h,$(TOOLS) $(LIBRARY_BPF))
# BPF objects, wrapped in object files that can be linked.
BPF_BYTES := $(SKELETONS:%.skel.h=%.object.o)

.PHONY: all tools man-pages objects demo test test-all test-changed smoke test-kernels soak bench asan static install install-debug format format-check tidy analyze clean deps unit standin
.DELETE_ON_ERROR:
.SECONDARY: $(SKELETONS) $(SKELETONS:%.skel.h=%.bpf.o)

all: tools man-pages

tools: $(TOOL_BINS)

# --- manual ----------------------------------------------------------------------------------------------------------

MAN_PAGES := $(patsubst %,$(BUILD)/man/%.8,$(TOOLS) $(READERS) $(ALIASES))

man-pages: $(MAN_PAGES)

# Pages contain the programs' own lists of options and fields. Cross-built programs do not run here, so a cross build
# also builds native ones.
MAN_FROM := $(if $(CROSS),build,$(BIN))

$(BUILD)/man/%.8: man/%.8 scripts/man-page $(wildcard man/common/*.8) $(MAN_FROM)/$(if $(CROSS),gpusnoop,%)
	$(say) MAN $@
	$(Q)mkdir -p $(@D)
	$(Q)scripts/man-page $< $(MAN_FROM) > $@

ifneq ($(CROSS),)
$(MAN_FROM)/gpusnoop:
	$(Q)$(MAKE) --no-print-directory CROSS= BUILD=$(MAN_FROM) tools
endif

# --- kernel side -----------------------------------------------------------------------------------------------------

# Architecture of the registers that the BPF programs read, by libbpf's name: arm64 or x86.
BPF_ARCH ?= $(if $(filter aarch64,$(MACHINE)),arm64,x86)
BPF_CFLAGS := -g -O2 -mcpu=v3 -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -Ibpf -Wall -Wextra -Wno-unused-parameter $(WERROR_FLAG)
# The BPF target has no architecture folder, but linux/types.h includes asm/types.h from it.
BPF_INCLUDES := -idirafter /usr/include/$(shell $(CLANG) -print-multiarch 2>/dev/null || gcc -print-multiarch) -idirafter /usr/include

vpath %.bpf.c bpf tests/unit/attach tests/bench tests/standin/interrupts
$(GEN)/%.bpf.o: %.bpf.c
	$(say) BPF $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) $(BPF_INCLUDES) -MMD -MP -c $< -o $(GEN)/$*.tmp.o -MF $(GEN)/$*.d -MT $@
	$(Q)$(BPFTOOL) gen object $@ $(GEN)/$*.tmp.o

# Skeletons of tests.
$(GEN)/%.skel.h: $(GEN)/%.bpf.o
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# Files that include a skeleton are recompiled only if its variables or maps have changed.
$(SKELETONS): %.skel.h: %.skel.stamp ;
$(SKELETONS:%.h=%.stamp): %.skel.stamp: %.bpf.o scripts/skeleton.awk
	$(Q)$(BPFTOOL) gen skeleton $< name $(*F)_bpf > $*.skel.raw
	$(Q)awk -v name=$(*F)_bpf -f scripts/skeleton.awk $*.skel.raw > $*.skel.tmp
	$(Q)rm $*.skel.raw
	$(Q)cmp -s $*.skel.tmp $*.skel.h && rm $*.skel.tmp || mv $*.skel.tmp $*.skel.h
	$(Q)touch $@

$(GEN)/%.object.o: $(GEN)/%.bpf.o
	$(Q)printf '.section .rodata\n.balign 8\n.globl %s, %s_end\n%s: .incbin "%s"\n%s_end:\n.section .note.GNU-stack,"",%%progbits\n' \
	    $(*F)_bpf_object $(*F)_bpf_object $(*F)_bpf_object $< $(*F)_bpf_object | $(CC) -c -x assembler - -o $@

# All BPF objects. For another processor, use a separate folder: make objects BPF_ARCH=arm64 GEN=build/arm64/gen.
objects: $(patsubst %,$(GEN)/%.bpf.o,$(TOOLS) $(LIBRARY_BPF))

# --- tables of the drivers' calls ------------------------------------------------------------------------------------

$(GEN)/driver_tables.hpp: scripts/driver-tables $(wildcard data/*.tsv)
	$(say) TABLES $@
	$(Q)mkdir -p $(@D)
	$(Q)scripts/driver-tables data > $@

# --- tools -----------------------------------------------------------------------------------------------------------

# "make PRECOMPILED=" compiles without the precompiled header. tests/roots/compilers does so, to find missing includes.
ifneq ($(VARIANT),fuzz)
PRECOMPILED ?= $(OBJ)/precompiled.hpp
endif

# The compiler uses the .gch file next to the header if it was built with the same flags, and else the header.
$(OBJ)/precompiled.hpp: src/precompiled.hpp
	$(say) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) -x c++-header $< -o $@.gch
	$(Q)cp $< $@

ifneq ($(CROSS),)
$(CROSS_ROOT)/complete:
	$(say) ROOT $(CROSS_ROOT)
	$(Q)scripts/cross-libraries $(CROSS_ROOT)

$(PRECOMPILED): | $(CROSS_ROOT)/complete
endif

$(OBJ)/%.o: %.cpp | $(PRECOMPILED) $(SKELETONS) $(GEN)/driver_tables.hpp
	$(say) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $(addprefix -include ,$(PRECOMPILED)) -MMD -MP -c $< -o $@

# A unit is compiled as a list of #include lines. -Wno-subobject-linkage: GCC warns if a class in an included file has a
# base or field from an anonymous namespace. This is safe here, because each .cpp file is included in one unit only.
.SECONDEXPANSION:
$(SRC_UNITS:%=$(OBJ)/units/%.o) $(TOOL_UNITS:%=$(OBJ)/units/%.o): $(OBJ)/units/%.o: $$(call files_of,$$*) | $(PRECOMPILED) $(SKELETONS) $(GEN)/driver_tables.hpp
	$(say) CXX $*
	$(Q)mkdir -p $(@D)
	$(Q)printf '#include "%s"\n' $(call files_of,$*) | $(CXX) $(ALL_CXXFLAGS) -Wno-subobject-linkage $(addprefix -include ,$(PRECOMPILED)) \
	    -MMD -MP -MF $(@:.o=.d) -MT $@ -c -x c++ - -o $@

$(BUILD)/obj/static/%.o: %.cpp
	$(say) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) -DGPUSNOOP_STATIC -MMD -MP -c $< -o $@

$(OBJ)/libgpusnoop.a: $(SRC_OBJ)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# All tools are one program with a link per tool; separate programs would be larger.
$(BIN)/gpusnoop: $(OBJ)/tools/main.o $(TOOL_OBJ) $(INSTEAD) $(OBJ)/libgpusnoop.a
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $(VARIANT_LDFLAGS) $(LDFLAGS) $^ -o $@ $(LIBS)

$(TOOL_BINS): $(BIN)/gpusnoop
	$(Q)ln -sf gpusnoop $@

# The release variant uses the same skeletons, so they are built before make is called again: two makes must not write
# them at the same time.
asan: $(SKELETONS) $(BPF_BYTES)
	$(Q)$(MAKE) --no-print-directory VARIANT=asan tools

static: tools
	$(Q)CROSS=$(CROSS) CC="$(CC)" CXX="$(CXX)" AR="$(AR)" NM="$(NM)" scripts/static-libraries $(BUILD)/libraries
	$(Q)$(MAKE) --no-print-directory VARIANT=static tools
	$(Q)for t in $(TOOLS); do file -L $(BUILD)/static/$$t | grep -q 'statically linked' || { echo "$$t is not static" >&2; exit 1; }; done

# --- tests -----------------------------------------------------------------------------------------------------------

deps:
	$(Q)scripts/install-deps

# One compiler per CPU, unless make was called with -j.
JOBS = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

# Programs of each level of tests.
TEST_BINS := all standin $(BUILD)/unit/unit-tests $(BUILD)/unit/bpf-tests screen-bins
LONG_BINS := asan unit static vendor-bins fuzz-replay gpu-parts

# Also works on a new machine: installs dependencies, then calls make again, so that it detects them.
test:
	$(Q)scripts/install-deps
	-$(Q)scripts/install-deps kernels
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(TEST_BINS)
	$(Q)tests/run --short

# All tests: also the slow ones, sanitizers, NVIDIA's own libraries, fuzzing inputs, the static program on every kernel,
# arm64, some fuzzing, other distributions, and checkouts in other places.
test-all:
	$(Q)scripts/install-deps
	-$(Q)scripts/install-deps kernels
	-$(Q)scripts/install-deps cross
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(TEST_BINS) $(LONG_BINS)
	$(Q)tests/run; tests=$$?; $(MAKE) --no-print-directory $(JOBS) fuzz SECONDS=30; fuzz=$$?; \
	    scripts/install-deps roots; tests/roots/run; roots=$$?; tests/places/run && [ $$tests$$fuzz$$roots = 000 ]

# Three runtime cases of a tool: make smoke TOOL=gpualloc
smoke:
	$(Q)[ -n "$(TOOL)" ] || { echo "make smoke needs TOOL=; tools: $(TOOLS) $(READERS)" >&2; exit 2; }
	$(Q)$(MAKE) --no-print-directory $(JOBS) tools standin
	$(Q)tests/run --smoke $(TOOL)

# The tests that the uncommitted changes can affect, or those since a commit: make test-changed BASE=HEAD~3
test-changed:
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(TEST_BINS)
	$(Q)tests/run --changed $(BASE)

# Tests under other kernels, in emulated machines; make test includes the oldest and the newest. If the packages for
# them cannot be installed, the tests report what is missing.
test-kernels:
	$(Q)scripts/install-deps
	-$(Q)scripts/install-deps kernels
	$(Q)$(MAKE) --no-print-directory all standin
	$(Q)tests/kernels/run

demo:
	$(Q)scripts/install-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) all standin
	$(Q)scripts/demo

# Runs all tools for an hour, or for MINUTES.
soak:
	$(Q)scripts/install-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) all standin
	$(Q)tests/soak/run $(MINUTES)

bench:
	$(Q)scripts/install-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) all standin bench-bins
	$(Q)tests/bench/run

include tests/standin/standin.mk
include tests/standin/interrupts/interrupts.mk

include tests/unit/attach/abi/abi.mk
include tests/bench/bench.mk
include tests/screen/screen.mk
include tests/vendor/vendor.mk
include tests/fuzz/fuzz.mk
include tests/gpu/gpu.mk
include tests/arm64/arm64.mk
include tests/unit/unit.mk
include tests/bpf/bpf.mk

# --- the rest --------------------------------------------------------------------------------------------------------

# Quoted below, since it may contain spaces. So the shell does not expand ~.
TO = $(DESTDIR)$(patsubst ~/%,$(HOME)/%,$(PREFIX))

install: all
	install -d "$(TO)/bin" "$(TO)/share/man/man8" "$(TO)/share/bash-completion/completions" \
	    "$(TO)/share/fish/vendor_completions.d" "$(TO)/share/zsh/site-functions" "$(TO)/share/doc/gpusnoop/docs"
	install -m 755 -s $(BIN)/gpusnoop "$(TO)/bin"
	for t in $(TOOLS) $(READERS) $(ALIASES); do ln -sf gpusnoop "$(TO)/bin/$$t"; done
	install -m 644 $(MAN_PAGES) "$(TO)/share/man/man8"
	install -m 644 README.md LICENSE "$(TO)/share/doc/gpusnoop"
	for t in $(TOOLS) $(READERS); do \
	    install -m 644 tools/$$t/example.txt "$(TO)/share/doc/gpusnoop/$${t}_example.txt"; done
	install -m 644 docs/*.* "$(TO)/share/doc/gpusnoop/docs"
	for t in $(TOOLS) $(READERS) $(ALIASES); do \
	    install -m 644 scripts/completion.bash "$(TO)/share/bash-completion/completions/$$t"; \
	    install -m 644 scripts/completion.fish "$(TO)/share/fish/vendor_completions.d/$$t.fish"; done
	install -m 644 scripts/completion.zsh "$(TO)/share/zsh/site-functions/_gpusnoop"

# Debug information that install strips, in the folder where debuggers, perf and eu-stack search for it. Run this target
# after install.
DEBUG_DIR = $(TO)/bin/.debug

install-debug: all
	install -d "$(DEBUG_DIR)"
	objcopy --only-keep-debug $(BIN)/gpusnoop "$(DEBUG_DIR)/gpusnoop.debug"
	chmod 644 "$(DEBUG_DIR)/gpusnoop.debug"
	objcopy --remove-section=.gnu_debuglink "--add-gnu-debuglink=$(DEBUG_DIR)/gpusnoop.debug" \
	    "$(TO)/bin/gpusnoop"

# safe.directory: another user may own the checkout.
FORMATTED = $(or $(shell git -c safe.directory='*' ls-files '*.cpp' '*.hpp' '*.c' '*.h'), \
                 $(error git lists no sources here: formatting needs a git checkout))

format:
	$(Q)$(CLANG_FORMAT) -i $(FORMATTED)

format-check:
	-$(Q)scripts/install-deps checks
	$(Q)$(CLANG_FORMAT) --dry-run -Werror $(FORMATTED)

# clang-tidy, by the units in which files are compiled, because parsing the headers takes most of its time. Its static
# analyzer skips included files, so "make analyze" runs it on each file, which takes 20 minutes.
TIDY_UNITS := $(SRC_UNITS) $(TOOL_UNITS) $(basename $(filter $(ALONE),$(SRC) $(TOOL_SRC))) tools/main
TIDIED := $(TIDY_UNITS:%=$(BUILD)/tidy/%.ok)
TIDY = $(CLANG_TIDY) --quiet --header-filter='(src|tools)/.*\.[ch]pp$$'
TIDY_FLAGS = $(filter-out -g% -O%,$(ALL_CXXFLAGS)) -Wno-unknown-warning-option

tidy: $(TIDIED)

$(TIDIED): $(BUILD)/tidy/%.ok: $$(call files_of,$$*) .clang-tidy | $(SKELETONS) $(GEN)/driver_tables.hpp
	$(say) TIDY $*
	$(Q)mkdir -p $(@D)
	$(Q)printf '#include "%s" // NOLINT(bugprone-suspicious-include)\n' $(filter %.cpp,$^) > $(@:.ok=.cpp)
	$(Q)$(TIDY) --checks='-clang-analyzer-*' $(@:.ok=.cpp) -- $(TIDY_FLAGS) 2>$(@:.ok=.log) || { cat $(@:.ok=.log) >&2; exit 1; }
	$(Q)touch $@

analyze: $(SKELETONS) $(GEN)/driver_tables.hpp
	$(Q)printf '%s\n' $(SRC) tools/main.cpp $(TOOL_SRC) | \
	    xargs -P $(shell nproc) -I{} $(CLANG_TIDY) --quiet --checks='-*,clang-analyzer-*' {} -- $(TIDY_FLAGS)

clean:
	rm -rf $(BUILD)

-include $(wildcard $(OBJ)/units/*/*/*.d $(OBJ)/src/*/*.d $(OBJ)/tools/*.d $(OBJ)/tools/*/*.d $(GEN)/*.d)
