# SPDX-License-Identifier: Apache-2.0
# What tries arm64 on any machine: its placement and its decoder, on NVIDIA's libraries (tests/arm64/run).

$(BUILD)/arm64/prologues: tests/arm64/prologues.cpp \
                          $(patsubst %.cpp,$(OBJ)/%.o,$(wildcard src/code/*_arm64.cpp) src/attach/placement_arm64.cpp)
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $^ -o $@ -lelf
