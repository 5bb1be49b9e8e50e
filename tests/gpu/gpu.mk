# SPDX-License-Identifier: Apache-2.0
# The bundle that runs tests/gpu/run on a machine with a GPU: "make gpu-bundle". Included by the top Makefile.

GPU_BUNDLE := $(BUILD)/gpusnoop-gpu.tar.gz

.PHONY: gpu-bundle test-gpu gpu-parts
# The workload opens a driver at run time, so it cannot be fully static. All libraries except the C library are linked
# statically.
$(eval $(call standin_compile,$(BUILD)/gpu/arc4random.o,tests/gpu/arc4random.cpp,-fPIE))
$(BUILD)/gpu/workload-dlopen: $(STANDIN_COMMON) $(call standin_form,none) $(BUILD)/gpu/arc4random.o
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(STANDIN_LINK) -pie -s -static-libstdc++ -static-libgcc

# The witness: a library that writes CUPTI's reports to a file. Exports only its entry point, since programs have their
# own C++ library.
WITNESS := $(BUILD)/gpu/witness.so
$(foreach f,$(wildcard tests/gpu/witness/*.cpp),$(eval $(call \
    standin_compile,$(BUILD)/gpu/witness/$(notdir $(f:.cpp=.o)),$(f),-fPIC -fvisibility=hidden \
    $(if $(findstring abi_check,$(f)),-isystem $(CUDA_HOME)/include))))
WITNESS_SRC := $(if $(wildcard $(CUDA_HOME)/include/cupti.h),,tests/gpu/witness/abi_check.cpp)
WITNESS_SRC := $(filter-out $(WITNESS_SRC),$(wildcard tests/gpu/witness/*.cpp))
$(WITNESS): $(WITNESS_SRC:tests/gpu/%.cpp=$(BUILD)/gpu/%.o) $(BUILD)/gpu/arc4random.o tests/gpu/witness/exports.map
	$(say) LINK $@
	$(Q)$(CXX) -shared -o $@ $(filter %.o,$^) -s -static-libstdc++ -static-libgcc -Wl,-z,defs \
	    -Wl,--version-script=tests/gpu/witness/exports.map

# Needed by tests/gpu/rehearse, besides the tools and the stand-in.
gpu-parts: $(WITNESS) $(INSPECT)

# Programs that use the CUDA runtime, if nvcc is installed (tests/vendor/vendor.mk).
GPU_LAUNCHERS := $(if $(NVCC),$(VENDOR)/launchers)

gpu-bundle: static $(BUILD)/gpu/workload-dlopen $(WITNESS) $(GPU_LAUNCHERS)
	$(Q)$(MAKE) --no-print-directory VARIANT=static $(INSPECT:$(BIN)/%=$(BUILD)/static/%)
	$(Q)tests/gpu/bundle $(BUILD)/gpu/gpusnoop-gpu $(BUILD)/static $(BUILD)/gpu/workload-dlopen $(WITNESS) \
	    $(if $(GPU_LAUNCHERS),$$(ls $(VENDOR)/launcher-static $(VENDOR)/launcher-shared 2>/dev/null))
	$(Q)tar -czf $(GPU_BUNDLE) -C $(BUILD)/gpu gpusnoop-gpu
	$(Q)[ $$(stat -c %s $(GPU_BUNDLE)) -le 62914560 ] || { echo "$(GPU_BUNDLE) is larger than 60 MiB" >&2; exit 1; }
	$(say) TAR $(GPU_BUNDLE)

# Builds the bundle and runs it on this machine, which must have the GPU.
test-gpu: gpu-bundle
	$(Q)$(BUILD)/gpu/gpusnoop-gpu/run --out $(BUILD)/gpu/report
