#include "store/log_piece.h"

#include <string.h>

static uint32_t get_le32(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Of a byte, with 0 to 3 bytes behind it. */
static void fill_tables(uint32_t tables[4][256])
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = (c >> 1) ^ (c & 1 ? UINT32_C(0x82f63b78) : 0);
        tables[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 4; k++)
            tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 255];
}

/* Of type and data: CRC-32C (RFC 3720, B.4), turned and shifted as RocksDB stores it. Four bytes at a time: a start reads the
 * whole log. */
static uint32_t checksum(const unsigned char *p, size_t n)
{
    static uint32_t t[4][256];
    uint32_t crc = UINT32_MAX;

    if (!t[0][1])
        fill_tables(t);
    for (; n >= 4; p += 4, n -= 4) {
        crc ^= get_le32(p);
        crc = t[3][crc & 255] ^ t[2][crc >> 8 & 255] ^ t[1][crc >> 16 & 255] ^ t[0][crc >> 24];
    }
    while (n--)
        crc = (crc >> 8) ^ t[0][(crc ^ *p++) & 255];
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

enum log_piece_state log_piece_read(const unsigned char *p, size_t n, struct log_piece *out)
{
    size_t length = p[4] | (size_t)p[5] << 8;

    *out = (struct log_piece){.type = p[6], .data = (const char *)p + LOG_HEADER, .n = length};
    if (p[6] == PIECE_NONE && length == 0)
        return LOG_PIECE_NOTHING;
    if (length > n - LOG_HEADER)
        return LOG_PIECE_BAD;
    out->size = LOG_HEADER + length;
    return checksum(p + 6, length + 1) == get_le32(p) ? LOG_PIECE_WHOLE : LOG_PIECE_BAD;
}

void log_piece_put(struct buf *out, unsigned type, const char *data, size_t n)
{
    unsigned char *h = (unsigned char *)buf_reserve(out, LOG_HEADER + n);

    h[4] = (unsigned char)n;
    h[5] = (unsigned char)(n >> 8);
    h[6] = (unsigned char)type;
    if (n)
        memcpy(h + LOG_HEADER, data, n);
    uint32_t crc = checksum(h + 6, n + 1);
    for (int i = 0; i < 4; i++)
        h[i] = (unsigned char)(crc >> 8 * i);
    buf_added(out, LOG_HEADER + n);
}
