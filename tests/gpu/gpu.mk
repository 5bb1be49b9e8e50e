# SPDX-License-Identifier: Apache-2.0
# What a machine with a GPU needs to run tests/gpu/run: "make gpu-bundle". Included by the top Makefile.

GPU_BUNDLE := $(BUILD)/gpusnoop-gpu.tar.gz

.PHONY: gpu-bundle test-gpu
# The workload opens a driver at run time, so it cannot be static itself: it brings all but the C library.
$(eval $(call standin_compile,$(BUILD)/gpu/arc4random.o,tests/gpu/arc4random.cpp,-fPIE))
$(BUILD)/gpu/workload-dlopen: $(STANDIN_COMMON) $(call standin_form,none) $(BUILD)/gpu/arc4random.o
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(STANDIN_LINK) -pie -s -static-libstdc++ -static-libgcc

gpu-bundle: static $(BUILD)/gpu/workload-dlopen
	$(Q)tests/gpu/bundle $(BUILD)/gpu/gpusnoop-gpu $(BUILD)/static $(BUILD)/gpu/workload-dlopen
	$(Q)tar -czf $(GPU_BUNDLE) -C $(BUILD)/gpu gpusnoop-gpu
	$(Q)[ $$(stat -c %s $(GPU_BUNDLE)) -le 62914560 ] || { echo "$(GPU_BUNDLE) is larger than 60 MiB" >&2; exit 1; }
	$(say) TAR $(GPU_BUNDLE)

# On the machine with the GPU itself.
test-gpu: gpu-bundle
	$(Q)$(BUILD)/gpu/gpusnoop-gpu/run --out $(BUILD)/gpu/report
