#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/base/error.h"
#include "../ref/base/random.h"
#include "images.h"

/* Every image has this many consecutive random numbers of its own: the first describe it, the rest
 * are the noise of its pixels. */
enum { NUMBERS = 2048, FIRST_NOISE = NUMBERS - IMAGE_SIDE * IMAGE_SIDE };

/* Images are drawn at twice their resolution and averaged, for smooth edges. */
enum { CANVAS = 2 * IMAGE_SIDE };

/* Silhouettes are defined on the square [-UNIT, UNIT)^2. */
enum { UNIT = 256 };

/* Computed from the training images of seed 0 and rounded; a test computes them again. */
const Normalisation synthetic_normalisation = {{0.4978, 0.5000, 0.4990}, {0.1886, 0.1895, 0.1877}};

typedef struct {
    uint64_t seed, next;
    uint32_t stream;
} Draws;

static int draw_between(Draws *draws, int low, int high) {
    uint32_t span = (uint32_t)(high - low + 1);
    return low + (int)random_below(draws->seed, draws->stream, draws->next++, span);
}

typedef struct {
    int class;
    int x, y, radius; /* in canvas pixels; x and y from the top left */
    int turn;         /* in 1/256 of a full turn */
    int colour[3];
} Shape2d;

static bool inside_disc(int u, int v, int radius) { return u * u + v * v < radius * radius; }

/* Returns true if (u, v) lies in the silhouette of a class. */
static bool inside(int class, int u, int v) {
    const int au = abs(u), av = abs(v), max = au > av ? au : av, min = au > av ? av : au;
    switch (class) {
        case 0: /* disc */
            return inside_disc(u, v, 225);
        case 1: /* ring */
            return inside_disc(u, v, 245) && !inside_disc(u, v, 140);
        case 2: /* square */
            return max < 200;
        case 3: /* frame */
            return max < 210 && max >= 115;
        case 4:                                        /* triangle */
            return v > -150 && 7 * au < 4 * (256 - v); /* sides of slope 7 : 4, nearly sqrt(3) */
        case 5:                                        /* plus */
            return min < 75 && max < 240;
        case 6: /* bar */
            return au < 90 && av < 250;
        case 7: /* crescent */
            return inside_disc(u, v, 245) && !inside_disc(u - 110, v, 200);
        case 8: /* dots */
            return inside_disc(u, av - 150, 100);
        default:
            return (u < -60 || v < -60) && max < 210; /* corner: a square less its quarter */
    }
}

static void draw_shape(unsigned char (*canvas)[CANVAS][3], const Shape2d *shape) {
    const double angle = shape->turn * (6.283185307179586 / 256);
    const long scale = 1024 * UNIT / shape->radius;
    const int cosine = (int)lround((double)scale * cos(angle));
    const int sine = (int)lround((double)scale * sin(angle));
    const int reach = shape->radius * 3 / 2; /* a corner of the square */
    for (int y = shape->y - reach; y <= shape->y + reach; y++)
        for (int x = shape->x - reach; x <= shape->x + reach; x++) {
            if (y < 0 || y >= CANVAS || x < 0 || x >= CANVAS) continue;
            int dx = x - shape->x, dy = y - shape->y;
            int u = (dx * cosine + dy * sine) / 1024, v = (dy * cosine - dx * sine) / 1024;
            if (!inside(shape->class, u, v)) continue;
            for (int c = 0; c < 3; c++) canvas[y][x][c] = (unsigned char)shape->colour[c];
        }
}

static void draw_background(unsigned char (*canvas)[CANVAS][3], Draws *draws) {
    int corner[4][3];
    for (int i = 0; i < 4; i++)
        for (int c = 0; c < 3; c++) corner[i][c] = draw_between(draws, 30, 225);
    const int last = CANVAS - 1;
    for (int y = 0; y < CANVAS; y++)
        for (int x = 0; x < CANVAS; x++)
            for (int c = 0; c < 3; c++) {
                int top = corner[0][c] * (last - x) + corner[1][c] * x;
                int bottom = corner[2][c] * (last - x) + corner[3][c] * x;
                canvas[y][x][c] = (unsigned char)((top * (last - y) + bottom * y) / (last * last));
            }
}

static Shape2d choose_shape(Draws *draws, int class, int margin, int smallest, int largest) {
    Shape2d shape;
    shape.class = class;
    shape.x = draw_between(draws, margin, CANVAS - 1 - margin);
    shape.y = draw_between(draws, margin, CANVAS - 1 - margin);
    shape.radius = draw_between(draws, smallest, largest);
    shape.turn = draw_between(draws, 0, 255);
    for (int c = 0; c < 3; c++) shape.colour[c] = draw_between(draws, 10, 245);
    return shape;
}

static void draw_clutter(unsigned char (*canvas)[CANVAS][3], Draws *draws, int pieces) {
    for (int i = 0; i < pieces; i++) {
        int class = draw_between(draws, 0, SYNTHETIC_CLASSES - 1);
        Shape2d piece = choose_shape(draws, class, 0, 4, 8);
        draw_shape(canvas, &piece);
    }
}

/* Overwrites pixels[3][32][32] with the averaged canvas plus noise of a triangular distribution. */
static void add_noise(unsigned char *pixels, unsigned char (*canvas)[CANVAS][3], const Draws *draws,
                      uint64_t first, int strength) {
    for (int y = 0; y < IMAGE_SIDE; y++)
        for (int x = 0; x < IMAGE_SIDE; x++) {
            int pixel = y * IMAGE_SIDE + x;
            uint64_t bits = random_bits(draws->seed, draws->stream, first + (uint64_t)pixel);
            for (int c = 0; c < 3; c++) {
                int sum = 2 + canvas[2 * y][2 * x][c] + canvas[2 * y][2 * x + 1][c] +
                          canvas[2 * y + 1][2 * x][c] + canvas[2 * y + 1][2 * x + 1][c];
                int noise = (int)(bits >> 16 * c & 0xFF) + (int)(bits >> (16 * c + 8) & 0xFF) - 255;
                int value = sum / 4 + noise * strength / 256;
                value = value < 0 ? 0 : value > 255 ? 255 : value;
                pixels[c * IMAGE_SIDE * IMAGE_SIDE + pixel] = (unsigned char)value;
            }
        }
}

static void generate_image(unsigned char *record, int sample, uint32_t stream, uint64_t seed) {
    unsigned char canvas[CANVAS][CANVAS][3];
    const uint64_t first = (uint64_t)sample * NUMBERS;
    Draws draws = {seed, first, stream};
    record[0] = (unsigned char)(sample % SYNTHETIC_CLASSES);
    draw_background(canvas, &draws);
    draw_clutter(canvas, &draws, draw_between(&draws, 1, 4));
    Shape2d object = choose_shape(&draws, record[0], 18, 13, 24);
    draw_shape(canvas, &object);
    draw_clutter(canvas, &draws, draw_between(&draws, 0, 2));
    add_noise(record + 1, canvas, &draws, first + FIRST_NOISE, draw_between(&draws, 10, 70));
}

int synthetic_generate(Images *images, int samples, Split split, uint64_t seed) {
    unsigned char *records = malloc((size_t)samples * (1 + IMAGE_BYTES));
    if (!records) return error_set("synthetic: no memory for %d images", samples);
#pragma omp parallel for
    for (int n = 0; n < samples; n++)
        generate_image(records + (size_t)n * (1 + IMAGE_BYTES), n,
                       STREAM_SYNTHETIC + (uint32_t)split, seed);
    *images = (Images){records, samples, 1, SYNTHETIC_CLASSES};
    return 0;
}
