# SPDX-License-Identifier: Apache-2.0
# Programs of the benchmark: traced programs, empty probes and building blocks. Included by the top Makefile.

BENCH := $(BUILD)/bench

.PHONY: bench-bins
bench-bins: $(BENCH)/target $(BENCH)/libtarget.so $(BENCH)/loads $(GEN)/blocks.bpf.o

$(BENCH)/target $(BENCH)/loads: $(BENCH)/%: tests/bench/%.cpp
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $< -o $@ -ldl

$(BENCH)/loads: ALL_CXXFLAGS += -fno-omit-frame-pointer

$(BENCH)/libtarget.so: tests/bench/target.cpp
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) -DAS_LIBRARY -shared -fPIC $< -o $@ -ldl
