# SPDX-License-Identifier: Apache-2.0
# A program that is interrupted for a known time. Not part of standin.mk, because it needs BPF programs; the top
# Makefile includes this file.

standin: $(SB)/interrupted

$(SB)/interrupted: tests/standin/interrupts/main.cpp $(GEN)/busy.skel.h $(SB)/libcuda.so.1
	$(say) LINK $@
	$(Q)$(CXX) $(ALL_CXXFLAGS) $< $(SB)/libcuda.so.1 -Wl,-rpath,'$$ORIGIN' -o $@ $(CROSS_LDFLAGS) -lbpf
