/* A page being written: HTML text, and the figures that belong between, which are drawn all
 * together when the text is done. */
#ifndef EXPERIMENTS_PAGE_H
#define EXPERIMENTS_PAGE_H

#include <stdbool.h>
#include <stdio.h>

typedef struct {
    size_t at;    /* where in the text it belongs */
    char id[32];  /* unique on the page */
    char *script; /* of gnuplot */
    char *svg;    /* drawn; NULL: refused */
    char label[200], caption[640];
} PageFigure;

typedef struct {
    FILE *out; /* the text; write to it as to any file */
    bool drawable;
    char *text;
    size_t size;
    int figures, room;
    PageFigure *figure;
} Page;

/* `drawable`: figures are wanted.  -1 and an error when memory runs out. */
int page_begin(Page *page, bool drawable);

/* Text with what HTML reserves replaced. */
void put_text(FILE *out, const char *text);
/* <tag>text</tag>; the tag may have attributes. */
void put_element(FILE *out, const char *tag, const char *text);

/* A figure here, whose script is taken over.  NULL: nothing; one that gnuplot refuses: a line that
 * says so.  `label` is for those who cannot see it, the caption may be empty. */
void page_figure(Page *page, char *script, const char *id, const char *label, const char *caption);

/* Draws, and writes the page whole or not at all.  -1 and an error.  Frees either way. */
int page_write(Page *page, const char *path);

#endif
