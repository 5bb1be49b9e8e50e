#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks that documents, man pages, examples and shell completion match the tools, and that no file names a package
# mirror: check.sh [BUILD] (default: build). Needs no privileges.
# shellcheck disable=SC2016 # backquotes are Markdown here
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-${BUILD:-build}}")
. tests/totals.sh

# check NAME OUTPUT: passes if OUTPUT is empty.
check() { if [ -z "$2" ]; then ok; else fail "$1" "$2"; fi; }
same() { check "$1" "$(diff <(printf '%s\n' "$2") <(printf '%s\n' "$3"))"; }

tracers=$(sed -n 's/^TOOLS *:= *//p' Makefile)
readers=$(sed -n 's/^READERS *:= *//p' Makefile) # programs that read recordings: no columns, no losses, no -p
tools="$tracers $readers"
aliases=$(sed -n 's/^ALIASES *:= *//p' Makefile)

# --- names in tools and documents ------------------------------------------------------------------------------------

sorted_words() { tr -s ' ,\t' '\n' | sed '/^$/d' | LC_ALL=C sort -u; }

options_of_help() { _gpusnoop_options "$build/$1" | cut -f 1 | sorted_words; }

# complete_words WORD...: completions of the last word, one per line.
complete_words() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _gpusnoop "$1" "${!#}" "${COMP_WORDS[COMP_CWORD-1]}"
    [ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\n' "${COMPREPLY[@]}"
}

# Command lines of the tool in a text, up to a pipe or comment.
commands_in() {
    grep -oE "(^|[^-./A-Za-z_])$1( [^|#\`]*|$)" "$2" | sed -E "s/^.*$1//"
}

# Options used in command lines; input has one command line per line.
options_of_commands() {
    sed -E "s/'[^']*'//g" | tr ' ' '\n' |
        sed -nE 's/^(--[a-z][a-z-]*).*/\1/p; s/^-([A-Za-z]+)[.,:;)]*$/\1/p' | while read -r option; do
            case $option in
            --*) echo "$option" ;;
            *) fold -w 1 <<<"$option" | sed 's/^/-/' ;; # -vv, -el
            esac
        done | sorted_words
}

unknown_options() { LC_ALL=C comm -23 <(commands_in "$1" "$2" | options_of_commands) <(options_of_help "$1"); }

# Prints options that a document quotes without a tool's name, and that no tool has.
unknown_bare_options() {
    LC_ALL=C comm -23 <(grep -oE '`-[^`]*`' "$1" | tr -d '`' | options_of_commands) \
        <(for tool in $tools; do options_of_help "$tool"; done | LC_ALL=C sort -u)
}

# Link targets are relative to the text's folder; paths in backquotes are relative to the repository's root.
paths_in() {
    {
        grep -oE '\]\([^)# ]+' "$1" | sed 's/^](//' | grep -v '://' | sed "s|^|$(dirname "$1")/|"
        grep -oE '`[A-Za-z0-9_.*-]+(/[A-Za-z0-9_.*-]*)+`' "$1" | tr -d '`' | grep -vE '^(build|share)/'
    } | sort -u
}

missing_paths() {
    local path tool
    while read -r path; do
        for tool in $tracers; do
            compgen -G "${path//X/$tool}" >/dev/null || echo "$path"
        done
    done < <(paths_in "$1")
}

missing_anchors() {
    local anchor
    while read -r anchor; do
        sed -n 's/^#\{1,\} //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 -]//g; s/ /-/g' |
            grep -qxF "$anchor" || echo "#$anchor"
    done < <(grep -oE '\]\(#[^)]+' "$1" | sed 's/^](#//')
}

missing_targets() {
    local target
    while read -r target; do
        grep -qE "^([a-z. -]* )?$target( [a-z -]*)?:" Makefile tests/*/*.mk || echo "make $target"
    done < <(grep -oE '(^|[` ])make [a-z]+' "$1" | sed -E 's/.*make //' | sort -u)
}

# Messages in the table "| `message` | meaning |" that the sources do not contain.
unknown_messages() {
    local sources message
    sources=$(cat src/*/*.cpp tools/*.cpp tools/*/*.cpp | tr '\n' ' ' | sed 's/" *"//g')
    while read -r message; do
        grep -qF -- "$message" <<<"$sources" || echo "$message"
    done < <(sed -n '/^| message/,/^$/p' "$1" | sed -nE 's/^\| `([^`]*)` \|.*/\1/p')
}

# Indented lines are excluded: they show output of the tools.
wide_lines() { awk -v f="$1" '!/^    / && length > 120 { print f ":" NR ": " length " columns" }' "$1"; }

# Column headers of the tool's tables.
headers_of() { "$build/$1" --columns json | sed -nE 's/^\{"in":"table","header":"([^"]+)".*/\1/p' | sort -u; }

is_tracer() { grep -qw -- "$1" <<<"$tracers"; }

has_option() { options_of_help "$1" | grep -qx -- "$2"; }

# True if the tool counts calls of library functions rather than of the kernel.
counts_functions() { has_option "$1" --api; }

loss_keys() { sed -nE 's/^ *t\[LOSS_[A-Z]+\] = \{"([a-z_]+)".*/\1/p' src/run/report_notes.cpp; }

# Letter, long name and description of each option, such as "-d --duration end after this time". The description is left
# out for -H, -e, -l, -s and -U, whose descriptions differ by tool.
letters_of() {
    _gpusnoop_options "$build/$1" | sed -nE 's/^(-[A-Za-z]),(--[a-z-]+)\t[^\t]*\t(.*)/\1 \2 \3/p' |
        sed -E 's/^(-[HelsU] --[a-z-]+) .*/\1/'
}

# Option letters and long option names whose meaning differs between tools. Exception: -l sets a minimum duration in
# cudasync and nvioctl, which always measure durations.
letters_of_two_meanings() {
    local all
    all=$(for tool in $tools; do letters_of "$tool"; done | grep -vx -- '-l --least' | LC_ALL=C sort -u)
    cut -d ' ' -f 1 <<<"$all" | uniq -d
    cut -d ' ' -f 2 <<<"$all" | sort | uniq -d
}

not_in_man() {
    local word text
    text=$(sed 's/\\-/-/g' "$build/man/$1.8")
    while read -r word; do
        grep -qF -- "$word" <<<"$text" || echo "$word"
    done
}

# --- the tools -------------------------------------------------------------------------------------------------------

# shellcheck source=scripts/completion.bash
. scripts/completion.bash

check_values() { # TOOL OPTION: completion offers exactly the values that the tool accepts
    local offered message value
    offered=$(complete_words "$build/$1" "$2" "")
    # shellcheck disable=SC2046 # two words, or none
    message=$("$build/$1" "$2" no-such-value $(is_tracer "$1" && echo -d 0.01) 2>&1)
    check "$1: completion of $2" "$(
        [ -n "$offered" ] || echo "no completions"
        for value in $offered; do
            grep -qw -- "$value" <<<"$message" || echo "'$value' is offered, but the tool prints: $message"
        done)"
}

# -s and --columns complete to the headers of tables, and the tool accepts all completions.
check_columns() {
    local tool=$1 program=$2 sign first name
    for sign in "" + -; do
        check "$tool: completion of --columns ${sign}NAME" "$(
            offered=$(complete_words "$program" --columns "$sign" | sed 's/\\//g')
            [ -n "$offered" ] || echo "no completions"
            headers_of "$tool" | sort -u | while read -r name; do
                grep -qxF -- "$sign$name" <<<"$offered" || echo "$sign$name is not offered"
            done
            while read -r name; do
                "$program" --columns="$name,help" >/dev/null 2>&1 || echo "$name is offered, but the tool does not accept it"
            done <<<"$offered")"
    done
    first=$(headers_of "$tool" | grep -m 1 -x '[A-Z]*')
    same "$tool: completion of -s" "$first" "$(complete_words "$program" -s "$first" | grep -xF "$first")"
    same "$tool: completion of a second column" "+PID,-$first" \
        "$(complete_words "$program" --columns "+PID,-$first" | grep -xF -- "+PID,-$first")"
}

check_completion() {
    local tool=$1 program=$build/$1
    same "$tool: --help and completion list the same options" "$(options_of_help "$tool")" \
        "$(complete_words "$program" - | sorted_words)"
    check_values "$tool" --by
    is_tracer "$tool" || return
    check_columns "$tool" "$program"
    if has_option "$tool" --hist; then check_values "$tool" -H; fi
    if counts_functions "$tool"; then check_values "$tool" --api; fi
    check_values "$tool" --attach
    same "$tool: completion after a comma" "pid,container" "$(complete_words "$program" --by pid,con)"
    same "$tool: completion after --" "true" "$(complete_words "$program" -- tru | grep -xF true | head -1)"
    same "$tool: completion of --by=" "namespace" "$(complete_words "$program" --by = nam)"
    same "$tool: completion does not offer a value twice" "" "$(complete_words "$program" --by pid,pi)"
    same "$tool: no completions for a number" "" "$(complete_words "$program" -d "")"
    check "$tool: -p completes process ids" "$(complete_words "$program" -p "" | grep -vE '^[0-9]+$')"
    check "$tool: -t completes thread ids" "$(complete_words "$program" -t "" | grep -vE '^[0-9]+$')"
    local word
    for word in -p -t -n; do
        check "$tool: $word has completions" "$([ -n "$(complete_words "$program" $word "")" ] || echo none)"
    done
}

# complete_by zsh|fish WORD...: completions of that shell. In zsh, a replaced compadd prints its candidates.
complete_by() {
    local shell=$1 zsh_script fish_script
    shift
    zsh_script='source scripts/completion.zsh
        compadd() { print -rl -- $candidates }
        words=("$@") CURRENT=$# PREFIX=${@[-1]}; _gpusnoop'
    fish_script='source scripts/completion.fish; complete -C "$argv" | cut -f 1'
    case $shell in
    zsh) PATH=$build:$PATH zsh -f -c "$zsh_script" zsh "$@" ;;
    # In the C locale, fish cannot open files below a folder whose name is not ASCII.
    fish) PATH=$build:$PATH LC_ALL=C.UTF-8 fish --no-config -c "$fish_script" "$@" ;;
    esac
}

# zsh and fish call bash's completion, and must offer the same.
check_other_shells() {
    local shell line
    for shell in zsh fish; do
        if ! command -v "$shell" >/dev/null; then
            skip "completion of $shell: $shell is not installed"
            continue
        fi
        check "completion of $shell: syntax" "$("$shell" -n "scripts/completion.$shell" 2>&1)"
        for line in "cudalaunch --by pid,con" "cudatop -s L" "cudamemcpy --api r" "gpualloc --le" "cudasync --by=th"; do
            # shellcheck disable=SC2086 # words
            check "completion of $shell: $line has completions" "$([ -n "$(complete_by $shell $line)" ] || echo none)"
            # shellcheck disable=SC2086 # words
            same "completion of $shell: $line" "$(PATH=$build:$PATH bash scripts/completion.bash $line | cut -f 1 | sort)" \
                "$(complete_by $shell $line | sort)"
        done
    done
    same "completion of zsh covers all tools" "#compdef $tools $aliases" "$(head -n 1 scripts/completion.zsh)"
}

check_man() {
    local tool=$1 page=man/$1.8
    if [ ! -f "$build/$page" ]; then
        fail "$page" "$build/$page is not built"
        return
    fi
    check "$page: has no placeholders" "$(grep -nE '^\.\\" [a-z]+: |@tool@' "$build/$page" | grep -v 'bench: ')"
    if command -v man >/dev/null; then
        check "$page: man --warnings" "$(man --warnings -l "$build/$page" 2>&1 >/dev/null)"
    else
        skip "$page: man is not installed"
    fi
    if command -v groff >/dev/null; then
        check "$page: groff -ww" "$(groff -man -ww -Tutf8 "$build/$page" 2>&1 >/dev/null)"
    else
        skip "$page: groff is not installed"
    fi
    check "$page: line width" "$(wide_lines "$build/$page")"
    is_tracer "$tool" || return
    [ "$tool" != cudatop ] || check "$page: has every rule of the diagnosis" \
        "$(sed -nE 's/^    \{"([a-z]+)", .*/\1/p' tools/cudatop/rules.cpp | grep -vxFf <(sed -nE 's/^\.B ([a-z]+)$/\1/p' "$page"))"
    [ "$tool" != cudatop ] || check "$page and man/gpuspend.8: have every metric" \
        "$(sed -nE 's/^    \{"([a-z0-9_]+)", Kind::.*/\1/p' src/output/metrics_page.cpp |
            grep -vxFf <(sed -nE 's/^\.BR? gpusnoop_(\w+).*/\1/p' "$page" man/gpuspend.8))"
    check "$page: has every loss" "$(loss_keys | not_in_man "$tool")"
}

check_example() {
    local tool=$1 example=tools/$1/example.txt
    check "$example: options that do not exist" "$(unknown_options "$tool" "$example")"
    same "$example: ends with --help" "$("$build/$tool" --help)" \
        "$(awk -v tool="$tool" 'on; $0 ~ tool " --help$" { on = 1 }' "$example")"
}

pages="README.md $(echo docs/*.md)"

for tool in $tools; do
    if [ ! -x "$build/$tool" ]; then
        skip "$tool: $build/$tool is not built"
        continue
    fi
    check_completion "$tool"
    check_man "$tool"
    check_example "$tool"
    for page in $pages; do
        check "$page: options of $tool that do not exist" "$(unknown_options "$tool" "$page")"
    done
    check "README.md: names $tool" "$(grep -qw "$tool" README.md || echo no)"
done

check_other_shells

# Aliases have the help and completion of their tool.
for alias in $aliases; do
    of=$(sed -n 's/^\.so man8\/\(.*\)\.8$/\1/p' "man/$alias.8")
    same "$alias is $of" "$("$build/$of" --help)" "$("$build/$alias" --help)"
    [ -n "$(complete_words "$build/$alias" --ve)" ] && ok || fail "$alias has no completions"
done

parts=$(sed -nE 's/^\.\\" common: //p' man/*.8 | sort)
same "man/common: at least four pages include each file" "" "$(
    for part in man/common/*.8; do
        [[ $part == */option-* ]] ||
            [ "$(grep -cx "$(basename "$part" .8)" <<<"$parts")" -ge 4 ] || echo "$part"
    done)"
check "each option means the same in all tools" "$(letters_of_two_meanings)"
for page in $pages; do
    check "$page: options that no tool has" "$(unknown_bare_options "$page")"
    check "$page: paths that do not exist" "$(missing_paths "$page")"
    check "$page: broken links within the page" "$(missing_anchors "$page")"
    check "$page: make targets that do not exist" "$(missing_targets "$page")"
    check "$page: messages that no tool prints" "$(unknown_messages "$page")"
    check "$page: line width" "$(wide_lines "$page")"
    [ "$page" = README.md ] || check "README.md: links to $page" "$(grep -qF "($page)" README.md || echo no)"
done

# Scripts fetch packages from the servers that scripts/mirror prints, and npm from its own registry setting.
files_of_checkout() { git -c safe.directory='*' ls-files -z 2>/dev/null || find . -path './build*' -prune -o -type f -print0; }
hosts='(deb|security|archive|snapshot|ports|ftp[a-z0-9.]*)[.](debian[.]org|ubuntu[.]com)'
hosts+='|registry[.](npmjs[.]org|yarnpkg[.]com)|pypi[.]org|[.]pythonhosted[.]org'
check "no file names a package mirror" "$(files_of_checkout | xargs -0 grep -nIsE "$hosts")"
check "README.md: length" "$(awk 'END { if (NR > 150) print NR " lines" }' README.md)"

total
