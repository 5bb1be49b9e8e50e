# SPDX-License-Identifier: Apache-2.0
# The stand-in CUDA libraries and the workload programs: "make standin". Included by the top Makefile. To build only
# this: make -f tests/standin/standin.mk BUILD=FOLDER standin
#
# Everything is built in $(BUILD)/standin, and finds its libraries there; LD_LIBRARY_PATH selects others.

BUILD ?= build
CXX   ?= g++
Q     ?= @
WERROR_FLAG ?= $(if $(filter 1,$(WERROR)),-Werror)
MACHINE ?= $(firstword $(subst -, ,$(shell $(CXX) -dumpmachine)))
NM    ?= nm
STRIP ?= strip
S     := tests/standin
SB    := $(BUILD)/standin

STANDIN_CXXFLAGS := -std=c++20 -O2 -Wall -Wextra $(WERROR_FLAG) -MMD -MP
STANDIN_FORMS    := workload workload13 workload-nopie workload-static workload-static-stripped workload-driver \
                    workload-dlopen
STANDIN_PRODUCTS := $(addprefix $(SB)/,libcuda.so.1 libcuda.so moved/libcuda.so.1 libcudart.so.12 libcudart.so.13 \
                    libcudart_static.a signed/libcudart.so.12 nvml/libnvidia-ml.so.1 cupti/libcupti.so libnccl.so.2 \
                    hidden/libnccl.so.2 old/libnccl.so.2 refuse.so $(STANDIN_FORMS) ioctls gaps ranks \
                    $(foreach k,call tail chain busy,forward/$(k)/libcuda.so.1) forward/preload/libcuda-control.so \
                    stacks/deep stacks/high $(foreach k,framed O1 O2 Os,stacks/$(k)/levels))
# ROCm exists for x86-64 only.
ifeq ($(MACHINE),x86_64)
STANDIN_PRODUCTS += $(addprefix $(SB)/,hip/calls $(foreach n,5 6 7,hip/libamdhip64.so.$(n)) \
                    $(foreach k,call tail,forward/hip-$(k)/libcuda.so.1))
endif

.PHONY: standin standin-check
standin: $(STANDIN_PRODUCTS)
standin-check: standin
	$(Q)$(S)/check $(SB)

# $(call standin_compile,OBJECT,SOURCE,FLAGS): one rule that compiles SOURCE to OBJECT.
define standin_compile
$(1): $(2) $(S)/standin.mk
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) $$(STANDIN_CXXFLAGS) $(3) -c $$< -o $$@
STANDIN_OBJECTS += $(1)
endef
# $(call standin_group,SOURCE FOLDER,OBJECT FOLDER,FLAGS): one such rule for each source of a folder.
standin_group = $(foreach f,$(notdir $(wildcard $(S)/$(1)/*.cpp)),$(eval \
                $(call standin_compile,$(SB)/obj/$(2)/$(f:.cpp=.o),$(S)/$(1)/$(f),$(3))))
standin_objects = $(patsubst $(S)/$(1)/%.cpp,$(SB)/obj/$(2)/%.o,$(wildcard $(S)/$(1)/*.cpp))

STANDIN_SHARED := -Wl,--build-id -Wl,-z,defs -Wl,-Bsymbolic -Wl,-s -Wl,-rpath,'$$ORIGIN'
STANDIN_TLS    := -fPIC -ftls-model=initial-exec

# No tail calls: in NVIDIA's libraries (driver 535 to 595, runtime 11.8, 12.4), the frame of an exported function is on
# the stack while an inner function waits.
STANDIN_CXXFLAGS += -fno-optimize-sibling-calls

# libcuda: generated thunks, and the implementations of driver/.
$(call standin_group,driver,driver,$(STANDIN_TLS) -fvisibility=hidden)
$(SB)/obj/thunks.S: $(S)/driver/thunks.py $(S)/driver_exports.txt
	@mkdir -p $(@D)
	$(Q)python3 $< $(MACHINE) $(S)/driver_exports.txt > $@
$(SB)/libcuda.so.999.0: $(SB)/obj/thunks.S $(call standin_objects,driver,driver) $(S)/driver/exports.map
	$(Q)$(CXX) -shared -o $@ $(filter %.S %.o,$^) -Wl,-soname,libcuda.so.1 -Wl,--version-script=$(S)/driver/exports.map \
	    $(STANDIN_SHARED)
$(SB)/libcuda.so.1: $(SB)/libcuda.so.999.0
$(SB)/libcuda.so: $(SB)/libcuda.so.1

# libcuda with all functions at other addresses, like another version of the driver. Tests overwrite libcuda with this
# file.
$(SB)/moved/libcuda.so.1: $(SB)/obj/thunks.S $(call standin_objects,driver,driver) $(S)/driver/exports.map
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared -o $@ $(filter %.o,$^) $(filter %.S,$^) -Wl,-soname,libcuda.so.1 \
	    -Wl,--version-script=$(S)/driver/exports.map $(STANDIN_SHARED)

# libcudart: every function begins with push, or with stp on arm64, like the real functions.
STANDIN_RUNTIME := $(STANDIN_TLS) -fno-omit-frame-pointer -fcf-protection=none -fno-shrink-wrap \
                   -fno-schedule-insns2 -fno-ipa-icf -fno-semantic-interposition
$(call standin_group,runtime,runtime12,$(STANDIN_RUNTIME) -DCUDART=12)
$(call standin_group,runtime,runtime13,$(STANDIN_RUNTIME) -DCUDART=13)
$(call standin_group,runtime,runtime-static,$(STANDIN_RUNTIME) -DCUDART=12 -fvisibility=hidden)

# $(call standin_rest,VARIANT,MAJOR,VISIBILITY): functions that runtime/ does not implement.
define standin_rest
$(SB)/obj/$(1)/rest.S: $(S)/runtime/defaults.py $(S)/runtime_exports.txt $(call standin_objects,runtime,$(1))
	$$(Q)NM=$(NM) python3 $$< $(3) $(MACHINE) $(2) $$(filter-out $$<,$$^) > $$@
endef
$(eval $(call standin_rest,runtime12,12,global))
$(eval $(call standin_rest,runtime-signed,12,global))
$(eval $(call standin_rest,runtime13,13,global))
$(eval $(call standin_rest,runtime-static,12,hidden))

$(SB)/obj/runtime%/exports.map: $(S)/runtime/defaults.py $(S)/runtime_exports.txt
	@mkdir -p $(@D)
	$(Q)python3 $< map $* $(S)/runtime_exports.txt > $@
standin_runtime_parts = $(call standin_objects,runtime,runtime$(1)) \
                        $(addprefix $(SB)/obj/runtime$(1)/,rest.S exports.map)
$(SB)/libcudart.so.12.9.99: $(call standin_runtime_parts,12)
$(SB)/libcudart.so.13.0.99: $(call standin_runtime_parts,13)
$(SB)/libcudart.so.12.9.99 $(SB)/libcudart.so.13.0.99:
	$(Q)$(CXX) -shared -o $@ $(filter %.S %.o,$^) -Wl,-soname,$(basename $(basename $(@F))) \
	    -Wl,--version-script=$(filter %.map,$^) $(STANDIN_SHARED)
$(SB)/libcudart.so.12: $(SB)/libcudart.so.12.9.99
$(SB)/libcudart.so.13: $(SB)/libcudart.so.13.0.99
$(SB)/libcuda.so.1 $(SB)/libcuda.so $(SB)/libcudart.so.12 $(SB)/libcudart.so.13:
	$(Q)ln -sf $(<F) $@

# The runtime as distributions compile libraries: return addresses are signed (arm64), or functions begin with endbr64.
# It has an inner frame between its exported launch function and the driver's function.
STANDIN_PROTECTED := $(if $(filter aarch64,$(MACHINE)),-mbranch-protection=standard,-fcf-protection=full)
$(call standin_group,runtime,runtime-signed,$(STANDIN_RUNTIME) $(STANDIN_PROTECTED) -DFRAMES_BETWEEN \
               -DCUDART=12)
$(SB)/signed/libcudart.so.12: $(call standin_objects,runtime,runtime-signed) $(SB)/obj/runtime-signed/rest.S \
    $(SB)/obj/runtime12/exports.map
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared -o $@ $(filter %.S %.o,$^) -Wl,-soname,$(@F) -Wl,--version-script=$(filter %.map,$^) \
	    $(STANDIN_SHARED)

# The archive has one member, so that programs link all of it.
$(SB)/libcudart_static.a: $(call standin_objects,runtime,runtime-static) $(SB)/obj/runtime-static/rest.S
	$(Q)$(CXX) -c $(filter %.S,$^) -o $(SB)/obj/runtime-static/rest.o
	$(Q)$(LD) -r -o $(SB)/obj/cudart_static.o $(filter %.o,$^) $(SB)/obj/runtime-static/rest.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(SB)/obj/cudart_static.o

# NVML, in its own folder, so that other programs do not find it by accident.
$(call standin_group,nvml,nvml,-fPIC -fvisibility=hidden)
$(SB)/nvml/libnvidia-ml.so.1: $(call standin_objects,nvml,nvml) $(S)/nvml/exports.map
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared -o $@ $(filter %.o,$^) -Wl,-soname,$(@F) -Wl,--version-script=$(S)/nvml/exports.map \
	    $(STANDIN_SHARED)

# CUPTI, also in its own folder.
$(call standin_group,cupti,cupti,-fPIC -fvisibility=hidden)
$(SB)/cupti/libcupti.so: $(call standin_objects,cupti,cupti) $(S)/cupti/exports.map
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared -o $@ $(filter %.o,$^) -Wl,-soname,$(@F) -Wl,--version-script=$(S)/cupti/exports.map \
	    $(STANDIN_SHARED)

# The workload: kernels and a table of functions depend on the runtime that it is linked with; the rest is common.
STANDIN_COMMON  := $(filter-out %/kernels.o,$(call standin_objects,workload,workload))
standin_form     = $(addprefix $(SB)/obj/workload-$(1)/,kernels.o functions.o)
$(foreach f,$(notdir $(STANDIN_COMMON)),$(eval \
    $(call standin_compile,$(SB)/obj/workload/$(f),$(S)/workload/$(f:.o=.cpp),-fPIE)))
# $(call standin_variant,NAME,RUNTIME'S MAJOR VERSION,FLAGS)
define standin_variant
$(call standin_compile,$(SB)/obj/workload-$(1)/kernels.o,$(S)/workload/kernels.cpp,-DRUNTIME_MAJOR=$(2) $(3))
$(call standin_compile,$(SB)/obj/workload-$(1)/functions.o,$(SB)/obj/workload-$(1)/functions.cpp,$(3))
$(SB)/obj/workload-$(1)/functions.cpp: $(S)/runtime/defaults.py $(S)/runtime_exports.txt
	@mkdir -p $$(@D)
	$$(Q)python3 $$< functions $(2) $(S)/runtime_exports.txt > $$@
endef
$(eval $(call standin_variant,12,12,-fPIE))
$(eval $(call standin_variant,13,13,-fPIE))
$(eval $(call standin_variant,nopie,12,-fno-pie))
$(eval $(call standin_variant,none,0,-fPIE))

STANDIN_LINK = $(Q)$(CXX) -o $@ $(filter %.o,$^) -Wl,--no-as-needed $(filter %.a,$^) $(filter $(SB)/lib%.so.1 \
               $(SB)/lib%.so.12 $(SB)/lib%.so.13,$^) -Wl,-rpath,'$$ORIGIN' -Wl,--build-id
$(SB)/workload: $(STANDIN_COMMON) $(call standin_form,12) $(SB)/libcudart.so.12
	$(STANDIN_LINK) -pie
$(SB)/workload13: $(STANDIN_COMMON) $(call standin_form,13) $(SB)/libcudart.so.13
	$(STANDIN_LINK) -pie
$(SB)/workload-nopie: $(STANDIN_COMMON) $(call standin_form,nopie) $(SB)/libcudart.so.12
	$(STANDIN_LINK) -no-pie
$(SB)/workload-static: $(STANDIN_COMMON) $(call standin_form,12) $(SB)/libcudart_static.a
	$(STANDIN_LINK) -pie
$(SB)/workload-static-stripped: $(SB)/workload-static
	$(Q)$(STRIP) -o $@ $<
$(SB)/workload-driver: $(STANDIN_COMMON) $(call standin_form,none) $(SB)/libcuda.so.1
	$(STANDIN_LINK) -pie
$(SB)/workload-dlopen: $(STANDIN_COMMON) $(call standin_form,none)
	$(STANDIN_LINK) -pie

# Program with threads that are blocked between calls.
$(call standin_group,gaps,gaps,-fPIE)
$(SB)/gaps: $(call standin_objects,gaps,gaps) $(SB)/libcuda.so.1
	$(STANDIN_LINK) -pie

# NCCL: a normal library, a library that hides the layout of communicators, and an old version. Also the program that
# runs the ranks of a job. Functions begin with endbr64 and push, or paciasp and stp, as in Debian's build.
STANDIN_NCCL := -fPIC -fvisibility=hidden -fno-omit-frame-pointer -fno-shrink-wrap -fno-ipa-icf \
                $(if $(filter aarch64,$(MACHINE)),-mbranch-protection=standard,-fcf-protection)
$(call standin_group,nccl,nccl,$(STANDIN_NCCL) -DVERSION=22203)
$(call standin_group,nccl,nccl-hidden,$(STANDIN_NCCL) -DVERSION=22203 -DHIDDEN_FIELDS)
$(call standin_group,nccl,nccl-old,$(STANDIN_NCCL) -DVERSION=21304)
$(SB)/libnccl.so.2: $(call standin_objects,nccl,nccl)
$(SB)/hidden/libnccl.so.2: $(call standin_objects,nccl,nccl-hidden)
$(SB)/old/libnccl.so.2: $(call standin_objects,nccl,nccl-old)
$(SB)/libnccl.so.2 $(SB)/hidden/libnccl.so.2 $(SB)/old/libnccl.so.2:
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared -o $@ $(filter %.o,$^) -Wl,-soname,libnccl.so.2 $(STANDIN_SHARED)
$(call standin_group,ranks,ranks,-fPIE -fno-omit-frame-pointer)
$(SB)/ranks: $(call standin_objects,ranks,ranks) $(addprefix $(SB)/obj/workload/,script.o json.o) $(SB)/libcuda.so.1 \
    $(SB)/libnccl.so.2
	$(Q)$(CXX) -o $@ $(filter %.o,$^) -pie -Wl,--no-as-needed $(filter $(SB)/lib%,$^) -pthread \
	    -Wl,-rpath,'$$ORIGIN' -Wl,--build-id

# Programs with known stacks: many frames, or frames of five libraries. The libraries are built with frame pointers
# (every second one with signed return addresses), and without.
STANDIN_STACKS_framed := -O2 -fno-omit-frame-pointer
$(foreach k,O1 O2 Os,$(eval STANDIN_STACKS_$(k) := -$(k) -fomit-frame-pointer))
$(foreach n,deep high,$(eval \
    $(call standin_compile,$(SB)/obj/stacks/$(n).o,$(S)/stacks/$(n).cpp,-fPIE -O1 -fno-omit-frame-pointer)))
$(SB)/stacks/deep $(SB)/stacks/high: $(SB)/stacks/%: $(SB)/obj/stacks/%.o
	@mkdir -p $(@D)
	$(Q)$(CXX) -o $@ $^ -pie -ldl
# $(call standin_level,KIND,LEVEL,CALLED LEVEL,LINKAGE,LINKAGE OF THE CALLED LEVEL,FLAGS)
define standin_level
$(call standin_compile,$(SB)/obj/stacks/$(1)/level$(2).o,$(S)/stacks/level.cpp,-fPIC $(STANDIN_STACKS_$(1)) $(6) \
    -DNAME=level$(2) -DCALLED=level$(3) -DNAMED_IN='"$(4)"' -DCALLED_IN='"$(5)"' -DROOM=$(2)00)
$(SB)/stacks/$(1)/liblevel$(2).so: $(SB)/obj/stacks/$(1)/level$(2).o
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) -shared -o $$@ $$^ -Wl,-soname,$$(@F)
endef
define standin_levels
$(call standin_compile,$(SB)/obj/stacks/$(1)/levels.o,$(S)/stacks/levels.cpp,-fPIE $(STANDIN_STACKS_$(1)))
$(call standin_level,$(1),1,2,C,C++,$(STANDIN_PROTECTED))
$(call standin_level,$(1),2,3,C++,C)
$(call standin_level,$(1),3,4,C,C++,$(STANDIN_PROTECTED))
$(call standin_level,$(1),4,5,C++,C)
$(call standin_level,$(1),5,0,C,C++,$(STANDIN_PROTECTED))
$(SB)/stacks/$(1)/levels: $(SB)/obj/stacks/$(1)/levels.o $(foreach n,1 2 3 4 5,$(SB)/stacks/$(1)/liblevel$(n).so)
	$$(Q)$$(CXX) -o $$@ $$^ -pie -rdynamic -Wl,-rpath,'$$$$ORIGIN' -ldl
endef
$(foreach k,framed O1 O2 Os,$(eval $(call standin_levels,$(k))))

# A preloaded library that makes BPF system calls fail.
$(call standin_group,kernel,kernel,-fPIC)
$(SB)/refuse.so: $(call standin_objects,kernel,kernel)
	$(Q)$(CXX) -shared -o $@ $^ -ldl

# HIP: libraries with the code shapes of ROCm 5.7, 6.4 and 7.2, in their own folder, and a program that calls any
# function.
$(eval $(call standin_compile,$(SB)/obj/hip/hip.o,$(S)/hip/hip.cpp,-fPIC))
$(eval $(call standin_compile,$(SB)/obj/hip/main.o,$(S)/hip/main.cpp,-fPIE -fno-omit-frame-pointer))
$(SB)/obj/hip/shapes%.S: $(S)/hip/shapes.py $(S)/hip/exports.txt
	@mkdir -p $(@D)
	$(Q)python3 $< $* $(S)/hip/exports.txt > $@
$(SB)/hip/libamdhip64.so.%: $(SB)/obj/hip/shapes%.S $(SB)/obj/hip/hip.o
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared -o $@ $^ -Wl,-soname,$(@F) $(STANDIN_SHARED)
$(SB)/hip/calls: $(SB)/obj/hip/main.o
	@mkdir -p $(@D)
	$(Q)$(CXX) -o $@ $^ -pie -ldl

# Drivers that forward to another driver: by a call, by a jump, or through a chain of three libraries, one of which
# tracers do not probe. Also drivers that forward to HIP. $(call standin_forward,LIBRARY,call or tail,TARGET
# LIBRARY,TARGET'S RELATIVE PATH,FUNCTIONS,FLAGS,|FUNCTION IN C++)
define standin_forward
$(SB)/obj/forward/$(1).S: $(S)/forward/thunks.py $(5)
	@mkdir -p $$(@D)
	$$(Q)$(if $(filter %.txt,$(5)),cat $(5),$(NM) -D --defined-only $(5) | sed -n 's/.* T //p' | \
	    grep -vxE 'cuGetProcAddress(_v2)?$(7)') | \
	    python3 $$< $(MACHINE) $(2) > $$@
$(call standin_compile,$(SB)/obj/forward/$(1).o,$(S)/forward/forward.cpp,-fPIC -DNEXT='"$(4)"' $(6))
$(SB)/forward/$(1): $(SB)/obj/forward/$(1).S $(SB)/obj/forward/$(1).o $(S)/driver/exports.map $(3)
	@mkdir -p $$(@D)
	$$(Q)$$(CXX) -shared -o $$@ $$(filter %.S %.o,$$^) -Wl,-soname,$$(@F) -Wl,--version-script=$(S)/driver/exports.map \
	    $$(STANDIN_SHARED) -ldl
endef
STANDIN_REAL := $(SB)/libcuda.so.999.0
# $(call standin_forward_cuda,LIBRARY,call or tail,TARGET LIBRARY,TARGET'S RELATIVE PATH,FLAGS,|FUNCTION IN C++)
standin_forward_cuda = $(eval \
    $(call standin_forward,$(1),$(2),$(3),$(4),$(STANDIN_REAL),-DFORWARDS_LOOKUPS $(5),$(6)))
$(call standin_forward_cuda,call/libcuda.so.1,call,$(STANDIN_REAL),../../libcuda.so.999.0)
$(call standin_forward_cuda,tail/libcuda.so.1,tail,$(STANDIN_REAL),../../libcuda.so.999.0)
$(call standin_forward_cuda,chain/libhelper.so,call,$(SB)/forward/tail/libcuda.so.1,../tail/libcuda.so.1)
$(call standin_forward_cuda,chain/libcuda.so.1,call,$(SB)/forward/chain/libhelper.so,libhelper.so)
$(call standin_forward_cuda,busy/libcuda.so.1,call,$(STANDIN_REAL),../../libcuda.so.999.0,\
    -DFORWARDS_BUSILY,|cuLaunchKernel)
$(call standin_forward_cuda,preload/libcuda-control.so,call,$(STANDIN_REAL),../../libcuda.so.999.0)
$(foreach k,call tail,$(eval $(call standin_forward,hip-$(k)/libcuda.so.1,$(k),\
    $(SB)/hip/libamdhip64.so.6,../../hip/libamdhip64.so.6,$(S)/forward/hip.txt)))

# Program that makes ioctl calls to GPU drivers. Its scripts have the syntax of the workload's.
$(call standin_group,ioctls,ioctls,-fPIE)
$(SB)/ioctls: $(call standin_objects,ioctls,ioctls) $(addprefix $(SB)/obj/workload/,script.o json.o)
	$(Q)$(CXX) -o $@ $^ -pie -Wl,--build-id

-include $(STANDIN_OBJECTS:.o=.d)
