# SPDX-License-Identifier: Apache-2.0
# Tests of the kernel side without probes: the tools, linked with BPF objects whose probe programs BPF_PROG_TEST_RUN can
# run. Included by the top Makefile.

BPF_TEST := $(BUILD)/unit/bpf-tests

$(FAKE)/%.bpf.o: bpf/%.bpf.c tests/bpf/fake.bpf.h
	$(say) BPF 'tests/bpf: $*'
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) $(BPF_INCLUDES) -include tests/bpf/fake.bpf.h -MMD -MP -c $< -o $(FAKE)/$*.tmp.o -MF $(FAKE)/$*.d -MT $@
	$(Q)$(BPFTOOL) gen object $@ $(FAKE)/$*.tmp.o

$(BPF_TEST): $(BPF_TEST_OBJ) $(filter-out $(FAKED:%=$(GEN)/%.object.o),$(TOOL_OBJ)) $(FAKED:%=$(FAKE)/%.object.o) $(ABI_CALLS) \
    $(OBJ)/libgpusnoop.a
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(link_tests)

-include $(wildcard $(FAKE)/*.d $(OBJ)/tests/bpf/*.d)
