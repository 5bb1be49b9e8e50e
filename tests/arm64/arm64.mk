# SPDX-License-Identifier: Apache-2.0
# Builds a program that applies arm64's probe placement and decoder to NVIDIA's libraries. It runs on any architecture
# (tests/arm64/libraries uses it).

$(BUILD)/arm64/prologues: tests/arm64/prologues.cpp \
                          $(patsubst %.cpp,$(OBJ)/%.o,$(wildcard src/code/*_arm64.cpp) src/attach/placement_arm64.cpp)
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) $^ -o $@ -lelf
