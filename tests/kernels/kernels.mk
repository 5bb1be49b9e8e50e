# SPDX-License-Identifier: Apache-2.0
# Builds paths/, the program that tests the ways to hook a driver. Included by the top Makefile.

KERNELS_BIN := $(BUILD)/kernels-bin

.PHONY: kernels-bins
kernels-bins: $(KERNELS_BIN)/paths

$(KERNELS_BIN)/paths.bpf.o: tests/kernels/paths/paths.bpf.c tests/kernels/paths/paths.h bpf/shared/kernel.h
	$(say) BPF $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -Ibpf $(BPF_INCLUDES) -c $< -o $(KERNELS_BIN)/paths.tmp.o
	$(Q)$(BPFTOOL) gen object $@ $(KERNELS_BIN)/paths.tmp.o

$(KERNELS_BIN)/paths.skel.h: $(KERNELS_BIN)/paths.bpf.o
	$(Q)$(BPFTOOL) gen skeleton $< name paths_bpf > $@

$(KERNELS_BIN)/paths: tests/kernels/paths/paths.cpp $(KERNELS_BIN)/paths.skel.h
	$(say) LINK $@
	$(Q)$(CXX) $(ALL_CXXFLAGS) -I$(KERNELS_BIN) $< -o $@ $(LIBS)
