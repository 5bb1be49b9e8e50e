# SPDX-License-Identifier: Apache-2.0
# Programs of the benchmark: traced programs, empty probes and building blocks. Included by the top Makefile.

BENCH := $(BUILD)/bench

.PHONY: bench-bins
bench-bins: $(BENCH)/target $(BENCH)/libtarget.so $(BENCH)/floor $(BENCH)/syscalls $(BENCH)/switches $(BENCH)/storm $(BENCH)/stacks $(BENCH)/blocks $(GEN)/blocks.bpf.o

$(BENCH)/target $(BENCH)/syscalls $(BENCH)/switches $(BENCH)/storm $(BENCH)/stacks: $(BENCH)/%: tests/bench/%.cpp
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $< -o $@ -ldl

$(BENCH)/stacks: ALL_CXXFLAGS += -fno-omit-frame-pointer

$(BENCH)/libtarget.so: tests/bench/target.cpp
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) -DAS_LIBRARY -shared -fPIC $< -o $@ -ldl

$(BENCH)/floor $(BENCH)/blocks: $(BENCH)/%: tests/bench/%.cpp $(OBJ)/libgpusnoop.a
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $^ -o $@ $(LIBS)
