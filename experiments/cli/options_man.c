/* The manual page and the completion of bash, both from the tables of commands and flags. */
#include <stdio.h>
#include <string.h>

#include "command_line.h"

/* Escapes what means something to roff: backslashes, dashes, and a dot or quote that begins a
 * line. */
static void print_roff(const char *text) {
    const char *last = "\n";
    for (; *text; last = text++) {
        if (*last == '\n' && (*text == '.' || *text == '\'')) printf("\\&");
        if (*text == '\\')
            printf("\\e");
        else if (*text == '-')
            printf("\\-");
        else
            putchar(*text);
    }
}

static void print_flag(const Option *option) {
    const char *words = option_default_words(option);
    printf(".TP\n\\fB\\-\\-");
    print_roff(option->name);
    printf("\\fR %s\n", option->argument ? option->argument : "");
    print_roff(option->help);
    if (*words) {
        printf(" [");
        print_roff(words);
        printf("]");
    }
    printf("\n");
}

static void print_command(const CommandInfo *info) {
    printf(".SH \"bcd %s\"\n", info->name);
    print_roff(info->summary);
    printf(".\n.PP\n\\fBbcd %s\\fR%s%s [FLAGS]\n.PP\n.nf\n", info->name,
           *info->arguments ? " " : "", info->arguments);
    print_roff(info->teaches);
    printf("\n.fi\n");
    for (const Option *option = option_table; option->name; option++)
        if (option->commands & info->command) print_flag(option);
}

void options_print_man(void) {
    printf(
        ".TH BCD 1\n.SH NAME\nbcd \\- trains neural networks by block coordinate descent\n"
        ".SH SYNOPSIS\n\\fBbcd\\fR COMMAND [FLAGS]\n.br\n\\fBbcd\\fR COMMAND \\-\\-help\n");
    for (int i = 0; i < COMMANDS; i++) print_command(&command_table[i]);
}

/* "train --optimizer") words="sgd adam adamw lion" ;; */
static void print_choices(const CommandInfo *info) {
    for (const Option *option = option_table; option->name; option++) {
        if (!(option->commands & info->command) || option->kind != OPTION_IS_CHOICE) continue;
        printf("        \"%s --%s\") words=\"", info->name, option->name);
        for (int c = 0; c < option->choice_count; c++)
            printf("%s%s", c ? " " : "", option->choices[c]);
        printf("\" ;;\n");
    }
}

void options_print_completion(void) {
    printf(
        "_bcd() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
        "    if [ \"$COMP_CWORD\" = 1 ]; then words=\"help");
    for (int i = 0; i < COMMANDS; i++) printf(" %s", command_table[i].name);
    printf("\"\n    else case \"${COMP_WORDS[1]} $before\" in\n");
    for (int i = 0; i < COMMANDS; i++) print_choices(&command_table[i]);
    printf("        *) [[ $cur != -* ]] || case ${COMP_WORDS[1]} in\n");
    for (int i = 0; i < COMMANDS; i++) {
        printf("            %s) words=\"--help", command_table[i].name);
        for (const Option *option = option_table; option->name; option++)
            if (option->commands & command_table[i].command) printf(" --%s", option->name);
        printf("\" ;;\n");
    }
    printf(
        "        esac ;;\n    esac; fi\n"
        "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
        "    [ -n \"$words\" ] || COMPREPLY=($(compgen -f -- \"$cur\"))\n"
        "}\ncomplete -o filenames -F _bcd bcd\n");
}
