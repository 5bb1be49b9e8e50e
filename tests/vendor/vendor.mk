# SPDX-License-Identifier: Apache-2.0
# Builds the programs of tests/vendor. Included by the top Makefile. Only the launchers need nvcc; they are skipped
# without it.

VENDOR := $(BUILD)/vendor-tests
NVCC   ?= $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)

VENDOR_LAUNCHER := $(addprefix $(VENDOR)/launcher-,static shared static-stripped shared-stripped)

.PHONY: vendor-bins
vendor-bins: gpu-parts $(VENDOR)/hang.so $(VENDOR)/registered/built $(if $(NVCC),$(VENDOR)/launchers)

$(VENDOR)/inspect.o: tests/vendor/inspect.cpp
	$(say) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) -MMD -MP -c $< -o $@

# In the same variant as the tools: also part of the bundle of tests/gpu.
INSPECT := $(BIN)/inspect
$(INSPECT): $(VENDOR)/inspect.o $(INSTEAD) $(OBJ)/libgpusnoop.a
	$(say) LINK $@
	$(Q)$(CXX) $(ALL_CXXFLAGS) $^ -o $@ $(VARIANT_LDFLAGS) $(LIBS)

$(VENDOR)/hang.so: tests/vendor/hang.cpp
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) -shared -fPIC $< -o $@

$(VENDOR)/registered/built: tests/vendor/build-registered tests/vendor/launcher.cu \
                            $(SB)/libcudart.so.12 $(SB)/libcudart_static.a
	$(say) NVCC $(@D)
	$(Q)tests/vendor/build-registered $(@D) $(SB) $(NVCC)
	$(Q)touch $@

# Does not fail if nvcc cannot use this machine's compiler; tests that need the launchers are then skipped.
$(VENDOR)/launchers: tests/vendor/launcher.cu
	$(say) NVCC $<
	$(Q)mkdir -p $(@D)
	$(Q)rm -f $(VENDOR_LAUNCHER)
	$(Q)if $(NVCC) -O2 -c $< -o $(VENDOR)/launcher.o; then \
	    for cudart in static shared; do \
	        $(NVCC) -cudart $$cudart $(VENDOR)/launcher.o -o $(VENDOR)/launcher-$$cudart \
	            -Xlinker -rpath=$(abspath $(dir $(NVCC))../lib64) && \
	        strip -o $(VENDOR)/launcher-$$cudart-stripped $(VENDOR)/launcher-$$cudart; \
	    done; \
	else echo "  ($(NVCC) failed: no launchers)"; fi
	$(Q)touch $@

-include $(wildcard $(VENDOR)/*.d)
