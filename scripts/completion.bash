# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Bash completion for every gpusnoop tool, installed once under each tool's name. Candidates come from the tool itself
# (TOOL --help), so they are always up to date. Completion of zsh and fish runs this file with the words typed so far,
# and reads the candidates for the last one: one per line, an option followed by a tab and its text.

# Options of a tool, one per line: "-p,--pid<TAB>TYPE or nothing<TAB>help text".
_gpusnoop_options() {
    "${1/#\~/$HOME}" --help 2>/dev/null | awk '
        function put() {
            if (names != "")
                print names "\t" type "\t" text
            names = ""
        }
        /^  (    )?-/ {
            put()
            text = ""
            line = $0
            sub(/^ +/, "", line)
            sub(/, -/, ",-", line)
            if (match(line, /  +/)) { # two spaces end the option and its type
                text = substr(line, RSTART + RLENGTH)
                line = substr(line, 1, RSTART - 1)
            }
            split(line, word, " ")
            names = word[1]
            type = word[2] ~ /^[A-Z]+(\[|$)/ ? word[2] : ""
            next
        }
        /^           / && names != "" { sub(/^ +/, ""); text = text (text == "" ? "" : " ") $0; next }
        { put() }
        END { put() }'
}

# Values listed in a help text: "rows by kernel, pid, or several (kernel)" gives kernel and pid.
_gpusnoop_values() {
    local text=$1
    text=$(sed -E 's/ *\([^)]*\)//g; s/^.*(: | by | of )//; s/,? or several.*//; s/,? or /, /g' <<<"$text")
    tr ',' '\n' <<<"$text" | sed -E 's/^ +//; s/ +$//; /^[a-z]+$/!d'
}

# Headers of a tool's columns, from the lines of "--columns help": " +THREADS        threads".
_gpusnoop_columns() {
    "${1/#\~/$HOME}" --columns help 2>/dev/null | sed -nE 's/^  [ +]([^ ]+).*/\1/p' | sort -u
}

# Processes that map a CUDA or HIP library; all processes if none is found within half a second.
_gpusnoop_processes() {
    local found
    found=$(timeout 0.5 grep -lE '/lib(cuda(rt[^/]*)?|amdhip64[^/]*)\.so' /proc/[0-9]*/maps 2>/dev/null | sed 's|^/proc/||; s|/maps$||')
    [[ -n $found ]] || found=$(printf '%s\n' /proc/[0-9]* | sed 's|^/proc/||')
    printf '%s\n' "$found"
}

# Adds the candidates that begin with $1 to COMPREPLY, each after the prefix $2. Reads candidates from stdin, one per
# line; a tab ends a candidate. Process names may contain any character, so candidates are never expanded.
_gpusnoop_reply() {
    local candidate
    while IFS= read -r candidate; do
        candidate=${candidate%%$'\t'*}
        [[ -n $candidate && $candidate == "$1"* ]] && COMPREPLY+=("$2$(printf '%q' "$candidate")")
    done
}

_gpusnoop() {
    local command=$1 cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    COMPREPLY=()
    # A command follows --.
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] || continue
        if declare -F _comp_command_offset >/dev/null; then # bash-completion 2.12
            _comp_command_offset $((i + 1))
        elif declare -F _command_offset >/dev/null; then
            _command_offset $((i + 1))
        elif ((i + 1 == COMP_CWORD)); then
            _gpusnoop_reply "$cur" "" < <(compgen -c -f -- "$cur")
        else
            _gpusnoop_reply "$cur" "" < <(compgen -f -- "$cur")
        fi
        return
    done
    # --by=pid arrives as three words.
    if [[ $cur == "=" ]]; then
        cur=
    elif [[ $previous == "=" && $COMP_CWORD -gt 1 ]]; then
        previous=${COMP_WORDS[COMP_CWORD-2]}
    fi

    local options
    options=$(_gpusnoop_options "$command")

    local names type text this=
    while IFS=$'\t' read -r names type text; do
        [[ ,$names, == *",$previous,"* && $previous == -* && -n $type ]] && { this=$names; break; }
    done <<<"${options//$'\t\t'/$'\t'-$'\t'}"
    [[ $type != "-" ]] || this=

    if [[ -z $this && ${command##*/} == cudadiff && $cur != -* ]]; then
        _gpusnoop_reply "$cur" "" < <(compgen -f -- "$cur")
    fi
    if [[ -z $this ]]; then
        [[ $cur == -* || -z $cur ]] && _gpusnoop_reply "$cur" "" < <(
            awk -F '\t' '{ n = split($1, name, ","); for (i = 1; i <= n; i++) print name[i] "\t" $3 }' <<<"$options")
        return
    fi

    # The part after the last comma is being typed; the text before it stays.
    local before=
    if [[ $type == *,* && $cur == *,* ]]; then
        before=${cur%,*},
        cur=${cur##*,}
    fi
    case ,$this, in
    *,--pid,*)
        _gpusnoop_reply "$cur" "$before" < <(_gpusnoop_processes)
        ;;
    *,--tid,*)
        _gpusnoop_reply "$cur" "" < <(
            while read -r pid; do
                for thread in "/proc/$pid/task"/[0-9]*; do [[ -d $thread ]] && echo "${thread##*/}"; done
            done < <(_gpusnoop_processes))
        ;;
    *,--name,*)
        _gpusnoop_reply "$cur" "" < <(
            while read -r pid; do
                { IFS= read -r name <"/proc/$pid/comm"; } 2>/dev/null && printf '%s\n' "$name"
            done < <(_gpusnoop_processes) | sort -u)
        ;;
    *,--cgroup,*)
        local mount
        mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
        _gpusnoop_reply "$cur" "" < <(cd "${mount:-/sys/fs/cgroup}" 2>/dev/null && find . -mindepth 1 -type d -printf '%P\n')
        ;;
    *,--sort,*)
        _gpusnoop_reply "$cur" "" < <(_gpusnoop_columns "$command")
        ;;
    *,--columns,*)
        local sign=
        [[ $cur != [+-]* ]] || { sign=${cur:0:1}; cur=${cur:1}; }
        _gpusnoop_reply "$cur" "$before$sign" < <(
            _gpusnoop_columns "$command"
            [[ -n $before$sign ]] || echo help)
        ;;
    *,--names,*)
        _gpusnoop_reply "$cur" "" < <(printf '%s\n' short full base)
        ;;
    *,--nvml,*)
        _gpusnoop_reply "$cur" "" < <(echo off; compgen -f -- "$cur")
        ;;
    *,--record,* | *,--replay,* | *,--svg,* | *,--pprof,* | *,--speedscope,* | *,--trace,*)
        _gpusnoop_reply "$cur" "" < <(compgen -f -- "$cur")
        ;;
    *,--user,*)
        _gpusnoop_reply "$cur" "" < <(compgen -u -- "$cur")
        ;;
    *,--host-root,*)
        _gpusnoop_reply "$cur" "" < <(compgen -d -- "$cur")
        ;;
    *,--by,* | *,--hist,* | *,--api,* | *,--attach,*)
        _gpusnoop_reply "$cur" "$before" < <(_gpusnoop_values "$text" |
            while read -r value; do [[ ,$before == *",$value,"* ]] || echo "$value"; done)
        ;;
    esac
}

# Entry point for other shells, which quote candidates themselves, and do not split words at "=".
if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    word=${!#} joined=
    [[ $word == --*=* ]] && joined=${word%%=*}=
    _gpusnoop_reply() {
        local candidate
        while IFS= read -r candidate; do
            [[ -n $candidate && $candidate == "$1"* ]] && printf '%s\n' "$joined$2$candidate"
        done
    }
    COMP_WORDS=("${@:1:$#-1}")
    if [[ -n $joined ]]; then COMP_WORDS+=("${joined%=}" "=" "${word#*=}"); else COMP_WORDS+=("$word"); fi
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _gpusnoop "$1"
    exit
fi

# The installed file is named after its tool; the file in the source tree serves all tools.
case ${BASH_SOURCE[0]##*/} in
completion.bash)
    # shellcheck disable=SC2046 # one argument per tool
    complete -F _gpusnoop $(sed -n 's/^\(TOOLS\|READERS\|ALIASES\) *:= *//p' "$(dirname "${BASH_SOURCE[0]}")/../Makefile")
    ;;
*) complete -F _gpusnoop "${BASH_SOURCE[0]##*/}" ;;
esac
