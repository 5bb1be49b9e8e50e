# Filter for skeletons written by bpftool: replaces the bytes of the BPF object by a declaration, because the Makefile
# links the object. The header then changes only if its variables or maps change, and compiles faster.
index($0, "static inline const void *" name "__elf_bytes(size_t *sz)") == 1 && !/;$/ {
    print "extern \"C\" const char " name "_object[], " name "_object_end[];\n"
    print
    print "{\n\t*sz = (size_t)(" name "_object_end - " name "_object);\n\treturn " name "_object;\n}"
    skipping = 1
}
!skipping { print }
/^}$/ { skipping = 0 }
