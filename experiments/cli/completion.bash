# Completes commands, flags, and choices such as "fp32|bf16", as --help lists them; else file names.
# bash passes the program, the word that is being typed, and the word before it.
_bcd() {
    local help words=
    if [ "$COMP_CWORD" = 1 ]; then
        words="help $("$1" --help 2>/dev/null | sed -n 's/^  \([a-z]*\)  .*/\1/p')"
    else
        help=$("$1" "${COMP_WORDS[1]}" --help 2>/dev/null)
        case $2 in
            -*) words="--help $(grep -o '^  --[a-z0-9-]*' <<<"$help")" ;;
            *) words=$(awk -v flag="$3" '$1 == flag && $2 ~ /^[a-z0-9|-]+$/ && $2 ~ /[|]/ {
                   gsub(/[|]/, " ", $2); print $2 }' <<<"$help") ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$2"))
    [ -n "$words" ] || COMPREPLY=($(compgen -f -- "$2"))
}
complete -o filenames -F _bcd bcd
