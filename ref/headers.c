#include "headers.h"

const char bcd_headers[] = BCD_HEADERS;
