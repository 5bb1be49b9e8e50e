# SPDX-License-Identifier: Apache-2.0
# Unit tests, included by the top Makefile: all in one program, and one program per room and tool for "make try".

UNIT_SRC := $(filter-out $(OTHER_MACHINE),$(wildcard tests/unit/*/*.cpp))
UNIT_OBJ := $(UNIT_SRC:%.cpp=$(OBJ)/%.o)
$(OBJ)/tests/unit/attach/refusal_test.o: $(GEN)/refused.skel.h
$(OBJ)/tests/unit/attach/program_stack_test.o: $(GEN)/deep.skel.h
$(OBJ)/tests/unit/attach/load_in_parallel_test.o: $(GEN)/deep.skel.h $(GEN)/refused.skel.h

# Tests are not optimized, and have a precompiled header of their own; both halve their compile time.
TEST_FLAGS := -O0
TEST_HEADER := $(if $(PRECOMPILED),$(OBJ)/tests/precompiled.hpp)
$(OBJ)/tests/precompiled.hpp: tests/precompiled.hpp src/precompiled.hpp
	$(say) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $(TEST_FLAGS) -x c++-header $< -o $@.gch
	$(Q)cp $< $@

$(OBJ)/tests/unit/%.o $(OBJ)/tests/bpf/%.o: ALL_CXXFLAGS += $(TEST_FLAGS)
$(OBJ)/tests/unit/%.o: tests/unit/%.cpp | $(TEST_HEADER) $(SKELETONS) $(GEN)/driver_tables.hpp
	$(compile_test)
$(OBJ)/tests/bpf/%.o: tests/bpf/%.cpp | $(TEST_HEADER) $(SKELETONS) $(GEN)/driver_tables.hpp
	$(compile_test)
define compile_test
	$(say) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $(addprefix -include ,$(TEST_HEADER)) -MMD -MP -c $< -o $@
endef

unit: $(BUILD)/unit/unit-tests asan
	$(Q)$(MAKE) --no-print-directory VARIANT=asan $(BUILD)/unit/unit-tests-asan

NVML_FOR_TESTS := $(SB)/nvml/libnvidia-ml.so.1 $(filter $(SB)/hip/%,$(STANDIN_PRODUCTS))
link_tests = $(Q)$(CXX) $(ALL_CXXFLAGS) $^ -o $@ $(LIBS) -lCatch2Main -lCatch2

$(BUILD)/unit/unit-tests $(BUILD)/unit/unit-tests-asan: $(UNIT_OBJ) $(TOOL_OBJ) $(ABI_OBJS) $(OBJ)/libgpusnoop.a \
                                           | $(NVML_FOR_TESTS)
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(link_tests)

# Tests without probes (tests/bpf/bpf.mk).
FAKE := $(GEN)/fake
# Tools whose programs a test runs; compiling the others again would take ten seconds.
FAKED := cudalaunch cudamemcpy cudasync gpualloc cudagraph cudagap ncclwait
BPF_TEST_OBJ := $(patsubst %.cpp,$(OBJ)/%.o,$(wildcard tests/bpf/*.cpp))

# --- one program per room and tool -----------------------------------------------------------------------------------

# The table in src/README.md: a room includes headers of the rooms before it, so its tests need no other code.
ROOMS := base proc reader code who names attach gpu rows output screen run
# Rooms whose tests also use code of later rooms, up to this one.
UP_TO_code := attach
UP_TO_names := attach
UP_TO_who := rows

until = $(firstword $2)$(if $(filter-out $1,$(firstword $2)), $(call until,$1,$(wordlist 2,99,$2)))
objects_in = $(filter $(foreach folder,$1,$(OBJ)/$(folder)/% $(OBJ)/units/$(folder)/%),$(SRC_OBJ) $(TOOL_OBJ))
tests_in = $(filter $(OBJ)/tests/unit/$1/%,$(UNIT_OBJ))
LIBRARY_OBJECTS := $(LIBRARY_BPF:%=$(GEN)/%.object.o)

# $(call try_room,ROOM): the program has the room's tests, and the code of the rooms up to it. The tests of `run` try the
# options of all tools.
define try_room
$(BUILD)/try/$1: $(call tests_in,$1) $(if $(filter attach,$1),$(ABI_OBJS)) $(if $(filter run,$1),$(TOOL_OBJ)) \
    $(call objects_in,$(addprefix src/,$(call until,$(or $(UP_TO_$1),$1),$(ROOMS)))) $(LIBRARY_OBJECTS)
endef
# $(call try_tool,TOOL): the program has the tool's unit tests, and its tests without probes (tests/bpf). cudatop uses
# code of other tools.
define try_tool
$(BUILD)/try/$1: $(call tests_in,$1) $(if $(filter cudatop,$1),$(TOOL_OBJ),$(call objects_in,tools/$1)) $(OBJ)/libgpusnoop.a \
    $(if $(filter $1,$(FAKED)),$(BPF_TEST_OBJ) $(ABI_CALLS) $(FAKE)/$1.object.o,$(filter-out $(GEN)/cudatop.object.o,$(filter $(GEN)/$1.object.o,$(TOOL_OBJ))))
endef
$(foreach room,$(ROOMS),$(eval $(call try_room,$(room))))
$(foreach tool,$(TOOLS) $(READERS),$(eval $(call try_tool,$(tool))))

$(BUILD)/try/%: | $(NVML_FOR_TESTS)
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(link_tests)

.PHONY: try
# Builds and runs only the tests of a room or a tool: make try ROOM=rows, make try TOOL=gpualloc
try:
	$(Q)[ -n "$(ROOM)$(TOOL)" ] || { echo "make try needs ROOM= or TOOL=; rooms: $(ROOMS); tools: $(TOOLS) $(READERS)" >&2; exit 2; }
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(BUILD)/try/$(or $(ROOM),$(TOOL))
	$(Q)$(BUILD)/try/$(or $(ROOM),$(TOOL)) $(if $(TOOL),'~[bpf]$(comma)[$(TOOL)]' --allow-running-no-tests)

-include $(wildcard $(OBJ)/tests/unit/*/*.d)
