# SPDX-License-Identifier: Apache-2.0
# Builds tests/screen/play, which shows scripted snapshots on a real screen. Included by the top Makefile.

SCREEN := $(BUILD)/screen

.PHONY: screen-bins
screen-bins: $(SCREEN)/play

$(SCREEN)/%.o: tests/screen/%.cpp
	$(say) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) -MMD -MP -c $< -o $@

$(SCREEN)/play: $(SCREEN)/play.o $(OBJ)/libgpusnoop.a
	$(say) LINK $@
	$(Q)$(CXX) $(ALL_CXXFLAGS) $(VARIANT_LDFLAGS) $^ -o $@ $(LIBS)

-include $(wildcard $(SCREEN)/*.d)
