# SPDX-License-Identifier: Apache-2.0
# The program that tries the ways into a driver. Included by the top Makefile.

KERNELS := $(BUILD)/kernels-bin

.PHONY: kernels-bins
kernels-bins: $(KERNELS)/paths

$(KERNELS)/paths.bpf.o: tests/kernels/paths/paths.bpf.c tests/kernels/paths/paths.h bpf/kernel.h
	$(say) BPF $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -Ibpf $(BPF_INCLUDES) -c $< -o $(KERNELS)/paths.tmp.o
	$(Q)$(BPFTOOL) gen object $@ $(KERNELS)/paths.tmp.o

$(KERNELS)/paths.skel.h: $(KERNELS)/paths.bpf.o
	$(Q)$(BPFTOOL) gen skeleton $< name paths_bpf > $@

$(KERNELS)/paths: tests/kernels/paths/paths.cpp $(KERNELS)/paths.skel.h
	$(say) LINK $@
	$(Q)$(CXX) $(ALL_CXXFLAGS) -I$(KERNELS) $< -o $@ $(LIBS)
