/* The files of src/serve/page as bytes; page-assets.c is made of them by src/serve/page/embed. */
#ifndef SERVE_PAGE_ASSETS_H
#define SERVE_PAGE_ASSETS_H

#include <stddef.h>

struct page_asset {
    const char *name; /* of the file */
    const unsigned char *bytes;
    size_t n;
};

extern const struct page_asset page_assets[]; /* the last one's name is NULL */

#endif
