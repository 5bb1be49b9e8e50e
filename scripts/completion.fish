# SPDX-License-Identifier: Apache-2.0
# Fish completion for every gpusnoop tool, installed once under each tool's name. It gets all candidates from bash's
# completion.

function __gpusnoop_candidates --argument-names file
    bash $file (commandline --current-process --tokenize --cut-at-cursor) \
        (commandline --current-token --cut-at-cursor | string collect --allow-empty) 2>/dev/null
end

# In the source tree, this file serves all tools.
set --local here (dirname (status filename))
set --local gpusnoop_tools (basename (status filename) .fish)
set --local gpusnoop_file $here/../../bash-completion/completions/$gpusnoop_tools
if test $gpusnoop_tools = completion
    set gpusnoop_tools (string replace --filter --regex '^(TOOLS|READERS|ALIASES) *:= *' '' <$here/../Makefile | string split ' ')
    set gpusnoop_file $here/completion.bash
end
for tool in $gpusnoop_tools
    complete --command $tool --no-files --arguments "(__gpusnoop_candidates "(string escape $gpusnoop_file)")"
end
