#compdef cudatop cudalaunch cudamemcpy cudasync gpualloc cudagraph nvioctl cudagap ncclwait gpuspend cudadiff gpuioctl
# SPDX-License-Identifier: Apache-2.0
# Zsh completion for every gpusnoop tool, installed as site-functions/_gpusnoop. It gets all candidates from bash's
# completion.

_gpusnoop() {
    zmodload zsh/parameter
    local here=${functions_source[_gpusnoop]:A:h} line
    local file=$here/../../bash-completion/completions/${words[1]:t}
    [[ -f $file ]] || file=$here/completion.bash # in the source tree

    local -a candidates texts
    while IFS= read -r line; do
        candidates+=("${line%%$'\t'*}")
        texts+=("${line/$'\t'/  }")
    done < <(bash "$file" "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    compadd -l -d texts -a candidates
}

# If autoloaded, this file is the body of the function; if sourced, it only defines the function.
[[ ${funcstack[1]} != _gpusnoop ]] || _gpusnoop "$@"
