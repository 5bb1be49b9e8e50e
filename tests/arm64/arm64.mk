# SPDX-License-Identifier: Apache-2.0
# Builds the program that tests arm64's placement and decoder on any machine, with NVIDIA's libraries (tests/arm64/run).

$(BUILD)/arm64/prologues: tests/arm64/prologues.cpp \
                          $(patsubst %.cpp,$(OBJ)/%.o,$(wildcard src/code/*_arm64.cpp) src/attach/placement_arm64.cpp)
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $^ -o $@ -lelf
